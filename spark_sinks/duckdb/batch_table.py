"""The table that a batch's merges read: the Arrow table that Spark gave, or a copy that DuckDB keeps.

Every statement over an Arrow table has its schema made anew, is planned without knowing its values, and scans by calls
back into Arrow. A copy costs more than that once, and a third less for each of a hundred views of 1,000 records.

To give DuckDB a name for an Arrow table, and to take it away, costs a tenth of a small commit. So small tables of the
same columns share a name, which stays with the cursor. What it stands for hands over the rows that are shown.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from spark_sinks.duckdb.state.telling import Telling
from spark_sinks.duckdb.statements import HandedRows

BATCH = "mv_batch"
_ARROW = "mv_arrow"
_COPIED_FROM_VIEWS = 4
_COPIED_ROWS_MAX = 20_000  # above, it is the rows that take the time
_HANDED_ROWS_MAX = 20_000  # above, DuckDB had better read by several threads, and only the columns that it needs
_NOTHING = Telling(pa.table({}))


class BatchTable:
    """Of one cursor. In its transactions ``show`` and ``hide`` are called in turns."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self._rows: HandedRows | None = None
        self._name: str | None = None  # under which a table is registered
        self._changed = False  # names were given or taken away since the transaction began
        self._copied = False
        self.telling = _NOTHING  # of the table that is shown

    def begin(self) -> None:
        """A transaction: the one before is committed, or was rolled back."""
        self._changed = False

    def show(self, table: pa.Table, views: int) -> None:
        """Under the name BATCH. Between that and ``hide`` no other table may be shown."""
        self.telling = Telling(table)
        untyped = any(pa.types.is_null(field.type) for field in table.schema)  # a column of a copy has a type
        self._copied = not untyped and views >= _COPIED_FROM_VIEWS and table.num_rows <= _COPIED_ROWS_MAX
        self._register(_ARROW if self._copied else BATCH, table)
        if self._copied:
            self._cursor.execute(f"CREATE TEMP TABLE {BATCH} AS FROM {_ARROW}")

    def hide(self) -> None:
        self.telling = _NOTHING
        if self._copied:
            self._cursor.execute(f"DROP TABLE temp.{BATCH}")
            self._copied = False
        if self._rows is None:
            self._unregister()
        else:
            self._rows.clear()

    def rolled_back(self) -> None:
        """A copy that the transaction made has gone. Names are as they were before it, and go where it changed any."""
        self._copied, self.telling = False, _NOTHING
        if self._changed:
            for name in (BATCH, _ARROW):
                self._cursor.unregister(name)
            self._name, self._rows = None, None
        elif self._rows is not None:
            self._rows.clear()

    def _register(self, name: str, table: pa.Table) -> None:
        handed = table.num_rows <= _HANDED_ROWS_MAX
        if self._rows is not None and handed and name == self._name and table.schema.equals(self._rows.schema):
            self._rows.put(table)
            return
        self._unregister()
        self._name, self._changed = name, True
        if handed:
            self._rows = HandedRows(table.schema)
            self._rows.put(table)
        self._cursor.register(name, self._rows if handed else table)

    def _unregister(self) -> None:
        name, self._name, self._rows = self._name, None, None
        if name is not None:
            self._changed = True
            self._cursor.unregister(name)
