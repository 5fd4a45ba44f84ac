"""Spark's supervisor over stand-ins for its process: what is started when, and what whoever waits or fails is told."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.spark_jvm import JvmStartError, start_jvm
from mvserver.streaming.spark import process as spark_process
from mvserver.streaming.spark import supervisor as supervisors
from mvserver.streaming.spark.isolation import Isolation
from mvserver.streaming.spark.options import SparkOptions
from mvserver.streaming.spark.state import SparkLostError, SparkState
from mvserver.streaming.spark.supervisor import SparkSupervisor, Supervision

POSITIONS = cast(Any, SimpleNamespace(distance=lambda start, end: end["seq"] - start["seq"]))


class Life:
    """One life of Spark that a test ends."""

    def __init__(self, changed: Callable[[], None], failure: Exception | None) -> None:
        self._changed = changed
        self._failure = failure
        self.session: Any = None
        self.broken: str | None = None
        self.ended = threading.Event()
        self.silent_s = 0.0
        self.answers = 0
        self.is_stopped = False
        self.context_stopped = False
        self.crashed: bool | None = False
        self.end = "signal 9"
        self.forgotten = False

    def start(self) -> Any:
        if self._failure is not None:
            raise self._failure
        scala = SimpleNamespace(isStopped=lambda: self.context_stopped)
        context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scala))
        self.session = SimpleNamespace(version="4", sparkContext=context)
        return self.session

    def ends(self) -> None:
        self.ended.set()
        self._changed()

    def kill(self, reason: str) -> None:
        self.end = reason
        self.ends()

    def stop(self) -> None:
        self.ends()

    def forget(self) -> None:
        self.session, self.forgotten = None, True


class World:
    def __init__(self, folder: Path, supervision: Supervision, failures: list[Exception | None]) -> None:
        self.lives: list[Life] = []
        self.isolation = Isolation(folder)
        self.spark = SparkSupervisor(SparkOptions(), supervision, self.isolation, cast(Any, self._make))
        self._failures = failures

    def _make(self, options: SparkOptions, changed: Callable[[], None]) -> Life:
        life = Life(changed, self._failures.pop(0) if self._failures else None)
        self.lives.append(life)
        return life

    def session(self) -> Any:
        return self.spark.session()


def until(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    monkeypatch.setattr(supervisors, "_PAUSES_S", (0.0,))
    monkeypatch.setattr(supervisors, "_LOOK_S", 0.01)
    made: list[World] = []

    def make(restarts: int = 20, timeout_s: float = 60.0, failures: list[Exception | None] | None = None) -> World:
        world = World(tmp_path / "spark", Supervision(restarts, timeout_s), failures or [])
        made.append(world)
        world.spark.start()
        return world

    yield make
    for world in made:
        world.spark.stop()


def test_one_that_ends_is_started_again_and_its_sessions_are_told_apart(make: Callable[..., World]) -> None:
    world = make()
    first = world.session()
    assert world.spark.state == SparkState()
    assert world.spark.is_current(first)
    world.lives[0].ends()
    until(lambda: not world.spark.is_current(first))
    second = world.session()
    assert second is not first
    assert world.lives[0].forgotten
    lost = world.spark.lost(first, Py4JNetworkError("Answer from Java side is empty"))
    assert isinstance(lost, SparkLostError)
    assert (lost.sqlstate, lost.detail) == ("57P03", "Spark ended (signal 9).")
    assert world.spark.lost(second, ValueError("another matter")) is None


def test_a_call_that_fails_before_the_end_is_known_waits_for_it(make: Callable[..., World]) -> None:
    world = make()
    session = world.session()
    found: list[SqlError | None] = []
    error = Py4JError("An error occurred while calling o83.sc")
    thread = threading.Thread(target=lambda: found.append(world.spark.lost(session, error)))
    thread.start()
    world.lives[0].ends()
    thread.join()
    assert isinstance(found[0], SparkLostError)


def test_a_query_that_fails_when_the_jvm_answers_no_more_waits_for_its_end(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error need not tell, and whether the context was stopped cannot be asked any more."""
    world = make()
    session = world.session()
    asked = threading.Event()

    def has_stopped(_: Any) -> None:
        asked.set()

    monkeypatch.setattr(supervisors, "has_stopped", has_stopped)
    found: list[SqlError | None] = []
    error = RuntimeError("[STREAM_FAILED] assertion failed")
    thread = threading.Thread(target=lambda: found.append(world.spark.lost(session, error)))
    thread.start()
    assert asked.wait(60)
    world.lives[0].ends()
    thread.join()
    assert isinstance(found[0], SparkLostError)


