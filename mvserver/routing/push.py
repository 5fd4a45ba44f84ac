"""The parts of a push query: its plan, where it begins, and its rows on their way to the session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import pyarrow as pa

from mvserver import sqlstates
from mvserver.compiler.changelogs import CHANGE_KIND, replaces_rows
from mvserver.compiler.lower_duckdb import duckdb_type
from mvserver.compiler.plans import ContinuousPlan
from mvserver.errors import SqlError
from mvserver.routing import continuous
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.serving.api import RowShaper
from mvserver.session.context import SessionContext
from mvserver.sql.push import hinted
from mvserver.sql.statements.queries import PushQuery
from mvserver.streaming.api import LiveRows


def plan(statement: PushQuery, context: SessionContext, services: Services) -> PlannedQuery:
    """Names, types and what a push query can do, without Spark."""
    try:
        planned = continuous.plan(statement.select, context, services, default_starting=continuous.LATEST)
    except SqlError as error:
        raise hinted(error) from None
    if replaces_rows(planned.plan) and any(output.name == CHANGE_KIND for output in planned.plan.outputs):
        raise SqlError(
            sqlstates.DUPLICATE_COLUMN,
            f'column "{CHANGE_KIND}" specified more than once',
            detail="The kind of each row's change is given in a column of this name.",
            hint="Give the column of the SELECT another name with AS.",
        )
    return planned


def columns(plan_: ContinuousPlan) -> Sequence[tuple[str, str]]:
    """Names and DuckDB types, as a view of the same SELECT would have them; before them, where rows replace each other,
    the kind of the change."""
    kind = [(CHANGE_KIND, "VARCHAR")] if replaces_rows(plan_) else []
    return [*kind, *((output.name, duckdb_type(output.type)) for output in plan_.outputs)]


class PushBatches:
    """The rows as the session reads them: cut at LIMIT and shaped for the wire."""

    def __init__(self, rows: LiveRows, shaper: RowShaper, limit: int | None) -> None:
        self._rows = rows
        self._shaper = shaper
        self._left = limit

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._left == 0:
            raise StopIteration
        batch = self._rows.take()
        if self._left is not None:
            batch = batch.slice(0, self._left)
            self._left -= batch.num_rows
            if self._left == 0:
                self._rows.close()
        return self._shaper.shape(batch)

    def ready(self) -> bool:
        return self.wait(0.0)

    def wait(self, seconds: float | None) -> bool:
        """Whether there is something to read, rows or the end: now, or within this time."""
        return self._left == 0 or self._rows.wait(seconds)

    def interrupt(self) -> None:
        self._rows.interrupt()

    def close(self) -> None:
        self._rows.close()
        self._shaper.close()
