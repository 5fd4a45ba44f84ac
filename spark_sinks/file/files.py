"""The files of a FILE store: which of them are complete, and how one is added.

Files are immutable and appear whole, by a rename. A name that begins with ``.`` or ``_`` belongs to a writer that is
not done, and no reader looks at it. Folders that are called ``key=value`` belong to the entity, others do not;
:func:`visible_files` is these rules' only place, with :func:`is_visible` for names of objects.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.file.limits import FILE_RECORD_BYTES_MAX
from spark_sinks.file.options import is_under

_HIDDEN = (".", "_")


@dataclass(frozen=True)
class VisibleFile:
    """A complete file: what the ledger tells files apart by. ``name`` has the folders below the entity that it is in;
    ``version`` is what a service for objects calls a content, and empty for files of this machine."""

    name: str
    size: int
    mtime_ns: int
    version: str = ""

    def is_content_of(self, other: VisibleFile) -> bool:
        """Whether what was read as ``other`` is this file's content still."""
        return (self.size, self.version) == (other.size, other.version) if other.version else self == other


def is_partition(folder: str) -> bool:
    """Whether a folder below an entity belongs to it."""
    return not folder.startswith(".") and folder.find("=") > 0


def is_visible(name: str) -> bool:
    """Whether a name with its folders, below an entity, is that of a complete file."""
    *folders, last = name.split("/")
    return bool(last) and not last.startswith(_HIDDEN) and all(map(is_partition, folders))


def oldest_first(files: Iterable[VisibleFile]) -> list[VisibleFile]:
    """Those of one moment by name."""
    return sorted(files, key=lambda file: (file.mtime_ns, file.name))


def visible_files(directory: Path, root: Path, known: Container[str] = ()) -> list[VisibleFile]:
    """The complete files of an entity, oldest first.

    Names in ``known`` are left out without a look at the file: a directory of many files is read often. Where the
    directory or a file of it is a link that leads out of ``root``, which is resolved, nothing is read: 42501. A link
    to a folder is not followed.
    """
    return visible_with_folders(directory, root, known)[0]


def visible_with_folders(
    directory: Path, root: Path, known: Container[str] = ()
) -> tuple[list[VisibleFile], Sequence[Path]]:
    """The folders that were looked into, too, the entity's own first."""
    refuse_outside(directory, root)
    found: list[VisibleFile] = []
    folders, looked = [("", directory)], []
    while folders:
        prefix, folder = folders.pop()
        looked.append(folder)
        try:
            entries = os.scandir(folder)
        except FileNotFoundError:
            if folder == directory:
                raise
            continue  # removed since the one above was read
        with entries:
            for entry in entries:
                name = prefix + entry.name
                if is_partition(entry.name) and entry.is_dir(follow_symlinks=False):
                    folders.append((f"{name}/", Path(entry.path)))
                elif not entry.name.startswith(_HIDDEN) and name not in known:
                    file = _file(entry, name, root)
                    if file is not None:
                        found.append(file)
    return oldest_first(found), looked


def _file(entry: os.DirEntry[str], name: str, root: Path) -> VisibleFile | None:
    try:
        status = entry.stat()
    except FileNotFoundError:  # removed since the directory was read, or a link to nowhere
        return None
    if entry.is_symlink():
        refuse_outside(Path(entry.path), root)
    return VisibleFile(name, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def refuse_outside(path: Path, root: Path) -> None:
    """42501 for what is not under the root, all links followed. Asked anew before each reading: links can change."""
    if not is_under(path, root):
        raise outside(path.name)


def outside(what: str) -> SqlError:
    return SqlError(
        sqlstates.INSUFFICIENT_PRIVILEGE,
        f'"{what}" leads out of the directories that are open to stores of type FILE',
        hint="Links are followed before the comparison with the configured roots.",
    )


def record_too_long(what: str) -> SqlError:
    return SqlError(
        sqlstates.PROGRAM_LIMIT_EXCEEDED,
        f"{what} is too long",
        detail=f"A record of a file has at most {FILE_RECORD_BYTES_MAX} bytes.",
    )


def write_visible(directory: Path, name: str, content: bytes) -> None:
    """A file that appears whole or not at all, also over a power cut: written aside, synced, renamed."""
    write_all_visible([(directory, name, (content,))])


def write_all_visible(files: Sequence[tuple[Path, str, Iterable[bytes]]]) -> None:
    """Files of given pieces: nothing is visible before all of them are whole."""
    hidden = [directory / f".{name}" for directory, name, _ in files]
    try:
        for path, (_, _, pieces) in zip(hidden, files, strict=True):
            write_synced(path, pieces)
        for path, (directory, name, _) in zip(hidden, files, strict=True):
            path.rename(directory / name)
    except BaseException:
        for path in hidden:
            with suppress(OSError):
                path.unlink()
        raise
    for directory, _, _ in files:
        sync_directory(directory)


def write_synced(path: Path, pieces: Iterable[bytes]) -> None:
    """A new file, whose content is on the disk on return."""
    with path.open("xb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