def test_while_it_is_started_again_its_end_is_the_cause(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisors, "_PAUSES_S", (0.0, 3600.0))
    world = make()
    world.session()
    world.lives[0].ends()
    until(lambda: len(world.lives) == 2)
    world.session()
    world.lives[1].end = "code 52"
    world.lives[1].ends()
    until(lambda: "started again at" in (world.spark.state.interruption or ""))
    assert world.spark.state.interruption is not None
    assert world.spark.state.interruption.startswith("Spark ended (code 52); it is started again at ")
    assert world.spark.state.interruption.endswith(" UTC, attempt 1")
    with pytest.raises(SqlError, match="Spark is not available at the moment") as raised:
        world.spark.wait(0.01)
    assert raised.value.sqlstate == "57P03"
    with pytest.raises(SqlError) as raised:
        world.spark.session(lambda: True)  # who needs it no longer does not wait
    assert raised.value.sqlstate == "57014"


def test_it_is_started_so_often_within_an_hour(make: Callable[..., World]) -> None:
    world = make(restarts=2)
    for number in range(3):
        until(lambda number=number: len(world.lives) == number + 1)  # type: ignore[misc]
        world.session()
        world.lives[number].ends()
    until(lambda: "it was started again 2 times within an hour" in (world.spark.state.interruption or ""))
    began = time.monotonic()
    with pytest.raises(SqlError, match="Spark has ended too often") as raised:
        world.spark.wait(60)  # there is no waiting for it
    assert raised.value.sqlstate == "58000"
    assert "Restarting the server starts Spark at once" in (raised.value.hint or "")
    assert time.monotonic() - began < 30


def test_with_no_restarts_it_stays_down(make: Callable[..., World]) -> None:
    world = make(restarts=0)
    world.session()
    world.lives[0].ends()
    until(lambda: world.spark.state.problem is not None)
    with pytest.raises(SqlError, match="Spark has ended and is not started again") as raised:
        world.spark.wait(60)
    assert raised.value.sqlstate == "58000"
    assert len(world.lives) == 1


def test_one_that_does_not_answer_is_shown_and_ended_after_a_while(make: Callable[..., World]) -> None:
    world = make(timeout_s=20.0)
    first = world.session()
    world.lives[0].is_stopped = True
    world.lives[0].silent_s = limits.SPARK_SILENT_S + 2
    until(lambda: world.spark.state.interruption is not None)
    assert world.spark.state.interruption == (
        "Spark has not answered for 10 s (its process is stopped), and is ended and started again after 20 s"
    )
    assert world.spark.is_current(first)  # what it computes is still waited for
    world.lives[0].silent_s = 0.0
    until(lambda: world.spark.state == SparkState())
    assert world.session() is first
    world.lives[0].silent_s = 21.0
    until(lambda: len(world.lives) == 2)
    assert world.session() is not first
    assert world.lives[0].end == "it had not answered for 20 s"


