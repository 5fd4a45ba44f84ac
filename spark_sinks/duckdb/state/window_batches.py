"""A batch of a view over a window, before it is merged: which of its records count, and what they make of sessions."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from spark_sinks.duckdb.changes.changelog import Register
from spark_sinks.duckdb.state import sessions, windows
from spark_sinks.duckdb.state.roll_ups import RollUp
from spark_sinks.duckdb.state.state import UpsertState
from spark_sinks.duckdb.state.windows import Judging, Windowing


def take_in(
    cursor: duckdb.DuckDBPyConnection,
    register: Register,
    query_id: str,
    state: UpsertState,
    windowing: Windowing,
    judging: Judging,
    batch: str,
    roll_ups: Sequence[RollUp],
) -> str | None:
    """Keeps what is late. The roll-ups then find the judged batch; those of sessions are evaluated here, and the result
    is the query of the keys that change: the bounds in them grow with what was there."""
    judged = windows.judge(cursor, query_id, windowing, judging, batch)
    register(windows.JUDGED, judged)
    windows.take_judged(cursor, query_id, judging, judged)
    if windowing.gap_us is None:
        return None
    (roll_up,) = roll_ups
    sessions.find(cursor, register, state, windowing, roll_up.query)
    return sessions.changed_keys(state, windowing)
