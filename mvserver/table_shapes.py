"""The columns of a relation as Arrow has them, for the stores whose tables queries write to."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from catalog.model import Column
from mvserver.dialect.typing import duck_types
from mvserver.sql.types import SqlType, parse_type
from spark_sinks.base import TableShape


def table_shape(columns: Sequence[Column], key: tuple[str, ...]) -> TableShape:
    fields = [pa.field(c.name, arrow_type(parse_type(c.type)), nullable=not c.not_null) for c in columns]
    return TableShape(pa.schema(fields), key)


def arrow_type(kind: SqlType) -> pa.DataType:
    """That of the same values."""
    if kind.key is not None and kind.element is not None:
        return pa.map_(arrow_type(kind.key), arrow_type(kind.element))
    if kind.element is not None:
        return pa.list_(arrow_type(kind.element))
    if kind.fields:
        return pa.struct([pa.field(name, arrow_type(inner)) for name, inner in kind.fields])
    if kind.precision is not None:
        return pa.decimal128(kind.precision, kind.scale or 0)
    printed = kind.kind.row.duckdb_printed or ""  # clients are shown the smallest integers as wider ones
    found = pa.int8() if printed == "TINYINT" else duck_types.arrow_type(printed)
    if found is None:
        raise ValueError(f"no column can have type {kind}")
    return found
