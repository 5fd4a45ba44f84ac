"""The table that a batch's merges read: the Arrow table that Spark gave, or a copy that DuckDB keeps.

Every statement over an Arrow table has its schema made anew, is planned without knowing its values, and scans by calls
back into Arrow. A copy costs more than that once, and a third less for each of a hundred views of 1,000 records.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from spark_sinks.duckdb.changes.changelog import Register

BATCH = "mv_batch"
_ARROW = "mv_arrow"
_COPIED_FROM_VIEWS = 4
_COPIED_ROWS_MAX = 20_000  # above, it is the rows that take the time


def show(cursor: duckdb.DuckDBPyConnection, register: Register, table: pa.Table, views: int) -> bool:
    """Under the name BATCH; whether that is a copy, which goes with ``drop`` or with the transaction, rolled back."""
    untyped = any(pa.types.is_null(field.type) for field in table.schema)  # a column of a copy has a type
    if untyped or views < _COPIED_FROM_VIEWS or table.num_rows > _COPIED_ROWS_MAX:
        register(BATCH, table)
        return False
    register(_ARROW, table)
    cursor.execute(f"CREATE TEMP TABLE {BATCH} AS FROM {_ARROW}")
    return True


def drop(cursor: duckdb.DuckDBPyConnection) -> None:
    cursor.execute(f"DROP TABLE temp.{BATCH}")
