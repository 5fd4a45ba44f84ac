"""The files of one entity as its reader sees them, wherever they are; here those in a directory of this machine."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.file.files import VisibleFile, refuse_outside, visible_with_folders

_TICK_NS = 10_000_000  # how coarse the time of a directory's last change may be: a second one may not show in it


class EntityFiles(Protocol):
    """Errors are SqlError; OSError where the file system or the service does not answer."""

    place: str  # for messages, as "directory /a/b"
    here: Path | None  # where the files themselves lie; None where :meth:`fetch` makes a copy, which is the asker's

    def obstacle(self) -> str | None:
        """Why there are no files now; None where nothing is known of it."""

    def mark(self) -> object:
        """Equal to an earlier one where no file can have come since."""

    def look(self, known: Container[str] = ()) -> list[VisibleFile]:
        """The complete files but those of these names, oldest first."""

    def fetch(self, file: VisibleFile, folder: Path, stopped: Callable[[], bool]) -> Path:
        """Where Spark can read the file, under its own name; in ``folder``, if it has to be brought here. 55000 where
        it is gone or is another one. It need not be whole where the reader is ``stopped``."""

    def is_there(self, name: str) -> bool:
        """As far as it can be told at once; else true."""

    def damaged(self, files: Sequence[VisibleFile]) -> Iterator[tuple[VisibleFile, SqlError]]:
        """Those that are gone or are other ones than were read, with what is to be said of it (55000)."""


class DirectoryFiles:
    """:class:`EntityFiles` of a directory, which is resolved. No link is followed out of ``root``, which is the
    directory where it is not given."""

    def __init__(self, directory: Path, root: Path | None = None) -> None:
        self.here: Path | None = directory
        self.directory = directory
        self._root = directory.resolve() if root is None else root
        self._folders: Sequence[Path] = (directory,)
        self.place = f"directory {directory}"

    def obstacle(self) -> str | None:
        return None if self.directory.is_dir() else f"{self.place} does not exist"

    def mark(self) -> object:
        top = self.directory.stat().st_mtime_ns
        try:
            times = (top, *(folder.stat().st_mtime_ns for folder in self._folders[1:]))
        except FileNotFoundError:
            return object()
        return times if time.time_ns() - max(times) > _TICK_NS else object()

    def look(self, known: Container[str] = ()) -> list[VisibleFile]:
        found, self._folders = visible_with_folders(self.directory, self._root, known)
        return found

    def fetch(self, file: VisibleFile, folder: Path, stopped: Callable[[], bool]) -> Path:
        self._check(file)
        return self.directory / file.name

    def is_there(self, name: str) -> bool:
        return (self.directory / name).exists()

    def damaged(self, files: Sequence[VisibleFile]) -> Iterator[tuple[VisibleFile, SqlError]]:
        for file in files:
            try:
                self._check(file)
            except SqlError as error:
                if error.sqlstate != sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:
                    raise
                yield file, error

    def _check(self, file: VisibleFile) -> None:
        path = self.directory / file.name
        refuse_outside(path, self._root)
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise gone(file.name, self.place) from None
        if (status.st_size, status.st_mtime_ns) != (file.size, file.mtime_ns):
            raise changed(file.name, self.place)


def put_link(path: Path, link: Path) -> None:
    """A link to a file itself where the file system allows it: nothing that is put in its place later is read. Else a
    link to where it is now."""
    link.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, link, follow_symlinks=False)
    except OSError:  # another file system, or the owner's alone
        link.symlink_to(path.resolve())
        return
    if link.is_symlink():  # the link of a link
        link.unlink()
        link.symlink_to(path.resolve())


def put_moved(path: Path, target: Path) -> None:
    """A copy that belongs to the reader."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(path, target)


def gone(name: str, place: str) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'file "{name}" of {place} is gone',
        detail="The source no longer has all that the view is made of.",
        hint="REFRESH MATERIALIZED VIEW rebuilds a view from what is left.",
    )


def changed(name: str, place: str) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'file "{name}" of {place} changed after it was read',
        detail="Files of a FILE store are immutable and become visible whole.",
        hint="Restore the file, or write the new content under a new name.",
    )


def not_read(error: SqlError, place: str) -> str:
    return f"files of {place} are not read: {error.message}"
