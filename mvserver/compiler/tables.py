"""Tables of stores: queries write to them, and their rows are read where they are."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError

TABLE = "table"


def unreadable(name: str, position: int | None) -> SqlError:
    """For a query that names one in FROM."""
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f'cannot read from table "{name}"',
        detail="Its rows are in its store, and not in this server.",
        hint="Read it there; PRINT ENTITY shows rows, and a materialized view of the same query can be read here.",
        position=position,
    )
