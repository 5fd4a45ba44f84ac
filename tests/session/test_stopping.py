"""Cancel, statement_timeout, idle transactions, and waiting for views that are being filled."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from mvserver.errors import SqlError
from mvserver.serving.api import PullPlan
from mvserver.session.session import Session
from mvserver.streaming.api import QueryState
from tests.session.fakes import World, run, show, values


def until(condition: object, timeout_s: float = 5.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.005)
    return False


@pytest.mark.parametrize("text", ["SELECT a FROM sleepy", "PRINT ENTITY e"])
def test_cancel_stops_what_runs(session: Session, text: str) -> None:
    threading.Timer(0.1, session.cancel).start()
    started = time.monotonic()
    with pytest.raises(SqlError) as caught:
        run(session, text)
    assert (caught.value.sqlstate, caught.value.message) == ("57014", "canceling statement due to user request")
    assert time.monotonic() - started < 2  # a second, and one for a busy machine
    assert values(session, "SELECT a FROM v")[0] == (1,)


@pytest.mark.parametrize("text", ["SELECT a FROM sleepy", "PRINT ENTITY e"])
def test_statement_timeout(session: Session, text: str) -> None:
    run(session, "SET statement_timeout = '100ms'")
    started = time.monotonic()
    with pytest.raises(SqlError) as caught:
        run(session, text)
    assert (caught.value.sqlstate, caught.value.message) == ("57014", "canceling statement due to statement timeout")
    assert time.monotonic() - started < 2  # a second, and one for a busy machine
    assert values(session, "SELECT a FROM v")[0] == (1,)


def test_a_statement_can_be_cancelled_while_it_is_planned(
    world: World, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = world.pulls.plan

    def cancelled_meanwhile(*arguments: Any, **options: Any) -> Any:
        session.cancel()
        return plan(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(world.pulls, "plan", cancelled_meanwhile)
        with pytest.raises(SqlError) as caught:
            session.parse("", "SELECT a FROM v", ())
        assert (caught.value.sqlstate, caught.value.message) == ("57014", "canceling statement due to user request")
        with pytest.raises(SqlError) as caught:
            run(session, "SELECT a FROM v WHERE a > 0")
        assert caught.value.sqlstate == "57014"
    assert run(session, "SELECT a FROM v")


def test_a_cancel_between_the_parts_of_a_statement_is_not_lost(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When its text is parsed, and its own time has not begun."""
    parse, taken = session._parse, list[bool]()

    def cancelled_then(*arguments: Any) -> Any:
        statements = parse(*arguments)
        taken.append(session.cancel())
        return statements

    with monkeypatch.context() as patched:
        patched.setattr(session, "_parse", cancelled_then)
        with pytest.raises(SqlError) as caught:
            run(session, "SELECT a FROM sleepy")
    assert (caught.value.sqlstate, taken) == ("57014", [True])
    assert values(session, "SELECT a FROM v")[0] == (1,)


def test_cancel_of_an_idle_session_does_nothing(session: Session) -> None:
    assert not session.cancel()
    run(session, "SELECT a FROM v")
    assert not session.cancel()
    assert values(session, "SELECT a FROM v")[0] == (1,)


