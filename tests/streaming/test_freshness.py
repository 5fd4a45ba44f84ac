"""Looks at a source's end, and reads that wait until views have come there: no Spark, no source."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mvserver import moments
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.awaited_ends import AwaitedEnds
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.source_observations import LOOKS_MAX, SourceObservations
from mvserver.streaming.pipeline.source_watch import SourceWatch
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.queries.freshness import KeptView, SourceEnds
from mvserver.streaming.queries.status import ViewName, wait_filled
from mvserver.streaming.spark.state import SparkState
from spark_sinks.base import Position, SourceHealth

LONG_S = 20.0


def at(number: int, topic: str = "t") -> Position:
    return {"at": number, "topic": topic}


class Reader:
    """A source of one number: its end. A look takes as long as ``gate`` is closed."""

    def __init__(self, end: int = 0) -> None:
        self.end = end
        self.state = "ok"
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Semaphore(0)
        self.looks = 0

    rounds = logged = held = live = None

    @property
    def positions(self) -> Any:
        return self

    @property
    def health(self) -> Any:
        return self

    def reached(self, position: Position, target: Position) -> bool:
        if position["topic"] != target["topic"]:
            raise SqlError("55000", "positions belong to different topics of the same name")
        return int(position["at"]) >= int(target["at"])

    def distance(self, start: Position, end: Position) -> int:
        return max(0, int(end["at"]) - int(start["at"]))

    def look(self, position: Position) -> SourceHealth:
        self.looks += 1
        end = self.end
        self.begun.release()
        assert self.gate.wait(LONG_S)
        if self.state == "broken":
            raise OSError("no route to host")
        if self.state == "stalled":
            return SourceHealth("stalled", "the broker is away")
        return SourceHealth("ok", latest=at(end))


class Source:
    """A pipeline without Spark: its state, and the thread that looks at its source when it is asked to."""

    def __init__(self, reader: Reader, *subscribers: Subscriber) -> None:
        self.reader = reader
        self.state = RunningState(reader, None, records_max=1)  # type: ignore[arg-type]
        self.state.subscribers = {s.query_id: s for s in subscribers}
        self.stopping = threading.Event()
        self.watch = SourceWatch(self.state, reader, interval_s=LONG_S, stopping=self.stopping)  # type: ignore[arg-type]
        self.ask_end, self.end_answered = self.watch.ask, self.watch.answer
        self.confirmed_at, self.wait, self.awaiting = self.watch.confirmed_at, self.state.wait, self.state.awaiting
        self.stalled_of, self.running = self.state.stalled_of, True
        self._thread = threading.Thread(target=self.watch.loop)

    @property
    def stalled(self) -> str | None:
        return self.state.stalled

    @property
    def standstill(self) -> str | None:
        return self.state.standstill()

    def start(self) -> Source:
        self._thread.start()
        assert self.reader.begun.acquire(timeout=LONG_S)
        return self

    def commit(self, subscriber: Subscriber, number: int) -> None:
        with self.state.lock:
            subscriber.position = at(number)
            self.state.changed.notify_all()

    def stop(self) -> None:
        self.stopping.set()
        self.watch.stop()
        if self._thread.ident is not None:
            self._thread.join(LONG_S)
            assert not self._thread.is_alive()


def subscriber(name: str = "v", number: int = 0) -> Subscriber:
    target: Any = SimpleNamespace(query_id=f"q_{name}")
    return Subscriber(target, 1, at(number), None)  # type: ignore[arg-type]


def kept(name: str, source: Source | None, view: Subscriber | None, broken: str | None = None) -> Any:
    query: Any = SimpleNamespace(id=f"q_{name}")
    return lambda: KeptView(lambda: name, query, source, view, broken)  # type: ignore[arg-type]


@pytest.fixture
def sources() -> Iterator[Callable[..., Source]]:
    made: list[Source] = []

    def make(reader: Reader, *subscribers: Subscriber) -> Source:
        made.append(Source(reader, *subscribers))
        return made[-1]

    yield make
    for source in made:
        source.reader.gate.set()
        source.stop()


# --- looks ------------------------------------------------------------------------------------------------------------
def looks(*seen: tuple[float, int]) -> SourceObservations:
    made = SourceObservations(Reader())  # type: ignore[arg-type]
    for moment, end in seen:
        made.add(moment, at(end))
    return made


def test_a_view_has_all_of_the_last_moment_whose_end_it_has_reached() -> None:
    made = looks((10.0, 5), (20.0, 7), (30.0, 9))
    assert [made.confirmed(at(n)) for n in (4, 5, 6, 7, 8, 9, 99)] == [None, 10.0, 10.0, 20.0, 20.0, 30.0, 30.0]
    made.forget_before(20.0)
    assert (len(made), made.confirmed(at(6)), made.confirmed(at(8))) == (2, None, 20.0)


def test_an_end_that_has_not_moved_confirms_the_later_moment() -> None:
    made = looks((10.0, 5), (20.0, 5))
    assert (len(made), made.confirmed(at(5))) == (1, 20.0)


def test_a_topic_made_anew_confirms_nothing() -> None:
    assert looks((10.0, 5)).confirmed(at(9, "another")) is None


def test_looks_that_nobody_reaches_are_bounded() -> None:
    made = looks(*((float(n), n) for n in range(1, 10 * LOOKS_MAX)))
    assert len(made) <= LOOKS_MAX
    assert made.confirmed(at(1)) == 1.0
    last = 10 * LOOKS_MAX - 1
    assert made.confirmed(at(last)) == float(last)


# --- the watch --------------------------------------------------------------------------------------------------------
def test_whoever_asks_during_a_look_is_answered_by_the_next_and_all_by_one(sources: Callable[..., Source]) -> None:
    reader = Reader(end=3)
    reader.gate.clear()
    source = sources(reader, subscriber()).start()  # the first look is under way, and has seen 3
    reader.end = 5
    numbers = [source.ask_end() for _ in range(50)]
    reader.gate.set()
    assert source.wait(lambda: source.end_answered(numbers[0]) is not None, LONG_S)
    assert {str(source.end_answered(number)) for number in numbers} == {str(at(5))}
    assert reader.looks == 2


def test_without_a_question_the_source_is_left_alone(sources: Callable[..., Source]) -> None:
    source = sources(Reader(end=3), subscriber()).start()
    assert source.wait(lambda: source.end_answered(1) is not None, LONG_S)
    assert source.end_answered(2) is None
    source.stop()  # at once, although the next look is far away
    assert source.reader.looks == 1


def test_a_commit_confirms_the_moment_of_the_look_not_its_own(sources: Callable[..., Source]) -> None:
    view = subscriber()
    before = moments.now()
    source = sources(Reader(end=3), view).start()
    assert source.wait(lambda: source.end_answered(1) is not None, LONG_S)
    after = moments.now()
    assert source.confirmed_at(view) is None
    source.commit(view, 2)
    assert source.confirmed_at(view) is None  # it changes, and has not all
    source.commit(view, 4)
    moment = source.confirmed_at(view)
    assert moment is not None
    assert before <= moment <= after


def test_a_clock_that_is_put_back_makes_no_moment_later(
    sources: Callable[..., Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was confirmed before was taken for what would be confirmed within the next hour."""
    view, clock = subscriber(number=3), time.time
    source = sources(Reader(end=3), view).start()
    assert source.wait(lambda: source.end_answered(1) is not None, LONG_S)
    known = source.confirmed_at(view)
    assert known is not None
    monkeypatch.setattr(time, "time", lambda: clock() - 3600)
    source.ask_end()
    assert source.wait(lambda: source.end_answered(2) is not None, LONG_S)
    later = source.confirmed_at(view)
    assert later is not None
    assert known < later
    assert 0 <= moments.now() - later < LONG_S
    assert moments.by_the_clock(later) == pytest.approx(time.time(), abs=LONG_S)


