"""What a push query is made of: its plan, where it begins, and its rows on their way to the session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import pyarrow as pa

from mvserver import sqlstates
from mvserver.compiler.lower_duckdb import duckdb_type
from mvserver.compiler.plans import ContinuousPlan, Projection
from mvserver.errors import SqlError
from mvserver.routing import continuous
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.serving.api import RowShaper
from mvserver.session.context import SessionContext
from mvserver.sql.push import BOUNDED_HINT, hinted
from mvserver.sql.statements.queries import PushQuery
from mvserver.streaming.api import LiveRows


def plan(statement: PushQuery, context: SessionContext, services: Services) -> PlannedQuery:
    """Names, types and what a push query can do, without Spark."""
    try:
        planned = continuous.plan(statement.select, context, services, default_starting=continuous.LATEST)
    except SqlError as error:
        raise hinted(error) from None
    if planned.plan.scan.derived is not None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "joins and UNION ALL are not supported in a push query",
            hint=f"Create a materialized view of it, and read that. {BOUNDED_HINT}",
        )
    scan = planned.plan.scan
    if scan.kind != "stream" or scan.window is not None:
        what = "windows" if scan.kind == "stream" else f"changes of a {scan.kind}"
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{what} are not supported in a push query",
            hint="Create a materialized view of them, and read it.",
        )
    if not isinstance(planned.plan, Projection):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "aggregates are not supported in a push query",
            hint=f"Create a materialized view of them, and read it. {BOUNDED_HINT}",
        )
    return planned


def columns(plan_: ContinuousPlan) -> Sequence[tuple[str, str]]:
    """Names and DuckDB types, as a view of the same SELECT would have them."""
    return [(output.name, duckdb_type(output.type)) for output in plan_.outputs]


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
