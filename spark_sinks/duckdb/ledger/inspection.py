"""Facts about the views' file for people: how large the views are, and what was committed last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from spark_sinks.duckdb.names import is_of_view, qualified, qualified_view
from spark_sinks.duckdb.state import shared_states
from spark_sinks.duckdb.state.shared_states import SHARED
from spark_sinks.duckdb.state.state import HISTORY, NULLS

LEDGER_ROWS_SHOWN_MAX = 10_000  # the newest; each pipeline keeps some hundreds


@dataclass(frozen=True)
class ViewSize:
    """``stored_bytes``: the blocks of the file that hold its state. What has not been checkpointed is not in them, a
    block, or the keys of a shared table, may be counted for several views, and an index is not counted."""

    rows: int
    stored_bytes: int


def view_sizes(cursor: duckdb.DuckDBPyConnection) -> Mapping[str, ViewSize]:
    """By view id; all of one committed state."""
    cursor.execute("BEGIN TRANSACTION")
    try:
        block_bytes = _block_bytes(cursor)
        tables = _names(cursor, "SELECT table_name AS name FROM duckdb_tables() WHERE schema_name = '_state'")
        shared = shared_states.places(cursor)
        sizes = {}
        for view in _names(cursor, "SELECT view_name FROM duckdb_views() WHERE schema_name = '_views'"):
            ((rows,),) = cursor.execute(f"SELECT count(*) FROM {qualified_view(view)}").fetchall()
            own = [table for table in tables if is_of_view(table, view) and not table.endswith(HISTORY)]
            blocks = set[int]().union(*(_blocks(cursor, table) for table in own))
            for state, place in shared.items():
                if is_of_view(state, view):
                    blocks |= _blocks(cursor, place.table, place.prefix)
                    blocks |= _blocks(cursor, place.table + NULLS, place.prefix)
            sizes[view] = ViewSize(rows, len(blocks) * block_bytes)
    finally:
        cursor.execute("ROLLBACK")  # nothing was written
    return sizes


def state_tables(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    """Those of all states, whether they have tables of their own or share one."""
    return _names(
        cursor,
        "SELECT name FROM (SELECT table_name AS name, schema_name, database_name FROM duckdb_tables() "
        "UNION ALL SELECT view_name, schema_name, database_name FROM duckdb_views()) "
        f"WHERE schema_name = '_state' AND NOT starts_with(name, '{SHARED}')",
    )


def batches(cursor: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """(pipeline, generation, batch id, start, end, records, committed at), the newest first."""
    return cursor.execute(
        "SELECT pipeline_id, generation, batch_id, start_position, end_position, records, committed_at "
        'FROM "_ledger".batches ORDER BY committed_at DESC, generation DESC, batch_id DESC LIMIT $1',
        [LEDGER_ROWS_SHOWN_MAX],
    ).fetchall()


def _names(cursor: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [name for (name,) in cursor.execute(f"{query} AND database_name = current_database()").fetchall()]


def _block_bytes(cursor: duckdb.DuckDBPyConnection) -> int:
    rows = cursor.execute(
        "SELECT block_size FROM pragma_database_size() WHERE database_name = current_database()"
    ).fetchall()
    return int(rows[0][0])


def _blocks(cursor: duckdb.DuckDBPyConnection, table: str, prefix: str = "") -> set[int]:
    """Of the columns whose names begin so, and of the keys."""
    rows = cursor.execute(
        f"SELECT DISTINCT unnest(list_prepend(block_id, additional_block_ids)) "
        f"FROM pragma_storage_info('{qualified(table)}') WHERE persistent "
        f"AND (starts_with(column_name, '{prefix}') OR starts_with(column_name, 'k'))"
    ).fetchall()
    return {block for (block,) in rows if block >= 0}