# --- the wait ---------------------------------------------------------------------------------------------------------
def test_a_view_that_is_there_is_not_waited_for(sources: Callable[..., Source]) -> None:
    view = subscriber(number=3)
    source = sources(Reader(end=3), view).start()
    assert SourceEnds([kept("v", source, view)]).wait(LONG_S)


def test_all_views_of_all_sources_are_waited_for_and_what_comes_later_is_not(sources: Callable[..., Source]) -> None:
    first, second = subscriber("v"), subscriber("w")
    one, other = sources(Reader(end=3), first).start(), sources(Reader(end=7), second).start()
    ends = SourceEnds([kept("v", one, first), kept("w", other, second)])
    for source in (one, other):
        assert source.wait(lambda source=source: source.end_answered(2) is not None, LONG_S)  # type: ignore[misc]
    assert not ends.wait(0.0)
    one.reader.end = 100
    one.commit(first, 3)
    assert not ends.wait(0.0)
    waited: list[bool] = []
    reader = threading.Thread(target=lambda: waited.append(ends.wait(LONG_S)))
    reader.start()
    other.commit(second, 7)
    reader.join(LONG_S)
    assert waited == [True]


def test_a_pipeline_knows_the_ends_that_are_waited_for(sources: Callable[..., Source]) -> None:
    view = subscriber(number=3)
    source = sources(Reader(end=7), view).start()
    ends = SourceEnds([kept("v", source, view)])
    assert not ends.wait(0.2)
    assert not source.state.awaited
    waited: list[bool] = []
    reader = threading.Thread(target=lambda: waited.append(ends.wait(LONG_S)))
    reader.start()
    assert source.wait(lambda: source.state.awaited.known() == [at(7)], LONG_S)
    source.commit(view, 5)
    assert source.state.awaited.known() == [at(7)]
    source.commit(view, 7)
    reader.join(LONG_S)
    assert waited == [True]
    assert not source.state.awaited


