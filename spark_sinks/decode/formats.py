"""The table of formats: a new one is a file of this folder and a row here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spark_sinks.decode.avro_format import AVRO
from spark_sinks.decode.columns import DecodeColumn, Decoded
from spark_sinks.decode.csv_format import COMMA, CSV, DELIMITED, decode_csv
from spark_sinks.decode.format import Format
from spark_sinks.decode.json_format import JSON
from spark_sinks.decode.json_schema_format import JSON_SCHEMA
from spark_sinks.decode.orc_format import ORC
from spark_sinks.decode.parquet_format import PARQUET
from spark_sinks.decode.primitive_format import PRIMITIVE
from spark_sinks.decode.protobuf_format import PROTOBUF
from spark_sinks.decode.rows_format import ROWS
from spark_sinks.decode.text_format import TEXT
from spark_sinks.decode.xml_format import XML
from spark_sinks.schema_registry.base import NO_SCHEMAS, KnownSchemas

FORMATS = (PRIMITIVE, JSON, CSV, DELIMITED, XML, PARQUET, ORC, TEXT, AVRO, PROTOBUF, JSON_SCHEMA, ROWS)

_BY_NAME = {format_.name: format_ for format_ in FORMATS}

VALUE_FORMATS = tuple(format_.name for format_ in FORMATS if format_.of_values and format_.declared)
KEY_FORMATS = tuple(format_.name for format_ in FORMATS if format_.of_keys)
NAMES_OF_VALUES = tuple(dict.fromkeys((*VALUE_FORMATS, *KEY_FORMATS)))
"""What a statement may call a value's format, whether or not there is such a format of values."""


def format_of(name: str) -> Format:
    return _BY_NAME[name]


def decode(
    name: str,
    columns: Sequence[DecodeColumn],
    value: str,
    prefix: str,
    *,
    trial: bool = False,
    schemas: KnownSchemas = NO_SCHEMAS,
    delimiter: str | None = None,
) -> Decoded:
    """The stages for one relation's values or keys, which are in the frame's column ``value``; ``prefix`` keeps its
    columns apart from those of other relations. With ``trial``, a cheaper decoder where the format has one.
    ``delimiter`` is that of the format ``delimited``."""
    format_ = format_of(name)
    if format_ is DELIMITED:
        return decode_csv(columns, value, prefix, delimiter or COMMA)
    if format_.by_schema is not None:
        return format_.by_schema(columns, value, prefix, schemas)
    decoder = format_.trial if trial and format_.trial is not None else format_.decoder
    assert decoder is not None  # noqa: S101 - a format has one of them
    return decoder(columns, value, prefix)


def needs_schemas(names: Iterable[str | None]) -> bool:
    """Whether one of the formats has its schemas in a registry."""
    return any(name is not None and format_of(name).by_schema is not None for name in names)
