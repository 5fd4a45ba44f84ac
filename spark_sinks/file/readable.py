"""What Spark reads for a file: itself, or a copy in its place.

A file of lines is copied where a line is too long (``lines``), one in ORC format is written anew (``orc``), and one of
another machine is brought here. A file that is not whole is named, and looked at again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.file.entity_files import EntityFiles
from spark_sinks.file.files import VisibleFile
from spark_sinks.file.lines import bounded_copy, may_have_long_lines

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_FETCHED_AT_ONCE = 8
_UNUSABLE_S = 5.0  # before a file that could not be looked through is looked through again


class ReadableFiles:
    """``schema`` is of files that Spark types itself, None for files of lines; ``format`` is what they are then.
    ``copies`` is a folder for copies of this machine's files that have lines of more than ``record_bytes_max``."""

    def __init__(
        self,
        files: EntityFiles,
        copies: Path,
        schema: StructType | None,
        record_bytes_max: int,
        *,
        format: str = "",  # noqa: A002 - the field's word
    ) -> None:
        self._files = files
        self._copies = copies
        self._schema = schema
        self._format = format
        self._record_bytes_max = record_bytes_max
        self._copying = threading.Lock()
        self._known: dict[str, Path] = {}  # by name: what Spark reads of files that are here
        self._unusable: dict[str, tuple[VisibleFile, float, SqlError]] = {}  # by name: until when, and why

    @property
    def copying(self) -> threading.Lock:
        return self._copying

    def known(self, name: str) -> Path | None:
        """What was made of a file of this machine; None where it is read itself."""
        return self._known.get(name)

    def prepared(self, file: VisibleFile, folder: Path, stopped: Callable[[], bool] = lambda: False) -> Path:
        """What lies in ``folder`` then belongs to who asked. Whoever is ``stopped`` uses it for nothing. Raises
        SqlError: 58030 for a file that is not whole or cannot be looked through, which is not tried again at once;
        42804 for one that has not the declared types; 55000 for one that is gone or is another one."""
        self._refuse_unusable(file)
        try:
            if self._files.here is None:
                path = self._files.fetch(file, folder, stopped)
                return path if stopped() else self._of_copy(file, path, stopped)
            if self._schema is None and not may_have_long_lines(file.name, file.size, self._record_bytes_max):
                return self._files.fetch(file, folder, stopped)
            with self._copying:
                return self._of_original(file, folder, stopped)
        except SqlError as error:
            if error.sqlstate != sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:
                self._unusable[file.name] = file, time.monotonic() + _UNUSABLE_S, error
            raise

    def prepared_all(self, files: Sequence[VisibleFile], folder: Path, stopped: Callable[[], bool]) -> Sequence[Path]:
        """The same for each; those of another machine come several at a time."""
        if self._files.here is not None or len(files) < 2:
            return [self.prepared(file, folder, stopped) for file in files]
        failed = threading.Event()

        def one(file: VisibleFile) -> Path:
            try:
                return self.prepared(file, folder, lambda: failed.is_set() or stopped())
            except BaseException:
                failed.set()
                raise

        with ThreadPoolExecutor(_FETCHED_AT_ONCE, thread_name_prefix="objects") as pool:
            return list(pool.map(one, files))

    def _of_copy(self, file: VisibleFile, path: Path, stopped: Callable[[], bool]) -> Path:
        if self._schema is not None:
            return self._typed(path, path)
        if may_have_long_lines(file.name, file.size, self._record_bytes_max):
            bounded = path.with_name(f".{path.name}")
            if bounded_copy(path, bounded, self._record_bytes_max, stopped):
                bounded.replace(path)
        return path

    def _of_original(self, file: VisibleFile, folder: Path, stopped: Callable[[], bool]) -> Path:
        original = self._files.fetch(file, folder, stopped)
        known = self._known.get(file.name)
        if known is not None and known.exists():
            return known
        if self._schema is not None:
            known = self._typed(original, folder / file.name)
            if known == original:
                self._known[file.name] = known
            return known
        copy = self._copies / file.name
        made = bounded_copy(original, copy, self._record_bytes_max, stopped)
        known = copy if made else original
        if not stopped():
            self._known[file.name] = known
        return known

    def _typed(self, path: Path, target: Path) -> Path:
        assert self._schema is not None  # noqa: S101 - asked before
        try:
            if self._format == "orc":
                from spark_sinks.file.orc import as_parquet

                as_parquet(path, target, self._schema)
                return target
            from pyarrow import parquet

            parquet.read_metadata(path)
        except (pa.ArrowException, OSError) as error:
            raise SqlError(
                sqlstates.IO_ERROR, f'file "{path.name}" is not whole: {words_of(error).splitlines()[0]}'
            ) from error
        return path

    def _refuse_unusable(self, file: VisibleFile) -> None:
        found = self._unusable.get(file.name)
        if found is None:
            return
        known, until, error = found
        if known == file and time.monotonic() < until:
            raise error.with_traceback(None)
        self._unusable.pop(file.name, None)
