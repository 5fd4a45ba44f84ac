"""Errors of PySpark and py4j whose JVM has ended, and so cannot tell their text: no thread ends of them."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors.exceptions.captured import AnalysisException, StreamingQueryException

from mvserver.errors import SqlError, words_of
from mvserver.observability import LineFormatter
from mvserver.streaming.pipeline import filler
from mvserver.streaming.pipeline.filler import Filler
from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.source_watch import SourceWatch
from mvserver.streaming.pipeline.stall import Stall
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.queries import csas
from mvserver.streaming.queries.csas import SinkQuery
from mvserver.streaming.spark.errors import error_line, is_data_error, is_too_large, sql_error
from mvserver.streaming.spark.pyspark_state import is_dying, is_gateway_error
from mvserver.streaming.spark.session import SparkGate
from spark_sinks.base import SourceHealth
from spark_sinks.duckdb.ledger.damage import DamageWatch
from spark_sinks.kafka.failures import _whole_text


def captured(kind: type[Any], text: str) -> Exception:
    """As PySpark makes it of an error of the JVM."""
    error = kind.__new__(kind)
    error._desc, error._stackTrace, error._cause, error._origin = text, f"at {text}", None, object()
    return cast(Exception, error)


class _Gone:
    def send_command(self, command: str) -> str:
        raise Py4JNetworkError("Error while sending or receiving")


def java_error(text: str) -> Exception:
    return Py4JJavaError(text, SimpleNamespace(_target_id="o1", _gateway_client=_Gone()))


LOST = pytest.mark.parametrize(
    "error",
    [
        captured(StreamingQueryException, "Job 3 cancelled because SparkContext was shut down"),
        captured(AnalysisException, "SparkContext was shut down"),
        java_error("An error occurred while calling o83.toArrow: SparkContext was shut down"),
    ],
)


@pytest.fixture(autouse=True)
def _gone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_jvm", "_gateway", "_active_spark_context"):
        monkeypatch.setattr(SparkContext, name, None)


@LOST
def test_whatever_asks_for_its_text_gets_one(error: Exception) -> None:
    with pytest.raises(Exception):  # noqa: B017 - as PySpark and py4j do
        str(error)
    wrapped = ValueError("outer")
    wrapped.__cause__ = error
    assert "SparkContext was shut down" in words_of(error)
    assert "SparkContext was shut down" in error_line(error)
    assert "SparkContext was shut down" in _whole_text(wrapped)
    assert is_gateway_error(error)
    assert is_gateway_error(wrapped)
    assert not is_too_large(error)
    assert not is_data_error(error)
    assert isinstance(sql_error(error), SqlError)
    assert DamageWatch().notice(wrapped) is False


def test_an_error_without_any_words_is_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise AssertionError

    assert words_of(Mute()) == "Mute"


# --- threads --------------------------------------------------------------------------------------------------------
WITHIN_S = 60.0


class Hindered:
    """A source that fails in telling what an error is, and whose failure cannot be written down."""

    rounds = logged = held = positions = live = None

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.damage = DamageWatch()

    @property
    def health(self) -> Any:
        return self

    def explain_failure(self, error: BaseException, position: Any) -> Exception:
        self.asked.release()
        raise OSError("no route to host")

    def look(self, position: Any) -> SourceHealth:
        self.asked.release()
        return SourceHealth("failed", "the topic is gone")

    def transaction(self) -> Any:
        raise OSError("no space left on device")

    def give_up(self) -> None: ...

    def close(self) -> None: ...


def view() -> Subscriber:
    target: Any = SimpleNamespace(query_id="q", state=None)
    return Subscriber(target, 1, {"at": 3}, cast(Any, None), filled=True)


@LOST
def test_a_pipeline_goes_on_whatever_ended_its_generation(error: Exception, tmp_path: Path) -> None:
    source = cast(Any, Hindered())
    tries = threading.Semaphore(0)

    def session(given_up: Any) -> Any:
        tries.release()
        raise error

    services = PipelineServices(
        writer=source, gate=SparkGate(), session=session, work_directory=tmp_path, records_per_trigger=10,
        committed=lambda ids: None, health_interval_s=WITHIN_S,
    )  # fmt: skip
    pipeline = Pipeline("p", source, services)
    pipeline._watch.loop = lambda: None  # type: ignore[method-assign] # which shows another cause
    pipeline.add(view())
    pipeline.start({"at": 3})
    try:
        assert tries.acquire(timeout=WITHIN_S)
        assert tries.acquire(timeout=WITHIN_S)  # it tries again
        assert "SparkContext was shut down" in (pipeline.stalled or "")
    finally:
        pipeline.stop()


@LOST
def test_a_filler_goes_on_and_its_views_stand_where_they_stood(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filler, "_RETRY_S", 0.01)
    source, stopping = cast(Any, Hindered()), threading.Event()
    pipeline_state = RunningState(source, source, records_max=1)
    behind = view()
    nothing = cast(Any, None)
    made = Filler(
        pipeline_state, source, nothing, nothing, session=nothing, gate=nothing, end_of_look=nothing, stopping=stopping
    )

    def round_of() -> list[Subscriber]:
        assert behind.claimed == behind.position
        behind.claimed = {"at": 9}
        return [behind]

    def fill(group: list[Subscriber]) -> float:
        raise error

    made._next_round, made._fill_round = round_of, fill  # type: ignore[method-assign]
    thread = threading.Thread(target=made.loop)
    thread.start()
    try:
        for _ in range(2):
            assert source.asked.acquire(timeout=WITHIN_S)
    finally:
        stopping.set()
        thread.join(WITHIN_S)
    assert behind.claimed == behind.position


def test_a_look_that_cannot_be_written_down_is_not_the_last(tmp_path: Path) -> None:
    source, stopping = cast(Any, Hindered()), threading.Event()
    pipeline_state = RunningState(source, source, records_max=1)
    watch = SourceWatch(pipeline_state, source, interval_s=0.01, stopping=stopping)
    thread = threading.Thread(target=watch.loop)
    pipeline_state.subscribers["q"] = view()
    thread.start()
    try:
        assert source.asked.acquire(timeout=WITHIN_S)
        pipeline_state.subscribers["q"] = view()  # as one that is made anew
        assert source.asked.acquire(timeout=WITHIN_S)
    finally:
        stopping.set()
        thread.join(WITHIN_S)
    assert pipeline_state.stalled == "no space left on device"


def test_a_query_that_writes_is_stalled_until_it_has_written_all() -> None:
    """Each attempt at a sink that takes nothing runs for a moment, over a source that is well."""
    query, answer = object.__new__(SinkQuery), SourceHealth("ok", latest={"at": 5})
    query._failure, query._latest, query._position, query._stall = None, None, {"at": 1}, Stall()
    query._stall.failed("no space left")
    query._reader = cast(Any, SimpleNamespace(
        health=SimpleNamespace(look=lambda position: answer),
        positions=SimpleNamespace(distance=lambda start, end: end["at"] - start["at"]),
    ))  # fmt: skip
    query._set_running(True)
    query._look({"at": 1})
    assert query._stall.cause == "no space left"
    query._look({"at": 5})
    assert query._stall.cause is None
    answer = SourceHealth("stalled", "no answer")
    query._look({"at": 1})
    assert query._stall.cause == "no answer"
    answer = SourceHealth("ok", latest={"at": 5})
    query._look({"at": 1})
    assert query._stall.cause is None


@LOST
def test_a_query_that_writes_goes_on(error: Exception) -> None:
    query = object.__new__(SinkQuery)
    query._stopping, query._failure, query._stall, query._position = threading.Event(), None, Stall(), {"at": 1}
    query._reader, query._query = cast(Any, Hindered()), cast(Any, SimpleNamespace(id="q"))
    query._reader.look = lambda position: SourceHealth("ok")
    query._noted(error)
    assert "SparkContext was shut down" in (query._stall.cause or "")
    assert query._failure is None


@LOST
def test_a_line_of_the_log_is_written_all_the_same(error: Exception) -> None:
    record = logging.LogRecord("name", logging.WARNING, "", 0, "query %s stopped: %s", ("q", error), None)
    assert "WARNING name query q stopped: " in LineFormatter().format(record)
    assert "SparkContext was shut down" in LineFormatter().format(record)
    plain = logging.LogRecord("name", logging.INFO, "", 0, "100% done", None, None)
    assert LineFormatter().format(plain).endswith("INFO name 100% done")


def test_an_error_that_is_its_own_cause_is_looked_at_once() -> None:
    error, other = ValueError("another matter"), ValueError("a second one")
    error.__cause__, other.__cause__ = other, error
    alone = ValueError("alone")
    alone.__cause__ = alone
    for each in (error, other, alone):
        assert not is_gateway_error(each)
        assert not is_dying(each)
        assert "ValueError: " in _whole_text(each)
        assert DamageWatch().notice(each) is False


def test_a_failure_that_is_nobodys_is_raised_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as its own cause."""
    positions = SimpleNamespace(distance=lambda start, end: 7, divisible=lambda start, end, least: False)
    reader: Any = SimpleNamespace(positions=positions)
    query = object.__new__(SinkQuery)
    query._reader, query._services, query._stopping = (
        reader,
        cast(Any, SimpleNamespace(batch_timeout_s=1.0)),
        threading.Event(),
    )
    failure, query._stall = OSError("no route to host"), Stall()

    def fails(*_: Any) -> Any:
        raise failure

    monkeypatch.setattr(csas, "run_watched", fails)
    with pytest.raises(OSError, match="no route") as raised:
        query._evaluated(cast(Any, SimpleNamespace(sparkSession=None)), {"seq": 0}, {"seq": 7})
    assert raised.value.__cause__ is None