def test_waiters_that_one_look_has_answered_wait_for_one_end() -> None:
    ends, end = AwaitedEnds(), at(7)
    for each in (end, None, end, at(9)):
        ends.add(each)
    assert ends.known() == [end, at(9)]
    ends.remove(end)
    assert ends.known() == [at(9), end]
    ends.remove(end)
    ends.remove(None)
    assert ends.known() == [at(9)]
    assert ends


def test_what_is_said_of_views_that_lag(sources: Callable[..., Source]) -> None:
    first, second = subscriber("v", 2), subscriber("w", 1)
    source = sources(Reader(end=2), first, second).start()
    assert source.wait(lambda: source.end_answered(1) is not None, LONG_S)
    source.confirmed_at(first)
    source.reader.end = 3
    ends = SourceEnds([kept("v", source, first), kept("w", source, second)])
    assert source.wait(lambda: source.end_answered(2) is not None, LONG_S)
    assert not ends.wait(0.0)
    source.running = False
    error = ends.behind()
    assert (error.sqlstate, error.message) == (
        "55000", 'materialized view "v" is not as fresh as mv.freshness asks',
    )  # fmt: skip
    assert re.sub(r"\d\.\d s ago", "a moment ago", error.detail or "") == (
        '"v" lags 1 record behind the end that its source had when the query arrived. It is not being read at this '
        "moment: Spark is starting, or the pipeline is. The view last had all of it a moment ago. "
        'The source of "w" has not said yet where it ends. It is not being read at this moment: Spark is starting, or '
        "the pipeline is."
    )
    assert "mv.freshness_timeout" in (error.hint or "")


def test_a_source_that_does_not_answer_is_named(sources: Callable[..., Source]) -> None:
    view = subscriber()
    reader = Reader()
    reader.state = "stalled"
    source = sources(reader, view).start()
    assert source.wait(lambda: source.stalled is not None, LONG_S)
    ends = SourceEnds([kept("v", source, view)])
    assert not ends.wait(0.0)
    assert ends.behind().detail == (
        'The source of "v" has not said yet where it ends. The source does not answer: the broker is away.'
    )


