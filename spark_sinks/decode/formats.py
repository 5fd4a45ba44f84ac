"""The table of formats: a new one is a file of this folder and a row here."""

from __future__ import annotations

from collections.abc import Sequence

from spark_sinks.decode.columns import DecodeColumn, Decoded
from spark_sinks.decode.csv_format import CSV
from spark_sinks.decode.format import Format, PlannedFormat
from spark_sinks.decode.json_format import JSON
from spark_sinks.decode.parquet_format import PARQUET
from spark_sinks.decode.primitive_format import PRIMITIVE
from spark_sinks.decode.rows_format import ROWS

FORMATS = (PRIMITIVE, JSON, CSV, PARQUET, ROWS)
PLANNED = (
    PlannedFormat("avro"),
    PlannedFormat("protobuf", ("key.descriptor.name", "value.descriptor.name")),
)

_BY_NAME = {format_.name: format_ for format_ in FORMATS}
_NOT_YET = tuple(planned.name for planned in PLANNED)

VALUE_FORMATS = tuple(format_.name for format_ in FORMATS if format_.of_values and format_.declared)
KEY_FORMATS = tuple(format_.name for format_ in FORMATS if format_.of_keys)
NAMES_OF_VALUES = tuple(dict.fromkeys((*VALUE_FORMATS, *_NOT_YET, *KEY_FORMATS)))
"""What a statement may call a value's format, whether or not there is such a format of values."""
NAMES_OF_KEYS = (*KEY_FORMATS, *_NOT_YET)


def format_of(name: str) -> Format:
    return _BY_NAME[name]


def decode(name: str, columns: Sequence[DecodeColumn], value: str, prefix: str, *, trial: bool = False) -> Decoded:
    """The stages for one relation's values or keys, which are in the frame's column ``value``; ``prefix`` keeps its
    columns apart from those of other relations. With ``trial``, a cheaper decoder where the format has one."""
    format_ = format_of(name)
    decoder = format_.trial if trial and format_.trial is not None else format_.decoder
    return decoder(columns, value, prefix)
