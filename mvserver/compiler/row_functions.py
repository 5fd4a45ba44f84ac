"""``rowtime()`` and ``rowkey()``: what a record has besides its columns, bound as columns of every stored scan."""

from __future__ import annotations

from collections.abc import Mapping

from mvserver.compiler.expressions import ColumnReference
from mvserver.sql import types as t

ROW_TIME = ColumnReference(t.BIGINT, "rowtime()")  # the event time, in milliseconds since 1970
ROW_KEY = ColumnReference(t.VARCHAR, "rowkey()")  # the record's key as text; NULL for a record without one

ROW_FUNCTIONS: Mapping[str, ColumnReference] = {"rowtime": ROW_TIME, "rowkey": ROW_KEY}
