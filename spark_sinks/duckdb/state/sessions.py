"""Session windows: a batch's records become sessions, and these merge with the sessions that they touch.

Two sessions of a key touch where the one begins no later than the other ends. Sessions that are kept never touch each
other, so one look finds all that a new one joins. The state of a session is merged like partial aggregates of Spark.
Counted values have the bounds of their session, too, and are moved to others when it grows.

A session's bounds are in its key and grow, so its table has no primary key: a row that is replaced is deleted and
inserted again in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb
import pyarrow as pa

from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state import value_tables
from spark_sinks.duckdb.state.roll_ups import merged_partials
from spark_sinks.duckdb.state.state import UpsertState
from spark_sinks.duckdb.state.windows import Windowing

_NEW, _MERGED, _MOVED = "mv_sessions", "mv_merged_sessions", "mv_moved_values"

Register = Callable[[str, pa.Table], None]


def joined(relation: str, keys: Sequence[str], start: str, end: str, passing: str) -> str:
    """The rows of ``relation`` with the bounds of the session that each belongs to; ``keys`` are the others. Of rows
    that begin at one moment the one that begins a session is the first: DuckDB may sort them anew for each window."""
    by = ", ".join(keys)
    partition = f"PARTITION BY {by} " if by else ""
    of_island = f"PARTITION BY {', '.join([*keys, 'island'])}"
    by_start = f"{partition}ORDER BY {start}"
    reached = f"max({end}) OVER ({by_start} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    return (
        f"(SELECT * EXCLUDE (island, begins) REPLACE (min({start}) OVER ({of_island}) AS {start}, "
        f"max({end}) OVER ({of_island}) AS {end}) FROM ("
        f"SELECT *, sum(begins) OVER ({by_start}, begins DESC ROWS UNBOUNDED PRECEDING) AS island FROM ("
        f"SELECT *, CASE WHEN {start} <= {reached} THEN 0 ELSE 1 END AS begins FROM {relation} WHERE {passing})))"
    )


def find(
    cursor: duckdb.DuckDBPyConnection,
    register: Register,
    state: UpsertState,
    windowing: Windowing,
    rolled_up: str,
) -> None:
    """Finds what the sessions of a batch become with those that they touch; ``rolled_up`` is a query with the columns
    of the state."""
    register(_NEW, cursor.sql(rolled_up).to_arrow_table())
    start, end = f"k{windowing.start_key}", f"k{windowing.end_key}"
    names = _names(state)
    both = f"(SELECT {names} FROM {_NEW} UNION ALL SELECT {names} FROM {_touched(state, windowing)})"
    merged = merged_partials(state, joined(both, windowing.others(state.keys), start, end, "true"))
    register(_MERGED, cursor.sql(merged).to_arrow_table())


def changed_keys(state: UpsertState, windowing: Windowing) -> str:
    """Query of the keys (g0 ...) of the rows that are seen of the sessions that were found, and of those that they
    replace."""
    keys = ", ".join(f"{key} AS g{i}" for i, key in enumerate(state.identity))
    return f"SELECT {keys} FROM {_MERGED} UNION SELECT {keys} FROM {_touched(state, windowing)}"


def put(cursor: duckdb.DuckDBPyConnection, state: UpsertState, windowing: Windowing) -> None:
    """Puts the sessions that were found in the place of those that they touch."""
    names = _names(state)
    cursor.execute(f"DELETE FROM {_touched(state, windowing)}")
    cursor.execute(f"INSERT INTO {qualified(state.table)} ({names}) SELECT {names} FROM {_MERGED}")


def put_values(
    cursor: duckdb.DuckDBPyConnection,
    register: Register,
    state: UpsertState,
    windowing: Windowing,
    takings: Sequence[str],
) -> None:
    """Takes in the values of a batch, each of which comes with the bounds of its own record. It gets those of the
    session that it is in, as do the values of sessions that this one touches. The sessions are found already."""
    bounds = (windowing.start_key, windowing.end_key)
    for index, (taking, values) in enumerate(zip(takings, state.values, strict=True)):
        cursor.execute(taking)
        moving = value_tables.moving(
            state.table, index, state.key_types, values, bounds=bounds, sessions=_MERGED, relation=_MOVED
        )
        register(_MOVED, cursor.sql(moving.selected).to_arrow_table())
        cursor.execute(moving.deleted)
        cursor.execute(moving.put)


def _touched(state: UpsertState, windowing: Windowing) -> str:
    """The rows of the state, as what follows FROM."""
    start, end = f"k{windowing.start_key}", f"k{windowing.end_key}"
    same = "".join(f" AND t.{key} IS NOT DISTINCT FROM s.{key}" for key in windowing.others(state.keys))
    return (
        f"{qualified(state.table)} AS t WHERE EXISTS ("
        f"SELECT 1 FROM {_NEW} AS s WHERE t.{start} <= s.{end} AND s.{start} <= t.{end}{same})"
    )


def _names(state: UpsertState) -> str:
    return ", ".join([*state.keys, *(name for name, _ in state.state_columns)])
