"""A view that the catalog has and DuckDB has not: just being made, rebuilt or dropped, or impossible to set up.

DuckDB's error names the view by its id, which no user knows; here it becomes one that names the view and the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog.snapshot import CatalogSource
from spark_sinks.duckdb.history.log import as_of_name, changes_name

Cause = Callable[[str], str | None]
"""Why a view (by id) has no rows; None where nothing is known against it."""


class MissingViews:
    def __init__(self, source: CatalogSource, cause: Cause) -> None:
        self._source = source
        self._cause = cause

    def explained(self, error: SqlError, view_ids: Collection[str]) -> SqlError:
        """The error itself, where it is about something else."""
        if error.sqlstate not in (sqlstates.UNDEFINED_TABLE, sqlstates.UNDEFINED_FUNCTION):
            return error
        view_id = next((each for each in view_ids if _names_history(error, each)), None)
        if view_id is not None:
            return self._without_history(error, view_id)
        view_id = next((each for each in view_ids if each in error.message), None)
        if view_id is None:
            return error
        relation = self._source.snapshot().relations_by_id.get(view_id)
        if relation is None:
            return SqlError(
                sqlstates.UNDEFINED_TABLE,
                "a materialized view that the query reads was dropped",
                position=error.position,
            )
        cause = self._cause(view_id)
        return SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            f'materialized view "{relation.name}" has no content yet',
            detail=cause
            or "It is being made or rebuilt at this moment, or the transaction's snapshot is older than it.",
            hint="mv_catalog.queries shows the state of its query.",
        )

    def _without_history(self, error: SqlError, view_id: str) -> SqlError:
        relation = self._source.snapshot().relations_by_id.get(view_id)
        return SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the history of a materialized view is not kept"
            if relation is None
            else f'the history of materialized view "{relation.name}" is not kept',
            detail="It is kept while somebody watches the view, and for some time behind that.",
            hint="WITH ('history.millis' = n) keeps a view's history always; SUBSCRIBE TO it begins one.",
            position=error.position,
        )


def _names_history(error: SqlError, view_id: str) -> bool:
    return any(name in error.message.lower() for name in (changes_name(view_id), as_of_name(view_id)))
