"""mv.freshness: what a session accepts, whom a read asks, how long it waits, and what it says then."""

from __future__ import annotations

import threading
import time

import pytest

from mvserver import moments
from mvserver.errors import SqlError
from mvserver.session.session import Session
from mvserver.streaming.api import QueryState
from tests.session.fakes import World, run, show, values

LATER_S = 60.0  # the confirmation is not old when it is looked at, however slow the machine


@pytest.mark.parametrize(
    ("value", "shown"),
    [("'any'", "any"), ("latest", "latest"), ("' LATEST '", "latest"), ("'500ms'", "500ms"), ("2000", "2s"),
     ("'1.5 s'", "1500ms"), ("DEFAULT", "any")],
)  # fmt: skip
def test_values(session: Session, value: str, shown: str) -> None:
    run(session, f"SET mv.freshness = {value}")
    assert show(session, "mv.freshness") == shown


@pytest.mark.parametrize("value", ["newest", "0", "0ms", "-1s", "5 parsecs", ""])
def test_what_is_no_value(session: Session, value: str) -> None:
    with pytest.raises(SqlError) as caught:
        run(session, f"SET mv.freshness = '{value}'")
    assert caught.value.sqlstate == "22023"
    assert show(session, "mv.freshness") == "any"


def test_the_time_out_is_a_duration(session: Session) -> None:
    assert show(session, "mv.freshness_timeout") == "10s"
    with pytest.raises(SqlError) as caught:
        run(session, "SET mv.freshness_timeout = 'latest'")
    assert caught.value.sqlstate == "22023"


def test_any_asks_nobody(world: World, session: Session) -> None:
    values(session, "SELECT a FROM v")
    run(session, "SET mv.freshness = latest")
    values(session, "SELECT 1")  # reads no view
    assert world.views.asked == []


def test_latest_asks_the_sources_of_every_view_for_each_query(world: World, session: Session) -> None:
    run(session, "SET mv.freshness = latest")
    assert values(session, "WITH c AS (SELECT a FROM v) SELECT w.a FROM w, v AS x")[0] == (1,)
    session.parse("p", "SELECT a FROM w", ())
    session.bind("", "p", ())
    session.execute("").close()
    session.sync()
    assert [set(asked) >= {"w"} for asked in world.views.asked] == [True, True]
    assert "v" in world.views.asked[0]


def test_a_query_goes_on_when_the_views_are_there(world: World, session: Session) -> None:
    world.views.there = False

    def there() -> None:
        world.views.there = True

    run(session, "SET mv.freshness = latest")
    threading.Timer(0.1, there).start()
    assert values(session, "SELECT a FROM v")[0] == (1,)
    assert len(world.views.asked) == 1
    assert len(world.views.waits) > 1
    assert max(world.views.waits) <= 0.25


def test_a_wait_that_is_too_long_is_an_error(world: World, session: Session) -> None:
    world.views.there = False
    run(session, "SET mv.freshness = latest; SET mv.freshness_timeout = '60ms'")
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT a FROM v")
    assert (caught.value.sqlstate, caught.value.message, caught.value.detail) == (
        "55000", "the view lags", "By 3 records.",
    )  # fmt: skip
    run(session, "RESET mv.freshness")
    assert values(session, "SELECT a FROM v")[0] == (1,)


def test_cancel_and_statement_timeout_end_the_wait(world: World, session: Session) -> None:
    world.views.there = False
    run(session, "SET mv.freshness = latest; SET mv.freshness_timeout = 0")
    threading.Timer(0.1, session.cancel).start()
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT a FROM v")
    assert (caught.value.sqlstate, caught.value.message) == ("57014", "canceling statement due to user request")
    run(session, "SET statement_timeout = '100ms'")
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT a FROM v")
    assert (caught.value.sqlstate, caught.value.message) == ("57014", "canceling statement due to statement timeout")


def test_a_view_that_nothing_keeps_is_refused(world: World, session: Session) -> None:
    world.views.state = QueryState.TERMINATED
    run(session, "SET mv.freshness = latest")
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT a FROM v")
    assert (caught.value.sqlstate, caught.value.message) == ("55000", "the view is not kept up to date")


def test_a_duration_is_met_by_what_was_confirmed_within_it(world: World, session: Session) -> None:
    run(session, "SET mv.freshness = '10s'")
    world.views.confirmed = moments.now() - 1
    assert values(session, "SELECT a FROM v")[0] == (1,)
    assert world.views.asked == []


@pytest.mark.parametrize("age_s", [None, 60.0])
def test_an_older_answer_is_refused_unless_the_source_confirms_it(
    world: World, session: Session, age_s: float | None
) -> None:
    run(session, "SET mv.freshness = '80ms'")
    world.views.confirmed = None if age_s is None else moments.now() - age_s
    assert values(session, "SELECT a FROM v")[0] == (1,)
    assert world.views.asked == [("v",)]
    world.views.there = False
    started = time.monotonic()
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT a FROM v")
    assert caught.value.sqlstate == "55000"
    assert time.monotonic() - started < 2  # the duration bounds the wait, not mv.freshness_timeout


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_duration_is_not_told_by_the_systems_clock(
    world: World, session: Session, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Once it was put back an hour, rows that were a minute old were fresh within 80 ms, for an hour."""
    clock = time.time
    old, new = moments.now() - 60, moments.now() + LATER_S
    monkeypatch.setattr(time, "time", lambda: clock() + hours * 3600)
    run(session, "SET mv.freshness = '80ms'")
    world.views.confirmed = old
    assert values(session, "SELECT a FROM v")[0] == (1,)
    assert world.views.asked == [("v",)], "the sources were not asked"
    world.views.confirmed = new
    assert values(session, "SELECT a FROM v")[0] == (1,)
    assert world.views.asked == [("v",)], "what was confirmed just now is asked again"


def test_a_pinned_snapshot_is_as_fresh_as_its_first_query_asked(world: World, session: Session) -> None:
    run(session, "SET mv.freshness = latest; BEGIN ISOLATION LEVEL REPEATABLE READ")
    for _ in range(3):
        assert values(session, "SELECT a FROM v")[0] == (1,)
    run(session, "COMMIT; SELECT a FROM v")
    assert world.views.asked == [("v",), ("v",)]


def test_set_local_ends_with_the_transaction(world: World, session: Session) -> None:
    run(session, "BEGIN; SET LOCAL mv.freshness = latest; SELECT a FROM v; COMMIT; SELECT a FROM v")
    assert world.views.asked == [("v",)]
