"""Which lane a pipeline takes, and the words for it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from mvserver.compiler.plans import ErrorHandling
from mvserver.streaming.live.choice import BEHIND_RECORDS, LARGE_S, LaneChoice
from mvserver.streaming.live.ended import LaneEnded
from mvserver.streaming.live.lanes import NO_LANES, LiveLanes, live_lanes
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.spark.options import SparkOptions, local_slots, master_of
from spark_sinks.kafka.positions import KafkaPositions, make_position
from tests.streaming.states import target

READ_LIVE = SimpleNamespace(refusal=None)
CLUSTER = SparkOptions("spark://host:7077", live_slots=8)
ENCRYPTED = replace(CLUSTER, extra=(("spark.network.crypto.enabled", "true"),))


def position(*offsets: int) -> Any:
    return make_position("t", dict(enumerate(offsets)))


class Choice:
    """Of a topic with two partitions, read to its end at 100 and 100, for one view."""

    def __init__(self, lanes: LiveLanes | None = None, live: Any = READ_LIVE) -> None:
        self.now, self.suspect = 1000.0, False
        self.reader: Any = SimpleNamespace(positions=KafkaPositions(), live=live, held=None)
        self.state = RunningState(self.reader, None, records_max=1000)  # type: ignore[arg-type]
        self.lanes = lanes or LiveLanes(lambda: 4, cores=2)
        self.choice = LaneChoice(
            self.reader, self.state, self.lanes, is_suspect=lambda: self.suspect, clock=lambda: self.now
        )
        self.state.next = self.state.latest = position(100, 100)
        self.view = self.add("SELECT k, count(*) AS n FROM events GROUP BY k", 1)
        self.choice.batch_taken(10)

    def add(self, sql: str, number: int) -> Subscriber:
        made = Subscriber(target(sql, number), 1, self.state.next, ErrorHandling.IGNORE_AND_LOG, filled=True)
        self.state.subscribers[made.query_id] = made
        return made

    @property
    def obstacle(self) -> str | None:
        return self.choice.obstacle()


def test_what_has_caught_up_may_be_live() -> None:
    made = Choice()
    assert made.obstacle is None
    assert made.choice.lane == "batch"
    made.choice.live_began()
    assert (made.choice.lane, made.choice.reason) == ("live", None)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Choice(NO_LANES), "the setting live_lane is off"),
        (lambda: Choice(live_lanes(ENCRYPTED, lambda: 8)), "connections are encrypted"),
        (lambda: Choice(live_lanes(CLUSTER, lambda: 3)), "its 2 partitions want as many task slots, and 1 are left"),
        (lambda: Choice(live=None), "read in batches only"),
        (lambda: Choice(live=SimpleNamespace(refusal="its store says no")), "its store says no"),
        (lambda: Choice(LiveLanes(lambda: 1)), "its 2 partitions want as many task slots, and 1 are left"),
    ],
)
def test_what_is_never_live_says_why(made: Any, words: str) -> None:
    found = made().obstacle
    assert found is not None
    assert words in found


def test_several_rows_of_a_record_count_each() -> None:
    """Of a record in three windows are four rows: one is of the view without windows."""
    made = Choice()
    made.state.rate = SimpleNamespace(per_second=lambda: 12_501.0)  # type: ignore[assignment]
    assert made.obstacle is None
    made.add("SELECT window_start, window_end FROM HOP(events, SIZE 15 SECONDS, ADVANCE BY 5 SECONDS)", 2)
    assert made.obstacle == "12501 records a second, each in up to 4 rows, are more than one process takes"
    made.state.rate = SimpleNamespace(per_second=lambda: 12_500.0)  # type: ignore[assignment]
    assert made.obstacle is None


def test_a_backlog_is_left_to_batches() -> None:
    made = Choice()
    made.state.latest = position(100, 100 + BEHIND_RECORDS + 1)
    assert made.obstacle == f"it is behind by about {BEHIND_RECORDS + 1} records"
    made.state.latest = position(100, 101)
    assert made.obstacle is None
    made.choice.batch_taken(BEHIND_RECORDS + 1)
    assert made.obstacle is not None
    made.choice.batch_taken(10)
    assert made.obstacle is None
    made.choice.batch_taken(BEHIND_RECORDS + 1)
    made.now += LARGE_S
    assert made.obstacle is None, "nothing came behind the last large batch"
    made.choice.batches_began()
    assert made.obstacle == "no batch was read since its start"


def test_partitions_that_no_batch_has_met_are_left_to_batches() -> None:
    made = Choice()
    made.state.latest = position(100, 100, 0)
    assert made.obstacle == "nothing was read since partitions were added to the topic"


@pytest.mark.parametrize("change", [{"filled": False}, {"busy": True}, {"unverified": True}])
def test_a_view_that_is_being_filled_is_left_to_batches(change: dict[str, bool]) -> None:
    made = Choice()
    for name, value in change.items():
        setattr(made.view, name, value)
    assert made.obstacle == "some of its queries are behind the others"


def test_a_view_that_stands_elsewhere_is_left_to_batches() -> None:
    made = Choice()
    made.view.claimed = position(100, 99)
    assert made.obstacle == "some of its queries are behind the others"


def test_suspects_and_pipelines_without_queries_are_left_to_batches() -> None:
    made = Choice()
    made.suspect = True
    assert made.obstacle == "its records are under suspicion to end Spark"
    made.state.subscribers.clear()
    assert made.obstacle == "no query wants records"


def test_it_is_tried_again_less_and_less_often_while_it_fails_soon() -> None:
    made, pauses = Choice(), []
    for _ in range(7):
        made.choice.live_began()
        made.choice.live_ended(LaneEnded("a task failed"), 1.0)
        made.choice.batch_taken(1)
        began = made.now
        assert made.obstacle is not None
        assert made.obstacle.startswith("a task failed; live is tried again in")
        while made.obstacle is not None:
            made.now += 0.5
        pauses.append(made.now - began)
    assert pauses == [2, 5, 15, 60, 300, 300, 300]
    made.choice.live_ended(LaneEnded("a task failed"), 500.0)
    made.choice.batch_taken(1)
    made.now += 2
    assert made.obstacle is None


def test_a_cause_that_is_gone_with_the_batch_costs_no_pause() -> None:
    made = Choice()
    made.choice.live_began()
    made.choice.live_ended(LaneEnded("partitions were added to the topic", at_once=True), 1.0)
    assert made.obstacle == "no batch was read since its start", "only a batch judges what has ended a run"
    made.choice.batch_taken(1)
    assert made.obstacle is None


def test_what_spark_refused_is_not_asked_again_for_the_same_queries() -> None:
    made = Choice()
    made.choice.live_began()
    made.choice.refused([made.view])
    made.choice.live_ended(LaneEnded("Spark does not run its queries live: no", at_once=True), 1.0)
    assert made.obstacle == "Spark does not run its queries live: no"
    made.choice.batch_taken(1)
    made.add("SELECT i FROM events", 2)
    assert made.obstacle is None


def test_slots_are_taken_and_given_back() -> None:
    lanes = LiveLanes(lambda: 4)
    taken = lanes.take(3)
    assert taken is not None
    assert lanes.take(2) is None
    assert lanes.left == 1
    for _ in range(2):
        taken.give_back()
        assert lanes.left == 4
    assert lanes.take(4) is not None
    assert NO_LANES.take(1) is None


def test_slots_of_a_cluster_are_those_that_batches_leave() -> None:
    cores = 0
    lanes = live_lanes(CLUSTER, lambda: cores)
    assert (lanes.left, lanes.take(1)) == (0, None)
    cores = 6
    one, other = lanes.take(1), lanes.take(2)
    assert one is not None
    assert other is not None
    assert (lanes.left, one.give_up()) == (1, False)
    cores = 4  # an executor has gone
    assert lanes.left == -1
    assert [one.give_up(), other.give_up(), one.give_up()] == [True, False, False], "one of them is enough"
    for each in (one, other):
        each.give_back()
    cores = 1_000
    assert lanes.left == CLUSTER.live_slots
    assert live_lanes(SparkOptions("local[2]", live_slots=8), lambda: 0).left == 8
    assert live_lanes(SparkOptions("spark://host:7077"), lambda: 8).refusal == NO_LANES.refusal


@pytest.mark.parametrize(
    ("extra", "addresses"),
    [
        ((), ("127.0.0.1", "127.0.0.1")),
        ((("spark.driver.host", "10.1.2.3"),), ("10.1.2.3", "10.1.2.3")),
        (
            (("spark.driver.host", "views.example"), ("spark.driver.bindAddress", "10.1.2.3")),
            ("views.example", "10.1.2.3"),
        ),
    ],
)
def test_tasks_reach_the_server_where_executors_reach_the_driver(
    extra: tuple[tuple[str, str], ...], addresses: tuple[str, str]
) -> None:
    options = replace(CLUSTER, extra=extra)
    assert live_lanes(options, lambda: 8).addresses == addresses
    assert (options.host, options.bind_address) == addresses


@pytest.mark.parametrize(
    ("master", "slots"),
    [("local", 1), ("local[3]", 3), ("local[3,2]", 3), ("local[3, 2]", 3), ("spark://host:7077", None), ("yarn", None)],
)
def test_the_slots_of_a_master(master: str, slots: int | None) -> None:
    assert local_slots(master) == slots
    wanted = master if slots is None else f"local[{slots + 8}]"
    assert master_of(SparkOptions(master, live_slots=8)) == wanted
    assert master_of(SparkOptions(master)) == master
