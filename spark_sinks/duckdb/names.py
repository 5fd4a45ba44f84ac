"""Names as the statements for DuckDB have them."""

from __future__ import annotations

from collections.abc import Sequence


def rows_of(tables: Sequence[str]) -> str:
    """A query of how many rows these tables of states have together."""
    counts = " + ".join(f"(SELECT count(*) FROM {qualified(table)})" for table in tables)
    return f"SELECT {counts or 0}"


def state_name(view_id: str, version: int) -> str:
    """The state table of a definition version of a view. The names of all its other tables begin so."""
    return f"{view_id}_{version}"


def is_of_view(table: str, view_id: str) -> bool:
    """Whether the table is of a state of the view, in any version."""
    return table.startswith(f"{view_id}_")


def qualified_view(view_id: str) -> str:
    """A view of the schema in which all views of the user's columns are."""
    return f'"_views"."{view_id}"'


def qualified(table: str) -> str:
    """A table of the schema in which all states are; the names of tables are our own."""
    return f'"_state"."{table}"'