def test_a_batch_that_takes_long_is_named_as_what_it_is(sources: Callable[..., Source]) -> None:
    """The source answers: nothing is said against it."""
    view = subscriber()
    source = sources(Reader(end=3), view)
    source.state.met("a batch of about 600000 records has been evaluated for 70 s")
    behind = SourceEnds([kept("v", source, view)]).behind().detail
    assert behind == (
        'The source of "v" has not said yet where it ends. A batch of about 600000 records has been evaluated for 70 s.'
    )
    pipeline: Any = source
    with pytest.raises(SqlError) as raised:
        wait_filled(ViewName("v", "q_v"), view, pipeline, time.monotonic(), SparkState)
    assert raised.value.detail == (
        "0% of its source's history is read. A batch of about 600000 records has been evaluated for 70 s."
    )


@pytest.mark.parametrize("how", ["terminated", "failed", "held", "broken", "without Spark"])
def test_a_view_that_nothing_keeps_is_refused_at_once(sources: Callable[..., Source], how: str) -> None:
    view = subscriber()
    source = sources(Reader(end=3), view)
    located = kept("v", source, view)
    if how == "terminated":
        view.terminated = True
    elif how == "failed":
        view.failure = "22012: division by zero"
    elif how == "held":
        other = subscriber("w")
        other.failure, view.application = "22012: division by zero", (other,)
    else:
        located = kept("v", *((None, None) if how == "broken" else (source, view)), "42P01: it is gone")
    with pytest.raises(SqlError) as caught:
        SourceEnds([located])
    assert (caught.value.sqlstate, caught.value.message) == (
        "55000", 'materialized view "v" is not kept up to date',
    )  # fmt: skip
    assert (
        caught.value.detail
        == {
            "terminated": "Its query q_v is TERMINATED.",
            "failed": "Its query q_v is FAILED: 22012: division by zero",
            "held": "Its query q_v is FAILED: query q_w of the same application has failed: 22012: division by zero",
            "broken": "Its query q_v is FAILED: 42P01: it is gone",
            "without Spark": "Its query q_v is FAILED: 42P01: it is gone",
        }[how]
    )


def test_a_view_that_fails_meanwhile_ends_the_wait(sources: Callable[..., Source]) -> None:
    view = subscriber()
    source = sources(Reader(end=3), view).start()
    ends = SourceEnds([kept("v", source, view)])
    raised: list[SqlError] = []

    def wait() -> None:
        with pytest.raises(SqlError) as caught:
            ends.wait(LONG_S)
        raised.append(caught.value)

    reader = threading.Thread(target=wait)
    reader.start()
    with source.state.lock:
        view.failure = "22003: out of range"
        source.state.changed.notify_all()
    reader.join(LONG_S)
    assert [error.detail for error in raised] == ["Its query q_v is FAILED: 22003: out of range"]


def test_a_dropped_view_is_not_waited_for_and_a_new_pipeline_is_asked_anew(sources: Callable[..., Source]) -> None:
    assert SourceEnds([lambda: None]).wait(0.0)
    view = subscriber(number=3)
    old, new = sources(Reader(end=9), view), sources(Reader(end=3), view).start()  # the old one was never looked at
    place = [old]
    ends = SourceEnds([lambda: kept("v", place[0], view)()])
    assert not ends.wait(0.0)
    place[0] = new
    assert ends.wait(LONG_S)


def test_a_source_that_cannot_be_asked_is_asked_again(sources: Callable[..., Source]) -> None:
    view = subscriber(number=3)
    reader = Reader(3)
    source = sources(reader, view).start()
    source.state.running = True
    reader.state = "broken"
    number = source.ask_end()
    assert source.wait(lambda: source.stalled is not None, LONG_S)
    assert source.stalled == "OSError: no route to host"
    assert source.end_answered(number) is None
    reader.state = "ok"
    number = source.ask_end()
    assert source.wait(lambda: source.end_answered(number) == at(3), LONG_S)
    assert source.stalled is None
