"""The rows that a changelog has at a moment, found by reading it once: in a database of their own, in memory."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from mvserver import limits
from mvserver.quoting import quoted
from spark_sinks.duckdb.batch_plans import TableMerge
from spark_sinks.duckdb.batch_table import BATCH
from spark_sinks.duckdb.changes.capture import take_changes
from spark_sinks.duckdb.changes.changelog import KeyedRows
from spark_sinks.duckdb.names import qualified


class RowsNow:
    """Those of one state. Raises MemoryError where they are more than the memory that they may have."""

    def __init__(self, state: KeyedRows) -> None:
        self._state = state
        self._connection = duckdb.connect(
            ":memory:",
            config={
                # The rows, their primary key and those of a batch; nothing is written beside them.
                "memory_limit": f"{2 * limits.BOUNDED_READ_BYTES_MAX}B",
                "temp_directory": "",
                "threads": 1,
            },
        )
        self._connection.execute("SET enable_external_access = false")
        for statement in ("SET TimeZone = 'UTC'", 'CREATE SCHEMA "_state"', *state.create_statements()):
            self._connection.execute(statement)

    def take(self, merge: TableMerge) -> None:
        """What a batch does to the rows."""
        (view,) = merge.views
        assert view.changes is not None  # noqa: S101 - it is a changelog's
        try:
            self._register(BATCH, merge.table)
            take_changes(self._connection, self._register, self._state, view.changes, None, None)
        except duckdb.OutOfMemoryException as error:
            raise MemoryError from error

    def table(self, names: Sequence[str]) -> pa.Table:
        """Its columns under these ``names``, in no order."""
        columns = ", ".join(f"{c} AS {quoted(name)}" for c, name in zip(self._state.columns, names, strict=True))
        return self._connection.sql(f"SELECT {columns} FROM {qualified(self._state.table)}").to_arrow_table()

    def _register(self, name: str, table: pa.Table) -> None:
        self._connection.register(name, table)

    def close(self) -> None:
        self._connection.close()
