"""The queries of an application fail together: which causes they show, and which of them can be restarted. No Spark."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from mvserver.errors import SqlError
from mvserver.streaming.api import QueryState
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.queries.csas import SinkQuery
from mvserver.streaming.queries.running import RunningQuery, group_applications
from mvserver.streaming.queries.status import ViewName, view_status, wait_filled
from mvserver.streaming.spark.state import SparkState

BY_ZERO = "22012: division by zero"
OF_A = f"query q_a of the same application has failed: {BY_ZERO}"


class Source:
    """A pipeline that reads nothing."""

    def __init__(self) -> None:
        self.state = RunningState(None, None, records_max=1)  # type: ignore[arg-type]
        self.wait, self.latest, self.running = self.state.wait, None, True
        self.stalled_of = self.state.stalled_of
        self.reader = SimpleNamespace(positions=SimpleNamespace(counts_records=True))
        self.lane, self.lane_reason = "batch", None

    def confirmed_at(self, subscriber: Subscriber) -> float | None:
        return None


def query(name: str, application: str | None = "app") -> RunningQuery:
    target: Any = SimpleNamespace(query_id=f"q_{name}")
    subscriber = Subscriber(target, 1, {"at": 0}, None)  # type: ignore[arg-type]
    properties = () if application is None else (("application", application),)
    known: Any = SimpleNamespace(id=f"q_{name}", properties=properties, desired_state="running")
    return RunningQuery(known, Source(), subscriber)  # type: ignore[arg-type]


def main(known: RunningQuery) -> Subscriber:
    assert known.subscriber is not None
    return known.subscriber


def shown(known: RunningQuery) -> tuple[QueryState, str | None]:
    assert known.pipeline is not None
    status = view_status(known.query.id, main(known), known.pipeline, SparkState())
    return status.state, status.error


@pytest.fixture
def queries() -> list[RunningQuery]:
    made = [query("a"), query("b"), query("c", None)]
    group_applications(made)
    main(made[0]).failure = BY_ZERO
    return made


def test_the_others_name_the_one_that_failed(queries: list[RunningQuery]) -> None:
    a, b, c = queries
    assert shown(a) == (QueryState.FAILED, BY_ZERO)
    assert shown(b) == (QueryState.FAILED, OF_A)
    assert shown(c) == (QueryState.FILLING, None)
    assert [main(each).wants_batches for each in queries] == [False, False, True]


def test_a_terminated_one_does_not_hold_the_others(queries: list[RunningQuery]) -> None:
    a, b, _ = queries
    main(a).terminated = True
    assert shown(b) == (QueryState.FILLING, None)
    assert main(b).wants_batches
    b.refuse_held()


def test_restart_is_of_the_one_that_failed(queries: list[RunningQuery]) -> None:
    a, b, c = queries
    a.refuse_held()
    c.refuse_held()
    with pytest.raises(SqlError) as caught:
        b.refuse_held()
    error = caught.value
    assert (error.sqlstate, error.detail) == ("55000", f"Q{OF_A[1:]}")
    assert error.hint == "RESTART or TERMINATE that one, and the others of the application go on."


def test_two_that_failed_are_restarted_one_after_the_other(queries: list[RunningQuery]) -> None:
    a, b, _ = queries
    main(b).failure = "22003: out of range"
    a.refuse_held()
    b.refuse_held()
    main(a).failure = None
    assert shown(a) == (QueryState.FAILED, "query q_b of the same application has failed: 22003: out of range")


def test_a_side_of_a_join_that_failed_is_its_querys_failure(queries: list[RunningQuery]) -> None:
    a, b, _ = queries
    main(a).failure = None
    side = Subscriber(SimpleNamespace(query_id="side"), 1, {"at": 0}, None)  # type: ignore[arg-type]
    side.failure = BY_ZERO
    side.group = main(a).group = (main(a), side)
    assert shown(a) == (QueryState.FAILED, BY_ZERO)
    assert shown(b) == (QueryState.FAILED, OF_A)
    side.application = (main(b),)
    main(a).terminated = True
    assert (side.obstacle, main(b).wants_batches) == (None, True)


def test_a_refreshed_view_takes_the_place_of_the_old_one(queries: list[RunningQuery]) -> None:
    a, b, _ = queries
    a.subscriber = Subscriber(main(a).target, 2, {"at": 0}, None)  # type: ignore[arg-type]
    group_applications(queries)
    assert shown(b) == (QueryState.FILLING, None)


def test_a_terminated_sink_holds_nobody() -> None:
    sink: Any = SinkQuery.__new__(SinkQuery)
    sink._query, sink._failure, sink._threads = SimpleNamespace(id="q_a"), BY_ZERO, [object()]
    assert sink.obstacle == OF_A
    sink._threads = []
    assert sink.obstacle is None


@pytest.mark.parametrize(
    ("how", "detail"),
    [
        ("own", f"Its query q_v is FAILED: {BY_ZERO}"),
        ("other", f"Its query q_v is FAILED: {OF_A}"),
        ("terminated", "Its query q_v is TERMINATED."),
    ],
)
def test_a_select_on_a_view_that_will_not_be_filled_is_told_at_once(how: str, detail: str) -> None:
    known, other = query("v"), query("a")
    group_applications([known, other])
    if how == "terminated":
        main(known).terminated = True
    else:
        main(known if how == "own" else other).failure = BY_ZERO
    began = time.monotonic()
    with pytest.raises(SqlError) as caught:
        wait_filled(ViewName("v", "q_v"), main(known), known.pipeline, began + 60, SparkState)  # type: ignore[arg-type]
    assert time.monotonic() - began < 10
    error = caught.value
    assert (error.sqlstate, error.message) == ("55000", 'materialized view "v" has no complete content')
    assert error.detail == detail
    assert error.hint == (
        "RESTART QUERY 'q_v' goes on where it stands; REFRESH MATERIALIZED VIEW v rebuilds it from what is left in its "
        "source."
    )


@pytest.mark.parametrize("fails", ["own", "side", "other"])
def test_a_view_whose_query_failed_at_the_first_that_came_is_no_answer(fails: str) -> None:
    """It was filled while there was nothing: no rows would pass for an answer."""
    known, other = query("v"), query("a")
    group_applications([known, other])
    side = Subscriber(SimpleNamespace(query_id="q_v/l"), 1, {"at": 0}, None)  # type: ignore[arg-type]
    side.group = main(known).group = (main(known), side)
    main(known).filled = side.filled = True
    failing = {"own": main(known), "side": side, "other": main(other)}[fails]
    failing.failure = BY_ZERO
    if fails == "side":
        main(known).epoch = 3  # what came by other sides
    with pytest.raises(SqlError) as caught:
        look(known)
    assert (caught.value.sqlstate, caught.value.message) == (
        "55000",
        'materialized view "v" has no complete content',
    )
    assert BY_ZERO in (caught.value.detail or "")
    side.epoch = main(known).epoch = 1
    look(known)  # what it had before is an answer
    side.epoch = main(known).epoch = 0
    main(known).terminated = True
    look(known)  # nothing is wrong with a view that was stopped


def look(known: RunningQuery) -> None:
    wait_filled(ViewName("v", "q_v"), main(known), known.pipeline, time.monotonic(), SparkState)  # type: ignore[arg-type]
