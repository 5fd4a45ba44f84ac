"""Rounds of filling: as large as live batches beside them allow, and never in the way of these."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mvserver.limits import FILL_COMMIT_S, FILL_EVALUATION_S
from mvserver.streaming.batch.evaluate import Evaluated
from mvserver.streaming.pipeline import evaluator as evaluators
from mvserver.streaming.pipeline.committer import Committer
from mvserver.streaming.pipeline.evaluated_batch import EvaluatedBatch, Share
from mvserver.streaming.pipeline.evaluator import BatchEvaluator
from mvserver.streaming.pipeline.filler import Filler
from mvserver.streaming.pipeline.rounds import RoundSize
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.spark.session import SparkGate
from spark_sinks.schema_registry.base import NO_SCHEMAS

WITHIN_S = 10.0
ROUNDS = 12


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def sizes_at(size: RoundSize, evaluation: Callable[[int], float], commit: Callable[[int], float]) -> list[int]:
    """Of twelve rounds whose costs are functions of their records."""
    found = []
    for _ in range(ROUNDS):
        found.append(size.next(0))
        size.measured(found[-1], evaluation(found[-1]), commit(found[-1]))
    return found


def test_a_round_comes_to_the_time_that_evaluation_may_take() -> None:
    """0.1 s and 100,000 records a second: 0.4 s are 30,000 records."""
    sizes = sizes_at(RoundSize(), lambda records: 0.1 + records / 100_000, lambda records: 0.01)
    assert FILL_EVALUATION_S == 0.4
    assert sizes[0] == 25_000
    assert sizes[-1] == pytest.approx(30_000, rel=0.01)


def test_a_round_comes_to_the_time_that_its_commit_may_take() -> None:
    """20 ms and 500,000 records a second: 0.1 s are 40,000 records, although evaluation would allow a million."""
    sizes = sizes_at(RoundSize(), lambda records: records / 2_000_000, lambda records: 0.02 + records / 500_000)
    assert FILL_COMMIT_S == 0.1
    assert sizes[-1] == pytest.approx(40_000, rel=0.01)


def test_a_round_is_never_more_than_doubled_or_halved_by_the_one_before() -> None:
    seed = random.randrange(10**9)
    print("seed", seed)
    numbers, size = random.Random(seed), RoundSize()
    for _ in range(1_000):
        before = size.next(0)
        size.measured(before, numbers.expovariate(3.0), numbers.expovariate(10.0))
        assert max(5_000, before // 2) <= size.next(0) <= 2 * before


def test_rounds_keep_a_least_size_where_fixed_costs_are_all() -> None:
    assert sizes_at(RoundSize(), lambda records: 3.0, lambda records: 0.0)[-1] == 5_000


def test_a_last_short_round_does_not_change_the_size_unless_it_took_too_long() -> None:
    size = RoundSize()
    size.measured(1_000, 0.12, 0.05)
    assert size.next(0) == 25_000
    size.measured(20_000, 0.64, 0.05)
    assert size.next(0) == 12_500


def test_a_round_that_was_longer_than_it_was_to_be_says_how_long_the_next_one_may_be() -> None:
    """One file of 600,000 records, where there were to be 25,000 of them: 0.4 s are 40,000."""
    size = RoundSize()
    size.measured(600_000, 6.0, 0.05)
    assert size.next(0) == 40_000


def test_rounds_may_be_longer_where_live_batches_take_longer() -> None:
    """On a machine where a live batch takes 1 s a round may take 2 s: with 1 s and 30,000 records a second 30,000."""
    size = RoundSize()
    for seconds in (0.9, 1.0, 60.0, 1.1, 1.0):  # their median: one that met a pause says nothing
        size.live_evaluated(seconds)
    assert sizes_at(size, lambda records: 1.0 + records / 30_000, lambda _: 0.1)[-1] == pytest.approx(30_000, rel=0.01)


def test_rounds_come_nearer_whatever_they_cost() -> None:
    """0.5 s fixed and 100,000 records a second beside 40,000 live ones a second: within 0.4 s it would never come
    nearer."""
    size, left, rounds = RoundSize(), 1_000_000, 0
    came_in, seconds = 0, 0.0
    while left > 50_000:
        records = min(left, size.next(came_in))
        evaluation_s = 0.5 + records / 100_000
        size.measured(records, evaluation_s, 0.01)
        came_in = int(40_000 * (evaluation_s + 0.01))
        left += came_in - records
        seconds += evaluation_s + 0.01
        rounds += 1
        assert rounds < 200
    assert seconds < 60.0


# --- the gate -------------------------------------------------------------------------------------------------------
@contextmanager
def held(admission: Callable[[], Any]) -> Iterator[threading.Event]:
    """A thread that has gone in, or waits to; the event tells that it is in."""
    inside, leave = threading.Event(), threading.Event()

    def go() -> None:
        with admission():
            inside.set()
            assert leave.wait(WITHIN_S)

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield inside
    finally:
        leave.set()
        thread.join(WITHIN_S)
        assert not thread.is_alive()


def test_rounds_take_all_places_where_nothing_is_live() -> None:
    gate = SparkGate(2, Clock())
    assert not gate.has_live_work()
    with held(gate.admitted_round) as first, held(gate.admitted_round) as second:
        assert first.wait(WITHIN_S)
        assert second.wait(WITHIN_S)


def test_rounds_leave_a_place_to_live_batches() -> None:
    clock = Clock()
    gate = SparkGate(2, clock)
    with gate.admitted():
        assert gate.has_live_work()
    assert gate.has_live_work()  # the next one is expected
    with held(gate.admitted_round) as first:
        assert first.wait(WITHIN_S)
        with held(gate.admitted_round) as second:
            for _ in range(3):
                with gate.admitted():  # not behind the round that waits
                    assert not second.is_set()
            clock.now += 10.0  # no live batch for so long
            assert not gate.has_live_work()
            with gate._condition:
                gate._condition.notify_all()
            assert second.wait(WITHIN_S)


def test_a_round_waits_for_its_place() -> None:
    gate = SparkGate(1, Clock())
    live = held(gate.admitted)
    assert live.__enter__().wait(WITHIN_S)
    with held(gate.admitted_round) as waiting:
        assert not waiting.is_set()
        live.__exit__(None, None, None)
        assert waiting.wait(WITHIN_S)


# --- what grouping is worth -----------------------------------------------------------------------------------------
def target(name: str) -> Any:
    return SimpleNamespace(query_id=name, state=SimpleNamespace(table=name), plan=SimpleNamespace(scan=None))


def test_what_is_not_worth_grouping_for_all_is_grouped_for_one_that_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine views have as many groups as records, the tenth has ten of them."""
    taken: list[tuple[str, int]] = []

    def evaluate(kind: str) -> Callable[..., Evaluated]:
        def run(frame: Any, targets: list[Any], reader: Any) -> Evaluated:
            taken.append((kind, len(targets)))
            return Evaluated((), (), {}, 10 if len(targets) == 1 else 100_000, None)

        return run

    monkeypatch.setattr(evaluators, "evaluate_partials", evaluate("grouped"))
    monkeypatch.setattr(evaluators, "evaluate_rows", evaluate("rows"))
    monkeypatch.setattr(evaluators, "_can_be_grouped", lambda each: True)
    monkeypatch.setattr(evaluators, "program_groups", lambda targets: [found] if (found := list(targets)) else [])
    monkeypatch.setattr(evaluators, "known_schemas", lambda reader, scans: NO_SCHEMAS)
    monkeypatch.setattr(evaluators, "build_program", lambda targets, trial, schemas: targets)
    monkeypatch.setattr(evaluators, "run_watched", lambda session, bound, body: body())
    evaluator = BatchEvaluator(cast(Any, Source()), lambda subscriber, error: None)

    def batch(*names: str, records: int = 100_000) -> None:
        shares = [Share(cast(Any, SimpleNamespace(target=target(name))), {}, {}, records) for name in names]
        evaluator.evaluate(cast(Any, SimpleNamespace(sparkSession=None)), shares, records)

    nine = [f"v{number}" for number in range(9)]
    batch(*nine)
    batch(*nine)
    batch("tenth")
    batch("tenth")
    batch("tenth", records=20_000)
    assert taken == [("grouped", 9), ("rows", 9), ("grouped", 1), ("grouped", 1), ("rows", 1)]
    taken.clear()
    for _ in range(18):
        batch(*nine)
    assert taken == [("rows", 9)] * 17 + [("grouped", 9)]  # data change: looked at again


