"""Queries over one topic that was deleted and created again: some stand in the old one, some read the new one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.batch.evaluate import NOTHING
from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.spark.session import SparkGate
from mvserver.views.finishing import layout_of
from spark_sinks.base import Position, SourceHealth
from spark_sinks.duckdb.writer import Writer
from spark_sinks.kafka.positions import KafkaPositions, make_position
from tests.streaming.states import target, writer_in

WITHIN_S = 20.0
OLD, NEW = "topic that was", "topic that is"
RECREATED = SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, 'topic "t" was deleted and created again')


class Topic:
    """The new one, which has as many records as ``end`` says; rounds of it are for nobody's expressions."""

    positions = KafkaPositions()
    held = live = schemas = None

    def __init__(self) -> None:
        self.end = 1
        self.health = SimpleNamespace(
            look=lambda position: SourceHealth("ok", latest=make_position(NEW, {0: self.end})),
            check_history=self._check,
            explain_failure=lambda error, position: error,
        )
        self._grown = threading.Event()

    def _check(self, start: Position) -> None:
        if start["topic_id"] != NEW:
            raise RECREATED

    @property
    def rounds(self) -> Topic:
        return self

    @property
    def logged(self) -> Topic:
        return self

    def grow(self) -> None:
        self.end += 1
        self._grown.set()

    def next_batch(self, start: Position, records: int) -> Position:
        self._check(start)
        return make_position(NEW, {0: self.end})

    def batch_end(self, checkpoint: str, batch_id: int, start: Position) -> Position:
        return make_position(NEW, {0: self.end})

    def wait(self, timeout_s: float) -> None:
        self._grown.wait(timeout_s)
        self._grown.clear()

    def batch(self, *span: Any) -> None: ...

    def confirm(self, position: Position) -> None:
        self._check(position)

    def give_up(self) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    with writer_in(tmp_path) as (_, made):
        yield made


def test_a_restart_in_the_old_topic_fails_that_query_alone(writer: Writer, tmp_path: Path) -> None:
    topic = Topic()
    services = PipelineServices(
        writer, SparkGate(), cast(Any, lambda given_up: None), tmp_path, 100, lambda query_ids: None
    )
    pipeline = Pipeline("p", cast(Any, topic), services)
    pipeline._log_batches = cast(Any, SimpleNamespace(evaluate=lambda shares: [(NOTHING, [s]) for s in shares]))
    made = {}
    for number, position in enumerate((make_position(OLD, {0: 7}), make_position(NEW, {0: 0}))):
        view = target("SELECT k, count(*) AS n FROM events GROUP BY k", number)
        with writer.transaction() as ledger:
            writer.create_state(view.state, layout_of(view))
            ledger.add_subscriber(view.query_id, 1, "p", position)
        made[number] = Subscriber(view, 1, position, view.plan.scan.error_handling, filled=True)
    old, new = made.values()
    old.failure = str(RECREATED)
    for each in (old, new):
        pipeline.add(each)
    pipeline.start(None)
    try:
        assert pipeline.wait(lambda: new.position == make_position(NEW, {0: 1}), WITHIN_S)
        pipeline.restart_subscriber(old.query_id, skip_rejected=False)
        topic.grow()
        assert pipeline.wait(lambda: old.failure is not None or new.failure is not None, WITHIN_S)
        topic.grow()
        assert pipeline.wait(lambda: new.position == make_position(NEW, {0: 3}) or new.failure is not None, WITHIN_S)
    finally:
        pipeline.stop()
    assert (old.failure, new.failure) == (str(RECREATED), None)
