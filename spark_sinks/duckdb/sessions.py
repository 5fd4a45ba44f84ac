"""Session windows: a batch's records become sessions, and these merge with the sessions that they touch.

Two sessions of a key touch where the one begins no later than the other ends. Sessions that are kept never touch each
other, so one look finds all that a new one joins. The state of a session is merged like partial aggregates of Spark.

A session's bounds are in its key and grow, so its table has no primary key: a row that is replaced is deleted and
inserted again in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb
import pyarrow as pa

from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state import MeasureInput, UpsertState, roll_up
from spark_sinks.duckdb.windows import Windowing

_NEW, _MERGED = "mv_sessions", "mv_merged_sessions"

Register = Callable[[str, pa.Table], None]


def joined(relation: str, keys: Sequence[str], start: str, end: str, passing: str) -> str:
    """The rows of ``relation`` with the bounds of the session that each belongs to; ``keys`` are the others."""
    by = ", ".join(keys)
    partition = f"PARTITION BY {by} " if by else ""
    of_island = f"PARTITION BY {', '.join([*keys, 'island'])}"
    reached = f"max({end}) OVER ({partition}ORDER BY {start} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    return (
        f"(SELECT * EXCLUDE (island, begins) REPLACE (min({start}) OVER ({of_island}) AS {start}, "
        f"max({end}) OVER ({of_island}) AS {end}) FROM ("
        f"SELECT *, sum(begins) OVER ({partition}ORDER BY {start} ROWS UNBOUNDED PRECEDING) AS island FROM ("
        f"SELECT *, CASE WHEN {start} <= {reached} THEN 0 ELSE 1 END AS begins FROM {relation} WHERE {passing})))"
    )


def merge(
    cursor: duckdb.DuckDBPyConnection,
    register: Register,
    state: UpsertState,
    windowing: Windowing,
    rolled_up: str,
) -> None:
    """Takes in the sessions of a batch: ``rolled_up`` is a query with the columns of the state."""
    register(_NEW, cursor.sql(rolled_up).to_arrow_table())
    start, end = f"k{windowing.start_key}", f"k{windowing.end_key}"
    others = [key for key in state.keys if key not in (start, end)]
    same = "".join(f" AND t.{key} IS NOT DISTINCT FROM s.{key}" for key in others)
    touched = f"EXISTS (SELECT 1 FROM {_NEW} AS s WHERE t.{start} <= s.{end} AND s.{start} <= t.{end}{same})"
    names = ", ".join([*state.keys, *(name for name, _ in state.state_columns)])
    table = qualified(state.table)
    both = f"(SELECT {names} FROM {_NEW} UNION ALL SELECT {names} FROM {table} AS t WHERE {touched})"
    merged = roll_up(
        state,
        joined(both, others, start, end, "true"),
        keys=state.keys,
        passing="true",
        count="n",
        inputs=[
            MeasureInput(partial=tuple(name for name, _ in measure.columns(i)))
            for i, measure in enumerate(state.measures)
        ],
        nulls=None,
    )
    register(_MERGED, cursor.sql(merged).to_arrow_table())
    cursor.execute(f"DELETE FROM {table} AS t WHERE {touched}")
    cursor.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM {_MERGED}")
