"""The health of an entity: whether it can be read, where it ends, and whether its files are those that were read."""

from __future__ import annotations

import re
from collections.abc import Callable

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.base import Position, SourceHealth
from spark_sinks.file.entity_files import EntityFiles, not_read
from spark_sinks.file.journal import FileJournal

_WRONG_TYPE = re.compile(r"PARQUET_COLUMN_DATA_TYPE_MISMATCH|SchemaColumnConvertNotSupported")
_FILE_NAMED = re.compile(r"([^/\s]+\.parquet)")


class FilesHealth:
    """A :class:`spark_sinks.base.Health` of one entity.

    ``problem`` is what its feeder has met, one that does not pass with a ``!`` before it. ``look`` gives the end of all
    files that there are now. ``typed``: the files are read by a schema.
    """

    def __init__(
        self,
        files: EntityFiles,
        journal: FileJournal,
        *,
        problem: Callable[[], str | None],
        look: Callable[[], Position],
        typed: bool,
    ) -> None:
        self._files = files
        self._journal = journal
        self._problem = problem
        self._end = look
        self._typed = typed

    def look(self, position: Position) -> SourceHealth:
        problem = self._problem()
        if problem is not None and problem.startswith("!"):
            return SourceHealth("failed", problem[1:])
        if problem is None:
            problem = self._files.obstacle()
        if problem is not None:
            return SourceHealth("stalled", problem)
        try:
            return SourceHealth("ok", latest=self._end())
        except SqlError as error:
            return SourceHealth("stalled", not_read(error, self._files.place))
        except OSError as error:
            return SourceHealth("stalled", f"{self._files.place} cannot be read: {error.strerror or words_of(error)}")

    def explain_failure(self, error: BaseException, position: Position) -> Exception:
        """Spark's own words are at the end of a chain of causes."""
        if isinstance(error, SqlError):
            return error
        text = words_of(error)
        causes = [line.split(":", 2)[-1].strip() for line in text.splitlines() if line.startswith("Caused by:")]
        first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
        cause = (causes[-1] if causes else first)[:500]
        if self._typed and _WRONG_TYPE.search(text):
            file = _FILE_NAMED.search(text)
            named = f'file "{file.group(1)}"' if file else "a file"
            return SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f"{named} of {self._files.place} does not have the declared types",
                detail=cause,
                hint="Declare the stream with the types that the files have.",
            )
        return SqlError(sqlstates.IO_ERROR, f"reading {self._files.place} failed", detail=cause)

    def check_history(self, start: Position) -> None:
        left_out = set(start.get("without", ()))
        entries = self._journal.between(int(start["seq"]), len(self._journal))
        for _, error in self._files.damaged([entry for entry in entries if entry.name not in left_out]):
            raise error

    def remaining(self, start: Position) -> tuple[Position, str | None]:
        left_out = set(start.get("without", ()))
        entries = self._journal.between(int(start["seq"]), len(self._journal))
        lost = [entry.name for entry, _ in self._files.damaged(entries)]
        missing = [name for name in lost if name not in left_out]
        without = sorted(left_out | set(lost))
        note = None
        if missing:
            shown = ", ".join(missing[:5]) + (" ..." if len(missing) > 5 else "")
            note = f"rebuilt without {len(missing)} files that are gone or changed: {shown}"
        return {"seq": int(start["seq"]), "without": without} if without else start, note
