"""Push queries in a session: rows as they come, by every way to read them, and how they end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from mvserver.errors import SqlError
from mvserver.front import Field, Result
from mvserver.routing.push import PushBatches
from mvserver.serving.api import PlanRequest, PullPlan, ReadsStream
from mvserver.session.session import Session
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.queries import PushQuery
from mvserver.streaming.push.push_rows import PushRows
from tests.fake_pulls import FakePulls
from tests.session.fakes import FakeRouter, World, rows, run

FIELDS = (Field("a", 23),)


class StreamPulls(FakePulls):
    """Knows that ``s`` is a stream."""

    def plan(self, request: PlanRequest) -> PullPlan:
        if any(table.name == "s" for table in request.select.find_all(exp.Table)):
            raise ReadsStream("stream", "s", 15)
        return super().plan(request)


class PlainShaper:
    fields = FIELDS

    def shape(self, batch: Any) -> Any:
        return batch

    def close(self) -> None:
        pass


class PushRouter(FakeRouter):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[PushRows] = []
        self.fields_now = FIELDS

    def execute(self, statement: Statement, context: Any) -> Result:
        if not isinstance(statement, PushQuery):
            return super().execute(statement, context)
        source = PushRows(on_close=lambda: self.open.remove(source))
        self.open.append(source)
        batches = PushBatches(source, PlainShaper(), statement.limit)
        return Result("SELECT ", self.fields_now, batches, live=batches.ready)

    def fields(self, statement: Statement, context: Any) -> tuple[Field, ...] | None:
        return self.fields_now if isinstance(statement, PushQuery) else super().fields(statement, context)

    def put(self, *numbers: int) -> None:
        (source,) = self.open
        source.put(pa.table({"a": pa.array(numbers, pa.int32())}))


class StreamWorld(World):
    router: PushRouter

    def __init__(self) -> None:
        super().__init__()
        self.router = PushRouter()
        object.__setattr__(self.services, "router", self.router)
        object.__setattr__(self.services, "pulls", StreamPulls())


@pytest.fixture
def world() -> Iterator[StreamWorld]:
    made = StreamWorld()
    yield made
    made.close()


@pytest.fixture
def session(world: StreamWorld) -> Session:
    return world.open()


def numbers(batch: pa.RecordBatch) -> list[int]:
    return list(batch.column(0).to_pylist())


def later(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_rows_are_given_as_they_come(world: StreamWorld, session: Session) -> None:
    results = session.simple_query("SELECT a FROM s")
    result = next(results)
    (notice,) = session.take_notices()
    assert notice.severity == "NOTICE"
    assert "FETCH_COUNT" in str(notice.hint)
    assert result.fields == FIELDS
    assert result.live is not None
    assert not result.live()
    world.router.put(1, 2)
    assert result.live()
    assert numbers(next(result.batches)) == [1, 2]
    assert not result.live()
    thread = later(lambda: world.router.put(3))
    assert numbers(next(result.batches)) == [3]
    thread.join()
    result.close()
    results.close()  # type: ignore[attr-defined]
    assert world.router.open == []
    assert run(session, "SELECT a FROM v")[0][0] == "SELECT "


def test_limit_ends_it(world: StreamWorld, session: Session) -> None:
    results = session.simple_query("SELECT a FROM s LIMIT 3")
    result = next(results)
    assert not session.take_notices()
    world.router.put(1, 2)
    world.router.put(3, 4, 5)
    assert rows(result) == [(1,), (2,), (3,)]
    assert world.router.open == []
    assert next(results, None) is None


@pytest.mark.parametrize("end", ["cancel", "statement_timeout", "dropped"])
def test_a_waiting_query_is_ended(world: StreamWorld, session: Session, end: str) -> None:
    if end == "statement_timeout":
        run(session, "SET statement_timeout = '50ms'")
    results = session.simple_query("BEGIN; SELECT a FROM s")
    next(results)
    result = next(results)
    if end == "cancel":
        later(session.cancel).join()
    elif end == "dropped":
        world.router.open[0].end(SqlError("42P01", 'stream "s" was dropped'))
    with pytest.raises(SqlError) as caught:
        next(result.batches)
    assert caught.value.message == {
        "cancel": "canceling statement due to user request",
        "statement_timeout": "canceling statement due to statement timeout",
        "dropped": 'stream "s" was dropped',
    }[end]  # fmt: skip
    assert world.router.open == []
    assert session.transaction_status() == "E"


def test_closing_the_session_frees_it(world: StreamWorld, session: Session) -> None:
    results = session.simple_query("SELECT a FROM s")
    result = next(results)
    later(session.close).join(10)
    assert world.router.open == []
    with pytest.raises(SqlError):
        next(result.batches)


def test_fetch_waits_for_the_first_row_and_gives_what_is_there(world: StreamWorld, session: Session) -> None:
    run(session, "BEGIN; DECLARE c CURSOR FOR SELECT a FROM s")
    assert not session.take_notices()
    world.router.put(1, 2, 3)
    world.router.put(4)
    assert run(session, "FETCH 2 FROM c") == [("FETCH ", [(1,), (2,)])]
    assert run(session, "FETCH 10 FROM c") == [("FETCH ", [(3,), (4,)])]
    thread = later(lambda: world.router.put(5, 6))
    assert run(session, "FETCH 1 FROM c; FETCH ALL FROM c") == [("FETCH ", [(5,)]), ("FETCH ", [(6,)])]
    thread.join()
    run(session, "SET LOCAL mv.fetch_timeout = '20ms'")
    assert run(session, "FETCH 5 FROM c") == [("FETCH ", [])]
    world.router.put(7, 8)
    assert run(session, "FETCH 5 FROM c") == [("FETCH ", [(7,), (8,)])]  # an empty FETCH was not the end
    run(session, "COMMIT")
    assert world.router.open == []


def test_move_passes_over_rows(world: StreamWorld, session: Session) -> None:
    run(session, "BEGIN; DECLARE c CURSOR FOR SELECT a FROM s LIMIT 6")
    world.router.put(1, 2, 3, 4)
    assert run(session, "MOVE 2 FROM c; FETCH ABSOLUTE 4 FROM c") == [("MOVE 2", []), ("FETCH ", [(4,)])]
    world.router.put(5, 6, 7)
    assert run(session, "FETCH RELATIVE 2 FROM c; FETCH c; FETCH c") == [
        ("FETCH ", [(6,)]), ("FETCH ", []), ("FETCH ", []),
    ]  # fmt: skip
    with pytest.raises(SqlError, match="55000"):
        run(session, "FETCH BACKWARD 1 FROM c")


def test_a_fetch_that_waits_is_cancelled_and_its_cursor_gone_with_the_transaction(
    world: StreamWorld, session: Session
) -> None:
    run(session, "BEGIN; DECLARE c CURSOR FOR SELECT a FROM s")
    results = session.simple_query("FETCH c")
    result = next(results)
    later(session.cancel).join()
    with pytest.raises(SqlError, match="57014"):
        rows(result)
    assert world.router.open == []
    results.close()  # type: ignore[attr-defined] # as the wire does: the statement is over, and the cancel with it
    run(session, "ROLLBACK")


@pytest.mark.parametrize("options", ["SCROLL CURSOR", "CURSOR WITH HOLD"])
def test_cursors_that_keep_rows_are_refused(world: StreamWorld, session: Session, options: str) -> None:
    with pytest.raises(SqlError) as caught:
        run(session, f"BEGIN; DECLARE c {options} FOR SELECT a FROM s")
    assert caught.value.sqlstate == "0A000"
    assert world.router.open == []


def test_copy_out(world: StreamWorld, session: Session) -> None:
    results = session.simple_query("COPY (SELECT a FROM s LIMIT 2) TO STDOUT")
    result = next(results)
    world.router.put(1, 2)
    assert (result.tag, result.copy is not None, result.live is not None) == ("COPY ", True, True)
    assert rows(result) == [(1,), (2,)]


def test_prepared(world: StreamWorld, session: Session) -> None:
    session.parse("p", "SELECT a FROM s LIMIT 1", [])
    assert session.describe_statement("p").fields == FIELDS
    session.bind("", "p", [])
    assert session.describe_portal("") == FIELDS
    result = session.execute("")
    world.router.put(9)
    assert rows(result) == [(9,)]
    session.sync()
    world.router.fields_now = (Field("a", 25),)
    session.bind("", "p", [])
    with pytest.raises(SqlError, match="cached plan must not change result type"):
        session.execute("")


def test_a_suspended_portal_ends_with_its_transaction(world: StreamWorld, session: Session) -> None:
    session.parse("", "SELECT a FROM s", [])
    session.bind("", "", [])
    result = session.execute("")
    world.router.put(1)
    assert numbers(next(result.batches)) == [1]
    session.sync()
    assert world.router.open == []
    with pytest.raises(SqlError, match="34000"):
        next(result.batches)


def test_parameters_are_refused(session: Session) -> None:
    with pytest.raises(SqlError) as caught:
        session.parse("", "SELECT a FROM s WHERE a > $1", [23])
    assert caught.value.sqlstate in ("0A000", "42P02")
