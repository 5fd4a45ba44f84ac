"""The files of a FILE store: which of them are complete, how they are read line by line, how one is added.

Files are immutable and appear whole, by a rename. A name that begins with ``.`` or ``_`` belongs to a writer that is
not done, and no reader looks at it; :func:`visible_files` is that rule's only place.
"""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.file.limits import FILE_RECORD_BYTES_MAX
from spark_sinks.file.options import is_under

_COMPRESSED = (".bz2", ".deflate", ".lz4", ".snappy", ".xz", ".zst")


@dataclass(frozen=True)
class VisibleFile:
    """A complete file: what the ledger tells files apart by."""

    name: str
    size: int
    mtime_ns: int


def visible_files(directory: Path, root: Path, known: Container[str] = ()) -> list[VisibleFile]:
    """The complete files of an entity, oldest first, those of one moment by name.

    Names in ``known`` are left out without a look at the file: a directory of many files is read often. Where the
    directory or a file of it is a link that leads out of ``root``, which is resolved, nothing is read: 42501.
    """
    refuse_outside(directory, root)
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith((".", "_")) or entry.name in known:
                continue
            try:
                status = entry.stat()
            except FileNotFoundError:  # removed since the directory was read, or a link to nowhere
                continue
            if entry.is_symlink():
                refuse_outside(Path(entry.path), root)
            if stat.S_ISREG(status.st_mode):
                found.append(VisibleFile(entry.name, status.st_size, status.st_mtime_ns))
    return sorted(found, key=lambda file: (file.mtime_ns, file.name))


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


def open_text(path: Path) -> BufferedIOBase:
    if path.suffix in _COMPRESSED:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'file "{path.name}" cannot be printed',
            hint="PRINT ENTITY shows text files, plain or compressed by gzip.",
        )
    file = path.open("rb")
    if path.suffix == ".parquet" or file.peek(4)[:4] == b"PAR1":
        file.close()
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'file "{path.name}" cannot be printed because it is in Parquet format',
            hint="Declare a stream over the entity and create a view of it.",
        )
    if path.suffix == ".gz":
        file.close()
        return gzip.open(path, "rb")
    return file


def read_line(content: BufferedIOBase, name: str) -> bytes:
    try:
        return content.readline(FILE_RECORD_BYTES_MAX + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SqlError(
            sqlstates.DATA_CORRUPTED, f'file "{name}" is not a whole gzip file', detail=f"{error}."
        ) from error


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
