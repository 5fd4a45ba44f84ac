"""What PRINT ENTITY shows of a file: its lines, or the rows of a file with types as JSON."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.file.files import record_too_long
from spark_sinks.file.limits import FILE_RECORD_BYTES_MAX
from spark_sinks.file.lines import NO_CODEC, lines
from spark_sinks.table_rows import text_of

_ROWS = 1_000  # that are made Python's at a time
_PARQUET, _ORC = b"PAR1", b"ORC"  # how such files begin
_NO_CODEC = (*NO_CODEC, ".xz")


def shown(path: Path) -> Generator[bytes, None, None]:
    """The records of a file in their order. XX001 for one that is not whole, 0A000 for one that cannot be looked into,
    54000 for a line that is too long. OSError where the file is gone."""
    if path.suffix in _NO_CODEC:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'file "{path.name}" cannot be printed',
            hint="It is compressed in a form that is not supported; use gzip, bzip2, Zstandard or deflate.",
        )
    with path.open("rb") as file:
        begin = file.read(len(_PARQUET))
    try:
        if path.suffix == ".parquet" or begin == _PARQUET:
            yield from _of_batches(_parquet(path))
        elif path.suffix == ".orc" or begin.startswith(_ORC):
            yield from _of_batches(_orc(path))
        else:
            yield from _lines(path)
    except OverflowError as error:
        raise SqlError(
            sqlstates.DATETIME_FIELD_OVERFLOW, f'file "{path.name}" has a time beyond the year 9999, which is not shown'
        ) from error
    except (EOFError, zlib.error, pa.ArrowException) as error:
        raise _not_whole(path, error) from error
    except OSError as error:
        if error.errno is None:  # a codec's, for what is not of its form
            raise _not_whole(path, error) from error
        raise


def _lines(path: Path) -> Iterator[bytes]:
    for number, (line, size) in enumerate(lines(path, FILE_RECORD_BYTES_MAX), start=1):
        if size > FILE_RECORD_BYTES_MAX:
            raise record_too_long(f'line {number} of file "{path.name}"')
        yield line


def _of_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        wanted = pa.schema([field.with_type(_without_nanoseconds(field.type)) for field in batch.schema])
        for row in batch.cast(wanted, safe=False).to_pylist(maps_as_pydicts="lossy"):
            yield text_of(row).encode()


def _parquet(path: Path) -> Iterator[Any]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        yield from file.iter_batches(batch_size=_ROWS)


def _orc(path: Path) -> Iterator[Any]:
    from pyarrow import orc

    file = orc.ORCFile(str(path))
    for stripe in range(file.nstripes):
        rows = file.read_stripe(stripe)
        for at in range(0, rows.num_rows, _ROWS):
            yield rows.slice(at, _ROWS)


def _without_nanoseconds(kind: pa.DataType) -> pa.DataType:
    """Python has microseconds at most."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if pa.types.is_list(kind):
        return pa.list_(_without_nanoseconds(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_without_nanoseconds(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_without_nanoseconds(kind.value_type), kind.list_size)
    if pa.types.is_map(kind):
        return pa.map_(_without_nanoseconds(kind.key_type), _without_nanoseconds(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_nanoseconds(field.type)) for field in kind])
    return kind


def _not_whole(path: Path, error: BaseException) -> SqlError:
    words = next(iter(words_of(error).splitlines()), "").rstrip(".")
    return SqlError(sqlstates.DATA_CORRUPTED, f'file "{path.name}" is not whole', detail=f"{words}.")
