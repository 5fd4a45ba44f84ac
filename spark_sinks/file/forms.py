"""How the records of a batch are one file: a line each, or the rows of a Parquet or an ORC file."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc
from pyspark.sql import types as spark

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.decode.columns import DecodeColumn
from spark_sinks.encode.values import Convert, decimal, plain
from spark_sinks.encode.written import refused
from spark_sinks.file.arrow_types import arrow_type

_KEYS: dict[type[spark.DataType], Convert] = {
    spark.StringType: str, spark.VarcharType: str,
    spark.ByteType: int, spark.ShortType: int, spark.IntegerType: int, spark.LongType: int,
}  # fmt: skip


@dataclass(frozen=True)
class FileForm:
    """``content`` takes the values of records: the JSON of rows where a file has columns, else what is in its lines."""

    suffix: str
    content: Callable[[Sequence[bytes]], Iterable[bytes]]


def form_of(format_: str, columns: Sequence[DecodeColumn]) -> FileForm:
    """0A000 for a column that such files do not have."""
    if format_ == "parquet":
        return FileForm("parquet", _rows_in(columns, pq.write_table))
    if format_ == "orc":
        return FileForm("orc", _rows_in(columns, orc.write_table))
    return _LINES[format_]


# --- lines ----------------------------------------------------------------------------------------------------------
def _json_lines(values: Sequence[bytes]) -> Iterable[bytes]:
    """JSON has no line breaks of its own."""
    return (value + b"\n" for value in values)


def _lines(values: Sequence[bytes]) -> Iterable[bytes]:
    """22000 for a line break, behind which another record would begin, and for a blank line, which is no record."""
    for value in values:
        blank = not value.strip(b" ")
        if blank or b"\n" in value or b"\r" in value:
            what = "a blank value" if blank else "a value with a line break"
            raise SqlError(
                sqlstates.DATA_EXCEPTION,
                f"{what} cannot be written to a file of lines",
                detail="Each line of such a file that is not blank is a record.",
                hint="Leave such rows out with WHERE, or choose the value.format json, parquet or orc.",
            )
    return _json_lines(values)


JSON_LINES = FileForm("json", _json_lines)
_LINES = {"json": JSON_LINES, "csv": FileForm("csv", _lines), "text": FileForm("txt", _lines)}


# --- files with columns ---------------------------------------------------------------------------------------------
def _rows_in(
    columns: Sequence[DecodeColumn], write: Callable[[pa.Table, io.BytesIO], None]
) -> Callable[[Sequence[bytes]], Iterable[bytes]]:
    converts = {column.name: _convert(column.type, column.name) for column in columns}
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in columns])

    def content(values: Sequence[bytes]) -> Iterable[bytes]:
        rows = [json.loads(value, parse_float=Decimal) for value in values]
        arrays = [
            pa.array([_converted(row[field.name], converts[field.name], field.name) for row in rows], field.type)
            for field in schema
        ]
        out = io.BytesIO()
        write(pa.Table.from_arrays(arrays, schema=schema), out)
        yield out.getvalue()

    return content


def _converted(value: Any, convert: Convert, column: str) -> Any:
    if value is None:
        return None
    try:
        return convert(value)
    except (ValueError, DecimalException) as error:
        raise SqlError(
            sqlstates.DATA_EXCEPTION,
            f'a value of column "{column}" cannot be written',
            detail=f"It is {str(value)[:200]!r}; dates have years from 1 to 9999.",
        ) from error


def _convert(kind: spark.DataType, column: str) -> Convert:
    """What makes of a value of JSON one that Arrow takes."""
    if isinstance(kind, spark.DecimalType):
        return decimal(kind)
    if isinstance(kind, spark.ArrayType):
        element = _or_null(_convert(kind.elementType, column))
        return lambda value: [element(each) for each in value]
    if isinstance(kind, spark.MapType):
        if type(kind.keyType) not in _KEYS:
            raise refused(column, "the keys of a map in a file are texts or whole numbers")
        key, value_of = _KEYS[type(kind.keyType)], _or_null(_convert(kind.valueType, column))
        return lambda value: [(key(name), value_of(each)) for name, each in value.items()]
    if isinstance(kind, spark.StructType):
        fields = {field.name: _or_null(_convert(field.dataType, column)) for field in kind.fields}

        def of_struct(value: Mapping[str, Any]) -> dict[str, Any]:
            return {name: inner(value.get(name)) for name, inner in fields.items()}

        return of_struct
    try:
        arrow_type(kind)
    except KeyError:
        raise refused(column, "files have no such type") from None
    return plain(kind)


def _or_null(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)