# --- the filler -----------------------------------------------------------------------------------------------------
class Source:
    """A source of numbered records; positions are ``{"at": n}``."""

    held = rounds = live = None

    @property
    def positions(self) -> Any:
        return self

    def divisible(self, start: Any, end: Any, least: int) -> bool:
        return True

    def limit(self, start: Any, end: Any, records: int) -> Any:
        return {"at": min(end["at"], start["at"] + records)}

    def advance(self, start: Any, end: Any) -> Any:
        return end

    def distance(self, start: Any, end: Any) -> int:
        return int(end["at"]) - int(start["at"])

    def reached(self, position: Any, target: Any) -> bool:
        return bool(position["at"] >= target["at"])

    def batch(self, session: Any, start: Any, end: Any) -> Any:
        return None


def roster_at(position: int, *views: int) -> tuple[RunningState, list[Subscriber]]:
    """A pipeline that stands at a position, and views that stand elsewhere."""
    source: Any = Source()
    pipeline_state = RunningState(source, cast(Any, None), records_max=600_000)
    pipeline_state.position = pipeline_state.next = pipeline_state.latest = {"at": position}
    pipeline_state.running = True
    behind = [Subscriber(cast(Any, SimpleNamespace(query_id=f"q{at}")), 1, {"at": at}, cast(Any, None)) for at in views]
    pipeline_state.subscribers = {view.query_id: view for view in behind}
    return pipeline_state, behind


