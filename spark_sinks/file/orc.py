"""ORC files as Parquet files of the declared types, which Spark then reads.

Spark's own reader of ORC makes NULL of what does not have the declared type, and reads times by the zone of its JVM.
So a file is compared with the declaration first, column by column, and written anew without loss, a stripe at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc
from pyspark.sql import types as spark

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.file.arrow_types import PLAIN, arrow_type

_OUT_OF_RANGE = "out of range for nanosecond resolution"
_INTEGERS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_WIDTHS: dict[type[spark.DataType], int] = {
    spark.ByteType: 8, spark.ShortType: 16, spark.IntegerType: 32, spark.LongType: 64,
}  # fmt: skip


def as_parquet(path: Path, target: Path, schema: spark.StructType) -> None:
    """42804 where a column does not have the declared type, or has a value that does not fit into it or is not read.
    A column that is not there is NULL. ``target`` may be the file itself. Raises pyarrow's errors for a file that is
    not whole."""
    file = orc.ORCFile(str(path))
    columns = [_column(file.schema, field, path.name) for field in schema.fields]
    wanted = pa.schema([(field.name, arrow_type(field.dataType)) for field in schema.fields])
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}")
    try:
        with pq.ParquetWriter(aside, wanted, compression="zstd", compression_level=1) as writer:
            for stripe in range(file.nstripes):
                writer.write_table(_typed(_stripe(file, stripe, path.name), columns, wanted, path.name))
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


def _stripe(file: orc.ORCFile, number: int, name: str) -> pa.RecordBatch:
    """Arrow reads times of ORC as nanoseconds in 64 bits, which does not make the file one that is not whole."""
    try:
        return file.read_stripe(number)
    except pa.ArrowInvalid as error:
        if _OUT_OF_RANGE not in str(error):
            raise
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH,
            f'file "{name}" has a time that is not read from ORC',
            detail=f"{words_of(error).splitlines()[0].rstrip('.')}.",
            hint="Times of ORC are read from 1678 to 2261. Keep others in Parquet.",
        ) from error


def _typed(stripe: pa.RecordBatch, columns: Sequence[int | None], wanted: pa.Schema, file: str) -> pa.Table:
    made = []
    for at, field in zip(columns, wanted, strict=True):
        try:
            made.append(
                pa.nulls(stripe.num_rows, field.type) if at is None else stripe.column(at).cast(field.type, safe=True)
            )
        except pa.ArrowException as error:
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f'file "{file}" has a value that does not fit into column "{field.name}"',
                detail=f"{words_of(error).splitlines()[0].rstrip('.')}.",
                hint="Declare the column with the type that the file has; times have microseconds at most.",
            ) from error
    return pa.table(made, schema=wanted)


def _column(given: pa.Schema, field: spark.StructField, file: str) -> int | None:
    """Its place in the file: the one of this name, else the one that differs from it in case alone."""
    places = [at for at, name in enumerate(given.names) if name == field.name]
    places = places or [at for at, name in enumerate(given.names) if name.lower() == field.name.lower()]
    if not places:
        return None
    found = given.field(places[0])
    if len(places) > 1 or not _fits(found.type, field.dataType):
        what = "several columns" if len(places) > 1 else f"a column of ORC's type {found.type}"
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH,
            f'file "{file}" does not have the declared types',
            detail=f'It has {what} for column "{field.name}" of Spark\'s type {field.dataType.simpleString()}.',
            hint="Declare the stream with the types that the files have.",
        )
    return places[0]


def _fits(given: pa.DataType, wanted: spark.DataType) -> bool:
    """Whether a value of ``given`` is one of ``wanted`` without loss, but for the digits of seconds. An ORC timestamp
    without a zone is a TIMESTAMP, one with a zone is a TIMESTAMP_LTZ."""
    if given in _INTEGERS:
        return _INTEGERS[given] <= _WIDTHS.get(type(wanted), 0)
    if isinstance(wanted, spark.DoubleType):
        return given in (pa.float32(), pa.float64())
    if isinstance(wanted, spark.DecimalType):
        return bool(pa.types.is_decimal(given) and given.scale == wanted.scale and given.precision <= wanted.precision)
    if isinstance(wanted, spark.TimestampType):
        return bool(pa.types.is_timestamp(given) and given.tz is not None)
    if isinstance(wanted, spark.TimestampNTZType):
        return bool(pa.types.is_timestamp(given) and given.tz is None)
    if isinstance(wanted, spark.ArrayType):
        return pa.types.is_list(given) and _fits(given.value_type, wanted.elementType)
    if isinstance(wanted, spark.MapType):
        return (
            pa.types.is_map(given)
            and _fits(given.key_type, wanted.keyType)
            and _fits(given.item_type, wanted.valueType)
        )
    if isinstance(wanted, spark.StructType):
        names = [field.name for field in wanted.fields]
        return (
            pa.types.is_struct(given)
            and [given.field(at).name for at in range(given.num_fields)] == names
            and all(_fits(given.field(at).type, field.dataType) for at, field in enumerate(wanted.fields))
        )
    return bool(given == PLAIN.get(type(wanted)))