def test_one_whose_gateway_is_broken_is_ended(make: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SPARK_ENDING_S", 0.01)
    world = make()
    first = world.session()
    world.lives[0].broken = "its gateway is broken: Py4JNetworkError"
    until(lambda: not world.spark.is_current(first))
    world.session()
    assert world.lives[0].ended.is_set()


def test_a_first_start_that_fails_is_final_unless_it_was_killed(make: Callable[..., World]) -> None:
    world = make(failures=[JvmStartError("the JVM ended with signal 9", 9), JvmStartError("code 1")])
    until(lambda: world.spark.state.problem is not None)
    assert len(world.lives) == 2
    with pytest.raises(SqlError, match="Spark could not be started") as raised:
        world.spark.wait(60)
    assert (raised.value.sqlstate, raised.value.detail) == ("58000", "code 1.")


def test_a_later_start_that_fails_is_tried_again(make: Callable[..., World]) -> None:
    world = make(failures=[None, JvmStartError("code 1"), SqlError("58000", "no Java"), None])
    first = world.session()
    world.lives[0].ends()
    until(lambda: len(world.lives) == 4)
    assert world.session() is not first


@pytest.mark.parametrize(("crashed", "noted"), [(True, (1, 0)), (False, (0, 1)), (None, None)])
def test_what_was_evaluated_when_it_ended_is_suspect(
    make: Callable[..., World], tmp_path: Path, crashed: bool | None, noted: tuple[int, int] | None
) -> None:
    world = make()
    session = world.session()
    world.lives[0].crashed = crashed

    def verdict(error: Exception) -> None:
        lost = world.spark.lost(session, error)
        if lost is not None:
            raise lost

    def evaluate() -> None:
        with world.isolation.evaluating("p", POSITIONS, {"seq": 3}, {"seq": 4}, verdict):
            world.lives[0].ends()
            raise Py4JError("An error occurred while calling o83.toArrow")

    with pytest.raises(SparkLostError):
        evaluate()
    notes = tmp_path / "spark" / "suspects.json"
    found = [(each["start"], each["crashes"], each["kills"]) for each in json.loads(notes.read_text())] if noted else []
    assert found == ([] if noted is None else [({"seq": 3}, *noted)])
    assert notes.exists() is (noted is not None)


OUT_OF_MEMORY = RuntimeError("Lost task 0.0 in stage 1.0: java.lang.OutOfMemoryError: Java heap space")


def test_after_an_error_that_ends_the_jvm_its_end_is_waited_for(make: Callable[..., World], tmp_path: Path) -> None:
    """The job has failed before the process ends: the batch is under way until then, and is the one to blame."""
    world = make()
    session = world.session()
    life = world.lives[0]
    life.crashed, life.end = True, "code 52"
    found: list[BaseException] = []

    def verdict(error: Exception) -> None:
        lost = world.spark.lost(session, error)
        if lost is not None:
            raise lost

    def evaluate() -> None:
        try:
            with world.isolation.evaluating("poisoned", POSITIONS, {"seq": 3}, {"seq": 4}, verdict):
                raise OUT_OF_MEMORY
        except SparkLostError as error:
            found.append(error)

    thread = threading.Thread(target=evaluate)
    thread.start()
    life.answers += 3  # while its shutdown hooks run
    thread.join(0.3)
    assert thread.is_alive()
    life.ends()
    thread.join()
    assert found
    (noted,) = json.loads((tmp_path / "spark" / "suspects.json").read_text())
    assert (noted["source"], noted["crashes"]) == ("poisoned", 1)


def test_what_fails_in_a_jvm_that_was_told_to_end_waits_for_its_end(make: Callable[..., World]) -> None:
    """Its context has stopped, while it still answers; the error itself says nothing of that."""
    world = make()
    session = world.session()
    life = world.lives[0]
    life.context_stopped = True
    found: list[SparkLostError | None] = []
    thread = threading.Thread(target=lambda: found.append(world.spark.lost(session, ValueError("assertion failed"))))
    thread.start()
    life.answers += 2
    life.ends()
    thread.join(60)
    assert [lost is not None and str(lost.detail).startswith("Spark ended (signal 9)") for lost in found] == [True]


@pytest.mark.parametrize("error", [OUT_OF_MEMORY, Py4JError("An error occurred"), EOFError(), ConnectionResetError()])
def test_a_jvm_that_answers_again_is_not_waited_for(make: Callable[..., World], error: Exception) -> None:
    world = make()
    session = world.session()
    stop = threading.Event()

    def answer() -> None:
        while not stop.wait(0.01):
            world.lives[0].answers += 1

    thread = threading.Thread(target=answer)
    thread.start()
    began = time.monotonic()
    try:
        assert world.spark.lost(session, error) is None
    finally:
        stop.set()
        thread.join()
    assert world.spark.lost(session, error) is None  # asked again, by whoever is around the first
    assert time.monotonic() - began < limits.SPARK_NOTICED_S


def test_a_start_that_takes_too_long_is_tried_again(
    make: Callable[..., World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(JvmStartError) as late:
        start_jvm([sys.executable, "-c", "import sys; sys.stdin.read()"], timeout_s=0.1)
    world = make(failures=[late.value, late.value])
    until(lambda: len(world.lives) == 3)
    assert world.session() is world.lives[2].session
    assert world.spark.state == SparkState()


def test_a_former_life_that_cannot_be_let_go_of_hinders_nobody(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(life: Life) -> None:
        life.forgotten = True
        raise OSError("device or resource busy")

    world = make()
    first = world.session()
    with monkeypatch.context() as patched:
        patched.setattr(Life, "forget", fails)
        world.lives[0].ends()
        until(lambda: world.lives[0].forgotten and len(world.lives) == 2)
    assert world.session() is not first


def test_supervision_that_fails_says_so(make: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    world = make()
    world.session()
    monkeypatch.setattr(world.isolation, "spark_ended", lambda cause, crashed: 1 / 0)
    world.lives[0].ends()
    until(lambda: world.spark.state.problem is not None)
    assert "Its supervision has failed: division by zero." in (world.spark.state.problem or "")
    with pytest.raises(SqlError, match="Spark is not started again"):
        world.session()


def test_an_abandoned_jvm_is_waited_for_so_that_it_is_reaped(make: Callable[..., World]) -> None:
    world = make()
    world.session()
    life = world.lives[0]
    reaped: list[float | None] = []
    ended: Any = SimpleNamespace(is_set=life.ended.is_set, wait=lambda limit_s=None: reaped.append(limit_s))
    life.ended, real = ended, life.ended
    life.ends = real.set  # type: ignore[method-assign]
    world.spark.abandon()
    assert reaped[-1:] == [limits.SPARK_REAPED_S]
    life.ended = real


def test_an_oom_kill_of_another_process_long_ago_is_not_this_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    kills = [3]
    monkeypatch.setattr(spark_process, "oom_kills", lambda: kills[0])
    monkeypatch.setattr(limits, "SPARK_PING_S", 0.001)
    process = spark_process.SparkProcess(SparkOptions(), lambda: None)
    process._process = cast(Any, SimpleNamespace(returncode=-9))
    well: Any = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=well))
    kills[0] += 1  # of another process
    thread = threading.Thread(target=process._ask, args=(session,))
    thread.start()
    until(lambda: process.answers > 1)
    process.ended.set()
    thread.join()
    assert (process.crashed, process.end) == (False, "signal 9")
    kills[0] += 1
    assert (process.crashed, process.end) == (True, "signal 9, the system was out of memory")
