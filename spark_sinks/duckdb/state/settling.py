"""Contributions that do not change any more: the rows of closed windows that another query aggregates again.

What a group has from them can be kept without them: where the group is corrected by differences nothing more is needed,
else what they came to, of which its aggregates are computed anew with the contributions that are left.
"""

from __future__ import annotations

import duckdb

from spark_sinks.duckdb.changes.changelog import RetractedState, rolled_contributions, with_nulls
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state.state import merge_statement


def settle(cursor: duckdb.DuckDBPyConnection, state: RetractedState, until_us: int) -> None:
    """Forgets the contributions whose windows ended by then."""
    if not state.settles:
        return
    rows, closed = qualified(state.rows.table), f" WHERE epoch_us(r.{state.end}) <= {until_us}"
    if not cursor.execute(f"SELECT 1 FROM {rows} AS r{closed} LIMIT 1").fetchall():
        return
    if state.settled is not None:
        keys, found = state.groups.keys, rolled_contributions(state, rows, closed)
        for nulls in (False, True) if keys else (None,):
            of_these = f"SELECT * FROM ({found}) WHERE {with_nulls(keys, nulls)}"
            cursor.execute(merge_statement(state.settled, of_these, nulls=bool(nulls)))
    cursor.execute(f"DELETE FROM {rows} AS r{closed}")
