"""The key column that tells the rows of a small batch apart: a merge then finds the rows of a state by it alone.

DuckDB's join hashes all columns that a merge compares by ``=``, for each row of the state. That is most of what a small
batch costs a large state of several keys. A key that is compared by ``>=`` and ``<=`` is not hashed, but looked at
where the others are equal. So one column is hashed, if few rows of the batch have each of its values.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from spark_sinks.duckdb.state.roll_ups import RollUp

ROWS_MAX = 1_000  # of more, so many rows of a state meet one by one key that to hash all keys costs less
MEETING_MAX = 1.5  # rows of the batch that a row of the state meets, where its values are spread as the batch's are
_TYPES = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ",
          "TIMESTAMP WITH TIME ZONE", "VARCHAR", "UUID")  # fmt: skip


def _is_decimal(kind: str) -> bool:
    return kind.startswith("DECIMAL") and kind.endswith(")")  # no array of them


class Telling:
    """Of one table of a batch."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._meeting: dict[str, float] = {}  # by the column's name

    def key(self, roll_up: RollUp) -> str | None:
        """The name of the key in the state; None where all keys had better be hashed."""
        state = roll_up.state
        if roll_up.nulls or len(roll_up.keys) < 2 or self._table.num_rows > ROWS_MAX:
            return None
        if not all(kind in _TYPES or _is_decimal(kind) for kind in state.key_types):
            return None
        if not set(roll_up.keys) <= set(self._table.column_names):  # of windows that were found since
            return None
        meeting, column = min((self._of(column), column) for column in roll_up.keys)
        return state.keys[roll_up.keys.index(column)] if meeting <= MEETING_MAX else None

    def _of(self, column: str) -> float:
        known = self._meeting.get(column)
        if known is None:
            counts = pc.value_counts(self._table.column(column)).field("counts").to_pylist()
            known = self._meeting[column] = sum(count * count for count in counts) / max(1, self._table.num_rows)
        return known