def test_an_idle_transaction_is_ended(world: World, session: Session) -> None:
    told: list[SqlError] = []
    session.on_terminate = told.append
    run(session, "SET idle_in_transaction_session_timeout = '50ms'")
    run(session, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT a FROM v")
    assert any(snapshot.pinned is not None for snapshot in world.pulls.snapshots)
    assert until(lambda: told)
    assert all(snapshot.pinned is None for snapshot in world.pulls.snapshots)
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT a FROM v")
    assert caught.value is told[0]
    assert (caught.value.sqlstate, caught.value.severity) == ("25P03", "FATAL")
    assert caught.value.message == "terminating connection due to idle-in-transaction timeout"


def test_a_busy_transaction_and_an_idle_session_are_not_ended(session: Session) -> None:
    told: list[SqlError] = []
    session.on_terminate = told.append
    run(session, "SET idle_in_transaction_session_timeout = '400ms'")
    run(session, "BEGIN")
    for _ in range(30):  # in all longer than the limit, each less
        run(session, "SELECT a FROM v")
        time.sleep(0.02)
    run(session, "COMMIT; SET idle_in_transaction_session_timeout = '20ms'")
    time.sleep(0.1)  # the time is what is tested
    assert told == []
    assert show(session, "transaction_isolation") == "read committed"


def test_an_idle_session_is_ended_where_that_is_asked_for(world: World, session: Session) -> None:
    told: list[SqlError] = []
    session.on_terminate = told.append
    run(session, "SET idle_in_transaction_session_timeout = '1h'")
    run(session, "BEGIN")  # the deadline of the transaction is much later
    run(session, "COMMIT")
    run(session, "SET idle_session_timeout = '300ms'")
    for _ in range(20):  # in all longer than the limit, each less
        run(session, "SELECT a FROM v")
        time.sleep(0.02)
    assert told == []
    assert until(lambda: told)
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT a FROM v")
    assert (caught.value.sqlstate, caught.value.severity) == ("57P05", "FATAL")
    assert caught.value.message == "terminating connection due to idle-session timeout"


def test_all_sessions_end_at_shutdown(world: World, session: Session) -> None:
    world.backend.close()
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT a FROM v")
    assert (caught.value.sqlstate, caught.value.severity) == ("57P01", "FATAL")


# --- views that are being filled ------------------------------------------------------------------------------------
def test_a_select_waits_and_then_says_why_it_cannot(world: World, session: Session) -> None:
    world.views.state = QueryState.FILLING
    run(session, "SET mv.filling_timeout = '100ms'")
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT a FROM v")
    assert (caught.value.sqlstate, caught.value.detail) == ("55000", "25 % is read.")
    assert caught.value.hint is not None
    assert "mv.read_while_filling" in caught.value.hint


def test_a_select_goes_on_when_the_view_is_filled(world: World, session: Session) -> None:
    world.views.state = QueryState.FILLING

    def filled() -> None:
        world.views.state = QueryState.RUNNING

    threading.Timer(0.1, filled).start()
    assert values(session, "SELECT a FROM v")[0] == (1,)
    assert len(world.views.waits) > 1
    assert max(world.views.waits) <= 0.25


def test_a_view_that_will_never_be_filled_is_not_waited_for(world: World, session: Session) -> None:
    world.views.state = QueryState.FAILED
    world.views.empty = True
    started = time.monotonic()
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT a FROM v")
    assert (caught.value.sqlstate, caught.value.message) == ("55000", "the view has no complete content")
    assert time.monotonic() - started < 2  # a second, and one for a busy machine


@pytest.mark.parametrize("while_filling", ["on", "off"])
def test_a_view_that_fails_with_nothing_is_told_at_the_next_read(
    world: World, session: Session, while_filling: str
) -> None:
    """Also where it was well a moment ago, and where rows may be read before all are there."""
    run(session, f"SET mv.read_while_filling = {while_filling}")
    assert values(session, "SELECT a FROM v")[0] == (1,)
    world.views.state, world.views.empty, world.views.failed = QueryState.FAILED, True, 1
    for _ in range(2):
        with pytest.raises(SqlError) as caught:
            run(session, "SELECT a FROM v")
        assert (caught.value.sqlstate, caught.value.message) == ("55000", "the view has no complete content")


def test_the_wait_can_be_cancelled_and_timed_out(world: World, session: Session) -> None:
    world.views.state = QueryState.FILLING
    threading.Timer(0.1, session.cancel).start()
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT a FROM v")
    assert caught.value.sqlstate == "57014"
    run(session, "SET statement_timeout = '100ms'")
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT a FROM v")
    assert caught.value.message == "canceling statement due to statement timeout"


def test_read_while_filling_answers_with_a_notice(world: World, session: Session) -> None:
    world.views.state = QueryState.FILLING
    run(session, "SET mv.read_while_filling = on")
    assert values(session, "SELECT a FROM v")[0] == (1,)
    (notice,) = session.take_notices()
    assert (notice.severity, notice.message) == ("NOTICE", 'materialized view "v" is still being filled, 25% read')
    assert world.views.waits == []


@pytest.mark.parametrize("state", [QueryState.STALLED, QueryState.FAILED])
def test_a_view_that_is_not_kept_up_to_date_answers_and_warns_once(
    world: World, session: Session, state: QueryState
) -> None:
    world.views.state = state
    for _ in range(2):
        assert values(session, "SELECT a FROM v")[0] == (1,)
    (warning,) = session.take_notices()
    assert warning.severity == "WARNING"
    assert warning.message == f'materialized view "v" is not kept up to date: its query is {state.value}'
    assert warning.hint == "The cause is: 08006: the broker is away"
    values(session, "SELECT a FROM w")
    assert len(session.take_notices()) == 1


def test_a_cancel_before_a_short_statement_begins_on_the_event_loop(world: World, session: Session) -> None:
    """It is known while its plan is looked for: the statement has not touched its snapshot yet."""
    run(session, "SELECT 1 AS a")
    (plan,) = world.pulls._plans.values()
    plan.runs.few, plan.runs.slowest_s = True, 0.0
    ordinary = world.pulls.cached

    def cancelling(*asked: Any) -> PullPlan | None:
        session.cancel()
        return ordinary(*asked)

    world.pulls.cached = cancelling  # type: ignore[method-assign]
    session.at_once = True
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT 1 AS a")
    assert (caught.value.sqlstate, caught.value.message) == ("57014", "canceling statement due to user request")