def test_who_is_close_is_taken_in_by_a_batch() -> None:
    pipeline_state, views = roster_at(1_000_000, 990_000, 950_000, 949_999)
    assert [pipeline_state.joins(view, {"at": 1_000_000}) for view in views] == [True, True, False]
    views[0].busy = True  # a round of it is under way
    assert not pipeline_state.joins(views[0], {"at": 1_000_000})


def test_the_last_stretch_is_left_to_the_next_batch_while_there_are_any() -> None:
    """Else one small round would follow the other, each behind what came in meanwhile."""
    pipeline_state, views = roster_at(1_000_000, 980_000, 979_999, 940_000)

    def left() -> list[bool]:
        return [pipeline_state.leaves_to_batch(view) for view in views]

    assert left() == [False, False, False]
    pipeline_state.last_batch_at = time.monotonic()
    assert left() == [True, False, False]
    for view in views:
        view.left_by_round = 10  # it could have read more
    assert left() == [True, False, False]
    for view in views:
        view.left_by_round = 0  # and so much has come in meanwhile
    assert left() == [True, True, False]
    pipeline_state.last_batch_at -= 60.0  # nothing comes any more
    assert left() == [False, False, False]


class Evaluator:
    """Takes 0.1 s and 10 µs a record by the clock, of one task; half of that of all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.rounds: list[tuple[int, int | None]] = []

    def evaluate(self, frame: Any, shares: list[Share], records: int, *, tasks_max: int | None = None) -> Any:
        self.rounds.append((records, tasks_max))
        self._clock.now += 0.1 + records / 100_000 / (2 if tasks_max is None else 1)
        return None, shares


class Commits:
    """Done at once, in 10 ms by the clock."""

    def put(self, work: EvaluatedBatch) -> None:
        for _, shares in work.parts:
            for share in shares:
                share.subscriber.position = share.end
        work.commit_s = 0.01
        work.done.set()


@pytest.mark.parametrize("live", [True, False])
def test_a_view_is_filled_in_rounds_by_what_is_live(monkeypatch: pytest.MonkeyPatch, *, live: bool) -> None:
    clock = Clock()
    monkeypatch.setattr("mvserver.streaming.pipeline.filler.time", SimpleNamespace(monotonic=clock))
    gate = SparkGate(2, lambda: 0.0)
    if live:
        with gate.admitted():
            pass
    pipeline_state, (view,) = roster_at(1_000_000, 0)
    answered: list[bool] = []
    rests: list[float] = []
    evaluator = Evaluator(clock)
    session = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=4))
    filler = Filler(
        pipeline_state,
        cast(Any, Source()),
        cast(BatchEvaluator, evaluator),
        cast(Committer, Commits()),
        session=lambda given_up: cast(Any, session),
        gate=gate,
        end_of_look=lambda number: pipeline_state.latest if number == 7 and answered else None,
        stopping=cast(Any, SimpleNamespace(is_set=lambda: False, wait=rests.append)),
    )
    monkeypatch.setattr(pipeline_state, "set_filled", lambda subscribers: None)
    view.fill_look = 7
    filler._turn()
    assert view.fill_target is None  # the source's end was last asked before the view was made
    answered.append(True)
    begun = view.position["at"]
    filler._turn()
    assert (view.fill_target, view.fill_records) == ({"at": 1_000_000}, 1_000_000 - begun)
    pipeline_state.latest = {"at": 2_000_000}  # whatever comes in meanwhile
    while view.position != pipeline_state.position:
        filler._turn()
    assert view.fill_target == {"at": 1_000_000}
    sizes = [records for records, _ in evaluator.rounds]
    assert sum(sizes) == 1_000_000
    if live:
        assert sizes[0] == 25_000
        assert set(sizes[5:-1]) <= set(range(29_500, 30_500))
        assert {tasks for _, tasks in evaluator.rounds} == {2}
        assert rests[5:-1] == pytest.approx([1.2] * len(rests[5:-1]), rel=0.05)
    else:
        assert evaluator.rounds == [(600_000, None), (400_000, None)]
        assert not any(rests)
