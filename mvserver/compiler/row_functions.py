"""``rowtime()``, ``rowkey()`` and ``rowmetadata()``: what a record has besides its columns, bound as columns of every
stored scan."""

from __future__ import annotations

from mvserver.compiler.expressions import ColumnReference
from mvserver.sql import types as t

ROW_TIME = ColumnReference(t.BIGINT, "rowtime()")  # the event time, in milliseconds since 1970
ROW_KEY = ColumnReference(t.VARCHAR, "rowkey()")  # the record's key as text; NULL for a record without one
ROW_METADATA = "rowmetadata()"  # a struct with the fields that the kind of the store has

ROW_FUNCTIONS = frozenset({"rowtime", "rowkey", "rowmetadata"})


def row_columns(metadata: t.SqlType | None) -> tuple[ColumnReference, ...]:
    """Those of a relation whose records' metadata has this type."""
    known = (ROW_TIME, ROW_KEY)
    return known if metadata is None else (*known, ColumnReference(metadata, ROW_METADATA))
