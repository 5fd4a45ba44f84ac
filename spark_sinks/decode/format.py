"""A format as one frozen record. Each has a file of this folder, and a place in ``formats.FORMATS``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_sinks.base import DeclaredColumn
from spark_sinks.decode.columns import DecodeColumn, Decoded
from spark_sinks.encode.written import Encode, MakeForm
from spark_sinks.schema_registry.base import KnownSchemas, RegisteredSchema

Decoder = Callable[[Sequence[DecodeColumn], str, str], Decoded]
"""Given the declared columns, the frame's column that has the bytes, and a prefix for the names that it makes."""


SchemaDecoder = Callable[[Sequence[DecodeColumn], str, str, KnownSchemas], Decoded]
"""The same by the schemas that have been fetched so far; records ask for those that are missing."""


MakeEncoder = Callable[[Sequence[DecodeColumn], str], Encode]
"""Of the columns of a value, and the delimiter of its fields."""


@dataclass(frozen=True)
class Format:
    """``trial`` is a cheaper decoder: see :class:`spark_sinks.decode.Decoded`. ``by_schema`` takes the place of the
    decoder where the schema of a record is needed. ``registered`` is what a registry calls a format whose records have
    the ids of their schemas before them."""

    name: str
    decoder: Decoder | None = None
    trial: Decoder | None = None
    by_schema: SchemaDecoder | None = None
    registered: str | None = None
    columns: Callable[[RegisteredSchema], Sequence[DeclaredColumn]] | None = None  # of records of a schema
    written: MakeForm | None = None  # how queries write it by a schema
    encoder: MakeEncoder | None = None  # the same without one, where it is not JSON
    required: Callable[[], None] | None = None  # raises 0A000 where something is not installed
    check: Callable[[Sequence[DeclaredColumn]], None] | None = None  # raises 0A000 for columns that it cannot have
    typed_by_spark: bool = False  # records come as typed columns, and not as bytes
    of_values: bool = True
    of_keys: bool = False
    declared: bool = True  # statements can name it
