"""The health of a directory: whether it can be read, where it ends, and whether its files are those that were read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.base import Position, SourceHealth
from spark_sinks.file.files import VisibleFile, refuse_outside
from spark_sinks.file.journal import FileJournal

_WRONG_TYPE = re.compile(r"PARQUET_COLUMN_DATA_TYPE_MISMATCH|SchemaColumnConvertNotSupported")
_FILE_NAMED = re.compile(r"([^/\s]+\.parquet)")


class DirectoryHealth:
    """A :class:`spark_sinks.base.Health` of one directory.

    ``problem`` is what its feeder has met, one that does not pass with a ``!`` before it. ``look`` gives the end of all
    files that there are now. ``typed``: the files are read by a schema.
    """

    def __init__(
        self,
        directory: Path,
        root: Path,
        journal: FileJournal,
        *,
        problem: Callable[[], str | None],
        look: Callable[[], Position],
        typed: bool,
    ) -> None:
        self._directory = directory
        self._root = root
        self._journal = journal
        self._problem = problem
        self._end = look
        self._typed = typed

    def look(self, position: Position) -> SourceHealth:
        problem = self._problem()
        if problem is not None and problem.startswith("!"):
            return SourceHealth("failed", problem[1:])
        if problem is None and not self._directory.is_dir():
            problem = f"directory {self._directory} does not exist"
        if problem is not None:
            return SourceHealth("stalled", problem)
        try:
            return SourceHealth("ok", latest=self._end())
        except SqlError as error:
            return SourceHealth("stalled", leads_out(error, self._directory))
        except OSError as error:
            return SourceHealth("stalled", f"directory {self._directory} cannot be read: {error.strerror}")

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
                f"{named} of directory {self._directory} does not have the declared types",
                detail=cause,
                hint="Declare the stream with the types that the files have.",
            )
        return SqlError(sqlstates.IO_ERROR, f"reading directory {self._directory} failed", detail=cause)

    def check_history(self, start: Position) -> None:
        left_out = set(start.get("without", ()))
        for entry in self._journal.between(int(start["seq"]), len(self._journal)):
            if entry.name not in left_out:
                self.check_unchanged(entry)

    def remaining(self, start: Position) -> tuple[Position, str | None]:
        left_out = set(start.get("without", ()))
        gone = []
        for entry in self._journal.between(int(start["seq"]), len(self._journal)):
            try:
                self.check_unchanged(entry)
            except SqlError:
                gone.append(entry.name)
        missing = [name for name in gone if name not in left_out]
        without = sorted(left_out | set(gone))
        note = None
        if missing:
            shown = ", ".join(missing[:5]) + (" ..." if len(missing) > 5 else "")
            note = f"rebuilt without {len(missing)} files that are gone or changed: {shown}"
        return {"seq": int(start["seq"]), "without": without} if without else start, note

    def check_unchanged(self, entry: VisibleFile) -> None:
        """55000 for a file that is gone, or is another one than was read."""
        path = self._directory / entry.name
        refuse_outside(path, self._root)
        try:
            status = path.stat()
        except FileNotFoundError:
            raise SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                f'file "{entry.name}" of directory {self._directory} is gone',
                detail="The source no longer has all that the view is made of.",
                hint="REFRESH MATERIALIZED VIEW rebuilds a view from what is left.",
            ) from None
        if (status.st_size, status.st_mtime_ns) != (entry.size, entry.mtime_ns):
            raise changed(entry.name, self._directory)


def changed(name: str, directory: Path) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'file "{name}" of directory {directory} changed after it was read',
        detail="Files of a FILE store are immutable and become visible whole, by a rename.",
        hint="Restore the file, or write the new content under a new name.",
    )


def leads_out(error: SqlError, directory: Path) -> str:
    return f"files of directory {directory} are not read: {error.message}"
