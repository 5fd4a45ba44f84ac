"""A commit of which the pipeline hears nothing: the ledger says what is in the view, and each record counts once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.spark.session import SparkGate
from tests.streaming.states import writer_in
from tests.streaming.test_log_batches import PAIRS, Side, _moment

WITHIN_S = 20.0


@pytest.fixture
def side(tmp_path: Path) -> Iterator[Side]:
    with writer_in(tmp_path) as (_, writer):
        yield Side(writer, f"SELECT a.k, count(*) AS n {PAIRS} GROUP BY a.k")


def pipeline_of(side: Side, folder: Path) -> Pipeline:
    services = PipelineServices(
        side.writer, SparkGate(), cast(Any, lambda given_up: None), folder, 3, lambda query_ids: None
    )
    pipeline = Pipeline("reader", side.reader, services)
    pipeline.add(Subscriber(side.target, 1, {"seq": 0}, side.target.plan.scan.error_handling, filled=True))
    with side.writer.transaction() as ledger:
        ledger.add_subscriber("q", 1, "reader", {"seq": 0})
    return pipeline


def append(side: Side, letters: str) -> None:
    side.append([(_moment(1), letter, _moment(1)) for letter in letters])
    side.reader.notify()


@pytest.mark.parametrize("behind", ["the commit", "what is noted of it"])
def test_an_error_behind_a_commit_counts_no_record_twice(
    side: Side, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: str
) -> None:
    lost, note = threading.Event(), Subscriber.committed

    def fail_once(step: str = "after commit") -> None:
        if step == "after commit" and not lost.is_set():
            lost.set()
            raise MemoryError

    def committed(subscriber: Subscriber, *known: Any) -> None:
        fail_once()
        note(subscriber, *known)

    if behind == "the commit":
        monkeypatch.setattr(side.writer, "_reached", fail_once)
    else:
        monkeypatch.setattr(Subscriber, "committed", committed)
    pipeline = pipeline_of(side, tmp_path)
    pipeline.start({"seq": 0})
    try:
        append(side, "aab")
        assert lost.wait(WITHIN_S)
        append(side, "ca")
        assert pipeline.wait(lambda: pipeline.position == side.share.end, WITHIN_S)
    finally:
        pipeline.stop()
    assert side.rows == [("a", 3), ("b", 1), ("c", 1)]
    (row,) = side.writer.ledger_subscribers()
    assert (row.position, pipeline.subscribers[0].position) == (side.share.end, side.share.end)
