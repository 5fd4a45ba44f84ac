"""Neighbours of the session room that only remember what they were asked: no DuckDB, no Spark, no catalog."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from catalog.model import Role
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field, Result, Startup
from mvserver.session.backend import SessionBackend
from mvserver.session.services import SessionServices
from mvserver.session.session import Session
from mvserver.sql import parse
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.namespaces import Use
from mvserver.sql.statements.stores import PrintEntity
from mvserver.streaming.api import QueryState, QueryStatus
from tests.fake_pulls import FakePulls

VIEWS = ("v", "w", "sleepy", "broken", "late_error")


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
        self.pulls = FakePulls(VIEWS)
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
