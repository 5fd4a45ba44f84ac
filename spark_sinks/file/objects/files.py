"""The objects of one entity as files that its reader brings here, a batch's at a time."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.file.entity_files import changed, gone
from spark_sinks.file.files import VisibleFile, is_visible, oldest_first
from spark_sinks.file.limits import FILE_NAME_BYTES_MAX
from spark_sinks.file.objects.base import ObjectStore, OtherVersion


class ObjectFiles:
    """:class:`spark_sinks.file.entity_files.EntityFiles` of the objects whose keys begin with ``prefix``. An object of
    more than ``bytes_max`` is not brought here (54000)."""

    here: Path | None = None

    def __init__(self, objects: ObjectStore, prefix: str, place: str, bytes_max: int) -> None:
        self._objects = objects
        self._prefix = prefix
        self._bytes_max = bytes_max
        self.place = place

    def obstacle(self) -> str | None:
        return None

    def mark(self) -> object:
        """Nothing but the list itself tells."""
        return object()

    def look(self, known: Container[str] = ()) -> list[VisibleFile]:
        return oldest_first(file for file in self._all() if file.name not in known)

    def _all(self) -> Iterator[VisibleFile]:
        for found in self._objects.list(self._prefix):
            name = found.key[len(self._prefix) + 1 :]
            if is_visible(name):
                yield VisibleFile(name, found.size, found.mtime_ns, found.version)

    def fetch(self, file: VisibleFile, folder: Path, stopped: Callable[[], bool]) -> Path:
        if file.size > self._bytes_max:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                f'file "{file.name}" is too large: it has {file.size} bytes, and at most {self._bytes_max} are read',
                hint="The server's setting object_bytes_max is the bound.",
            )
        if "\0" in file.name or any(len(part.encode()) > FILE_NAME_BYTES_MAX for part in file.name.split("/")):
            raise SqlError(sqlstates.PROGRAM_LIMIT_EXCEEDED, f'the name of file "{file.name}" is too long or has a NUL')
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        try:
            self._objects.download(f"{self._prefix}/{file.name}", file.version, path, stopped)
        except OtherVersion:
            (error,) = [error for _, error in self.damaged([file])] or [changed(file.name, self.place)]
            raise error from None
        if not stopped() and path.stat().st_size != file.size:
            raise SqlError(sqlstates.IO_ERROR, f'file "{file.name}" did not arrive whole')
        return path

    def is_there(self, name: str) -> bool:
        return True

    def damaged(self, files: Sequence[VisibleFile]) -> Iterator[tuple[VisibleFile, SqlError]]:
        there = {file.name: file for file in self._all()}
        for file in files:
            found = there.get(file.name)
            if found is None:
                yield file, gone(file.name, self.place)
            elif not found.is_content_of(file):
                yield file, changed(file.name, self.place)
