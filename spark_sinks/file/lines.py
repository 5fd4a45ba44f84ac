"""The lines of a file in bounded memory, as Spark divides and decompresses it, and a copy without those too long.

Spark's text source holds a whole line in memory, however long. So a file that may have a line of more bytes than a
record may have is looked through before Spark reads it. If it has one, Spark reads a copy in its place, in which a
mark stands for each such line (``spark_sinks.oversize``); all other lines keep their content and their numbers.
"""

from __future__ import annotations

import bz2
import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.oversize import mark

_CHUNK_BYTES = 1024 * 1024
_BREAK = re.compile(rb"\r\n|\r|\n")
NO_CODEC = (".lz4", ".snappy", ".passthrough")  # Hadoop has them, and nothing here can look into such files
_COMPRESSED = (".gz", ".bz2", ".deflate", ".zst")


class _Stopped(Exception):  # noqa: N818 - not an error
    """The reader is being closed."""


def may_have_long_lines(name: str, size: int, most: int) -> bool:
    """By name and size alone: whether the file has to be looked through."""
    return size > most or Path(name).suffix in (*_COMPRESSED, *NO_CODEC)


def lines(path: Path, kept: int) -> Iterator[tuple[bytes, int]]:
    """Each line's first ``kept`` bytes and its size, without its end, which is a line feed, a return or both."""
    first, size, held = b"", 0, b""
    for chunk in _chunks(path):
        data = held + chunk
        data, held = (data[:-1], b"\r") if data.endswith(b"\r") else (data, b"")
        begin, *others = _BREAK.split(data)
        first += begin[: kept - len(first)]
        size += len(begin)
        for piece in others:
            yield first, size
            first, size = piece[:kept], len(piece)
    if held or size:
        yield first, size


def has_long_line(path: Path, most: int, stopped: Callable[[], bool]) -> bool:
    """Whether a line has more than ``most`` bytes; looks for line ends only."""
    open_bytes = 0
    for chunk in _chunks(path):
        if stopped():
            raise _Stopped
        begin = min((at for at in (chunk.find(b"\n"), chunk.find(b"\r")) if at >= 0), default=-1)
        if begin < 0:
            open_bytes += len(chunk)
        elif open_bytes + begin > most or (len(chunk) > most and _has_long_piece(chunk, most)):
            return True
        else:
            open_bytes = len(chunk) - 1 - max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        if open_bytes > most:
            return True
    return False


def _has_long_piece(chunk: bytes, most: int) -> bool:
    return any(len(piece) > most for piece in _BREAK.split(chunk))


def bounded_copy(path: Path, target: Path, most: int, stopped: Callable[[], bool]) -> bool:
    """Whether ``target`` was needed and made: under the same suffix, with the same times. False where no line is too
    long, or the reader is being closed. Raises SqlError (58030) for a file that cannot be read whole, or for which
    there is no room, and leaves nothing of a copy; 0A000 for one that cannot be looked into."""
    if path.suffix in NO_CODEC:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'file "{path.name}" is compressed in a form that is not supported',
            detail="The length of its lines cannot be told before it is read.",
            hint="Use gzip, bzip2 or Zstandard, or no compression.",
        )
    aside = target.parent / f".{target.name}"
    try:
        if not has_long_line(path, most, stopped):
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        with _writer(aside, path.suffix) as out:
            for first, size in lines(path, most):
                if stopped():
                    raise _Stopped
                out.write((first if size <= most else mark(first, size, most)) + b"\n")
        status = path.stat()
        os.utime(aside, ns=(status.st_atime_ns, status.st_mtime_ns))
        aside.rename(target)
    except _Stopped:
        return False
    except (OSError, EOFError, zlib.error) as error:
        raise _unusable(path, error) from error
    finally:
        with suppress(OSError):
            aside.unlink()
    return True


def _unusable(path: Path, error: Exception) -> SqlError:
    """The codecs' errors have no number: the content is not theirs, or ends too early."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None:
        return SqlError(sqlstates.IO_ERROR, f'file "{path.name}" is not whole: {error}')
    return SqlError(sqlstates.IO_ERROR, f'file "{path.name}" cannot be looked through: {os.strerror(number)}')


def _chunks(path: Path) -> Iterator[bytes]:
    if path.suffix == ".deflate":
        yield from _inflated(path)
        return
    with _reader(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def _reader(path: Path) -> Any:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    if path.suffix == ".bz2":
        return bz2.open(path, "rb")
    if path.suffix == ".zst":
        return pa.input_stream(str(path), compression="zstd")
    return path.open("rb", buffering=0)


def _inflated(path: Path) -> Iterator[bytes]:
    engine = zlib.decompressobj()
    with path.open("rb") as file:
        while data := file.read(_CHUNK_BYTES):
            while data:
                yield engine.decompress(data, _CHUNK_BYTES)
                data = engine.unconsumed_tail
    if tail := engine.flush():
        yield tail
    if not engine.eof and path.stat().st_size:
        raise EOFError("Compressed file ended before the end-of-stream marker was reached")


def _writer(path: Path, suffix: str) -> Any:
    if suffix == ".gz":
        return gzip.open(path, "wb", compresslevel=1)
    if suffix == ".bz2":
        return bz2.open(path, "wb", compresslevel=1)
    if suffix == ".zst":
        return pa.output_stream(str(path), compression="zstd")
    if suffix == ".deflate":
        return _Deflating(path.open("wb"))
    return path.open("wb")


class _Deflating:
    """A writer of what Hadoop calls deflate."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._engine = file, zlib.compressobj(1)

    def write(self, data: bytes) -> None:
        self._file.write(self._engine.compress(data))

    def __enter__(self) -> _Deflating:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.write(self._engine.flush())
        self._file.close()
