"""A pull service that only remembers what it was asked, for rooms that have one for a neighbour: no DuckDB."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from catalog.model import Relation
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field, Result
from mvserver.serving.api import NOBODY, Owner, PlanRequest, PullPlan, PullScope, never


class Data:
    """The number that every view shows; it moves when a test says so."""

    def __init__(self) -> None:
        self.value = 1


class FakeSnapshot:
    def __init__(self, data: Data) -> None:
        self.data = data
        self.pinned: int | None = None
        self.closed = False
        self.lost = False
        self.open_result = False
        self._interrupted = threading.Event()

    def begin(self) -> None:
        assert self.pinned is None
        self.pinned = self.data.value

    def end(self) -> None:
        self.pinned = None

    def interrupt(self) -> None:
        self._interrupted.set()

    def close(self) -> None:
        self.closed = True

    def run(
        self,
        plan: PullPlan,
        parameters: Sequence[Any],
        *,
        timeout_s: float | None = None,
        tables: Any = (),
        now: Any = None,
    ) -> Result:
        assert not self.closed
        assert not self.open_result, "a cursor with an open result was used again"
        if "sleepy" in plan.sql:
            self._interrupted.clear()
            if self._interrupted.wait(20):
                raise RuntimeError("INTERRUPT Error")
        if "broken" in plan.sql:
            raise SqlError(sqlstates.DIVISION_BY_ZERO, "division by zero")
        self.open_result = True
        return Result("SELECT ", plan.fields, self._rows(plan, parameters))

    def _rows(self, plan: PullPlan, parameters: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        value = self.data.value if self.pinned is None else self.pinned
        shown = value if not parameters else parameters[0]
        try:
            for _ in range(3):
                arrays = [pa.array([shown]) for _ in plan.fields]
                yield pa.RecordBatch.from_arrays(arrays, names=[f.name for f in plan.fields])
                if "late_error" in plan.sql:
                    raise SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range")
        finally:
            self.open_result = False


class NothingFinished:
    def knows(self, plan: PullPlan) -> bool:
        return False

    def find(self, plan: PullPlan, parameters: Sequence[Any]) -> Result | None:
        return None


class FakePulls:
    """``views`` are the relations that there are; None for any. ``texts`` are those of what was planned."""

    def __init__(self, views: Sequence[str] | None = None) -> None:
        self.views = views
        self.finished = NothingFinished()
        self.data = Data()
        self.snapshots: list[FakeSnapshot] = []
        self.scopes: list[PullScope] = []
        self.texts: list[str] = []
        self.generation = 1
        self._plans: dict[object, PullPlan] = {}

    def cached(self, text: str, scope: PullScope, parameter_oids: Sequence[int] = ()) -> PullPlan | None:
        self.scopes.append(scope)
        return self._plans.get((text, scope, tuple(parameter_oids), self.generation))

    def known(self, text: str, scope: PullScope) -> tuple[PullPlan, Sequence[Any]] | None:
        found = self.cached(text, scope)
        return None if found is None or found.parameter_oids else (found, ())

    def plan(self, request: PlanRequest) -> PullPlan:
        text, scope, parameter_oids = request.text, request.scope, request.parameter_oids
        found = None if text is None else self.cached(text, scope, parameter_oids)
        if found is None:
            found = self._plan(request.select, scope, parameter_oids)
            if text is not None:
                self._plans[text, scope, tuple(parameter_oids), self.generation] = found
        return found

    def _plan(self, select: exp.Expression, scope: PullScope, parameter_oids: Sequence[int]) -> PullPlan:
        text = select.sql("duckdb")
        self.texts.append(text)
        tables = [table.name for table in select.find_all(exp.Table)]
        for table in tables:
            if self.views is not None and table not in self.views:
                raise SqlError(sqlstates.UNDEFINED_TABLE, f'relation "{table}" does not exist', position=15)
        count = len({node.sql() for node in select.find_all(exp.Parameter, exp.Placeholder)})
        oids = tuple(parameter_oids[i] if i < len(parameter_oids) and parameter_oids[i] else 25 for i in range(count))
        fields = tuple(Field(name or "?column?", 23) for name in select.named_selects)
        return PullPlan(text, fields, oids, tuple(tables), catalog_only=not tables)

    def check_policy(self, view: Relation, condition: str) -> None:
        """Whatever it is."""

    def visible_rows(self, view_id: str, scope: PullScope) -> None:
        return None

    def explain(
        self, plan: PullPlan, *, owner: Owner = NOBODY, stopped: Callable[[], bool] = never, costs: bool = True
    ) -> Sequence[str]:
        return [f"Pull {plan.sql}"]

    def snapshot(self, own: object = None, owner: Owner = NOBODY) -> FakeSnapshot:
        snapshot = FakeSnapshot(self.data)
        self.snapshots.append(snapshot)
        return snapshot
