"""Neighbours of the session room that only remember what they were asked: no DuckDB, no Spark, no catalog."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from sqlglot import exp

from catalog.model import Role
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field, Result, Startup
from mvserver.serving.api import NOBODY, Owner, PlanRequest, PullPlan, PullScope, never
from mvserver.session.backend import SessionBackend
from mvserver.session.services import SessionServices
from mvserver.session.session import Session
from mvserver.sql import parse
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.namespaces import Use
from mvserver.sql.statements.stores import PrintEntity
from mvserver.streaming.api import QueryState, QueryStatus

VIEWS = ("v", "w", "sleepy", "broken", "late_error")


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
    def __init__(self) -> None:
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
            if table not in VIEWS:
                raise SqlError(sqlstates.UNDEFINED_TABLE, f'relation "{table}" does not exist', position=15)
        count = len({node.sql() for node in select.find_all(exp.Parameter, exp.Placeholder)})
        oids = tuple(parameter_oids[i] if i < len(parameter_oids) and parameter_oids[i] else 25 for i in range(count))
        fields = tuple(Field(name or "?column?", 23) for name in select.named_selects)
        return PullPlan(text, fields, oids, tuple(tables), catalog_only=not tables)

    def explain(self, plan: PullPlan, *, owner: Owner = NOBODY, stopped: Callable[[], bool] = never) -> Sequence[str]:
        return [plan.sql]

    def snapshot(self, own: object = None, owner: Owner = NOBODY) -> FakeSnapshot:
        snapshot = FakeSnapshot(self.data)
        self.snapshots.append(snapshot)
        return snapshot


class FakeRouter:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.schemas: list[str] = []
        self.roles: list[str] = []
        self.validated: list[tuple[str, list[str]]] = []
        self.refuse: set[str] = set()

    def execute(self, statement: Statement, context: Any) -> Result:
        name = type(statement).__name__
        if name in self.refuse:
            raise SqlError(sqlstates.DUPLICATE_TABLE, f"{name} is refused")
        if isinstance(statement, Use):
            context.schema = statement.name.parts[-1]
            return Result("USE")
        if isinstance(statement, PrintEntity):
            deadline = time.monotonic() + 20
            while not context.cancelled() and time.monotonic() < deadline:
                time.sleep(0.01)
            raise SqlError(sqlstates.QUERY_CANCELED, "stopped")
        fields = self.fields(statement, context)
        self.done.append(statement.text)
        self.schemas.append(context.schema)
        self.roles.append(context.role)
        if fields is not None:
            return Result("LIST", fields, iter([pa.RecordBatch.from_arrays([pa.array(["a"])], names=["name"])]))
        return Result("DONE")

    def execute_all(self, statements: Sequence[Statement], context: Any) -> list[Result]:
        before = list(self.done)
        try:
            return [self.execute(statement, context) for statement in statements]
        except SqlError:
            self.done = before
            raise

    def validate(self, statement: Statement, context: Any, earlier: Sequence[Statement] = ()) -> None:
        self.validated.append((statement.text, [each.text for each in earlier]))
        if type(statement).__name__ in self.refuse:
            raise SqlError(sqlstates.DUPLICATE_TABLE, f"{type(statement).__name__} is refused")

    def fields(self, statement: Statement, context: Any) -> tuple[Field, ...] | None:
        return (Field("name", 25),) if type(statement).__name__.startswith("List") else None


class FakeEnds:
    def __init__(self, views: FakeViews) -> None:
        self._views = views

    def wait(self, timeout_s: float) -> bool:
        self._views.waits.append(timeout_s)
        if self._views.state is QueryState.TERMINATED:
            raise SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, "the view is not kept up to date")
        if not self._views.there:
            time.sleep(min(timeout_s, 0.02))
        return self._views.there

    def behind(self) -> SqlError:
        return SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, "the view lags", detail="By 3 records.")


@dataclass
class FakeViews:
    state: QueryState = QueryState.RUNNING
    empty: bool = False
    failed: int = 0  # how many times a query has failed
    waits: list[float] = field(default_factory=list)
    asked: list[tuple[str, ...]] = field(default_factory=list)  # whose sources were asked for their ends
    there: bool = True  # whether the views have come to the ends of their sources
    confirmed: float | None = None

    def present_ends(self, view_ids: Sequence[str]) -> FakeEnds:
        self.asked.append(tuple(view_ids))
        return FakeEnds(self)

    def confirmed_at(self, view_ids: Sequence[str]) -> float | None:
        return self.confirmed

    def status(self, query_id: str) -> QueryStatus:
        return QueryStatus(query_id, self.state, error="08006: the broker is away", filled_share=0.25)

    def failures(self) -> int:
        return self.failed

    def refuse_empty(self, view_ids: Sequence[str]) -> None:
        if self.state is QueryState.FAILED and self.empty:
            raise SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, "the view has no complete content")

    def wait_while_filling(self, view_ids: Sequence[str], timeout_s: float) -> None:
        self.waits.append(timeout_s)
        self.refuse_empty(view_ids)
        if self.state is QueryState.FILLING:
            time.sleep(min(timeout_s, 0.02))
            raise SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, "view is still being filled", detail="25 % is read."
            )


class FakeDirectory:
    def __init__(self) -> None:
        self.roles = [Role("r1", 10, "postgres", superuser=True), Role("r2", 16384, "anna", superuser=False)]
        self.changes = 0

    def generation(self) -> int:
        return self.changes

    def role(self, name: str) -> Role | None:
        return next((role for role in self.roles if role.name == name), None)

    def role_by_oid(self, oid: int) -> Role | None:
        return next((role for role in self.roles if role.oid == oid), None)

    def is_member(self, name: str, role: Role) -> bool:
        return name in ("postgres", role.name)

    def may_connect(self, name: str, database: str) -> bool | None:
        return True if database == "postgres" else None

    def query_of_view(self, view_id: str) -> tuple[str, str] | None:
        return view_id, f"query-of-{view_id}"


class World:
    """A backend with its fakes, and short ways to speak to a session."""

    def __init__(self, **services: Any) -> None:
        self.pulls = FakePulls()
        self.router = FakeRouter()
        self.views = FakeViews()
        self.directory = FakeDirectory()
        self.services = SessionServices(parse, self.router, self.pulls, self.views, self.directory, **services)
        self.backend = SessionBackend(self.services)

    def open(self, user: str = "postgres", database: str = "postgres", **parameters: str) -> Session:
        return self.backend.open_session(Startup(user, database, parameters, "127.0.0.1", local=True))

    def close(self) -> None:
        self.backend.close()


def rows(result: Result) -> list[tuple[Any, ...]]:
    found = [tuple(row.values()) for batch in result.batches for row in batch.to_pylist()]
    result.close()
    return found


def run(session: Session, text: str) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """(tag, rows) of each statement of a text; closed also after an error, as the wire does."""
    with closing(session.simple_query(text)) as results:
        return [(result.tag, rows(result)) for result in results]


def values(session: Session, text: str) -> list[tuple[Any, ...]]:
    """The rows of the last statement."""
    return run(session, text)[-1][1]


def show(session: Session, name: str) -> str:
    return values(session, f"SHOW {name}")[0][0]
