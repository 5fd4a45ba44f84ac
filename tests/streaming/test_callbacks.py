"""What a query leaves behind when it has ended: no connection by which it called back, and none to its cluster."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from catalog.model import Query
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.generation import run_generation
from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.push.bounded import BoundedReads
from mvserver.streaming.queries.csas import SinkQuery
from mvserver.streaming.queries.outgoing import Rows
from mvserver.streaming.queries.record_form import RecordForm
from mvserver.streaming.spark.guard import Unguarded
from spark_sinks.file.entity_files import DirectoryFiles
from spark_sinks.file.source import FileReader
from tests.streaming.states import target


@pytest.mark.spark
def test_queries_that_have_ended_keep_no_connection(spark: Any, tmp_path: Path) -> None:
    directory = tmp_path / "lines"
    directory.mkdir()
    (directory / "a.json").write_text(json.dumps({"a": 1}) + "\n")
    left: list[int] = []
    for number in range(3):
        reader = FileReader(DirectoryFiles(directory), tmp_path / f"work-{number}", None, poll_s=0.02)
        done = threading.Event()
        run_generation(
            spark,
            reader,
            reader.adopt({"seq": 0}, fresh=True),
            tmp_path / f"work-{number}" / "checkpoint-1",
            records_per_trigger=100,
            on_batch=lambda frame, batch_id, done=done: done.set(),  # type: ignore[misc]
            ended=done.is_set,
            running=lambda running: None,
        )
        left.append(_callbacks(spark, left[0] if left else 1))
    # the JVM's own thread, which lets go of our objects, may have one, and so may tests that share this Spark
    assert max(left) == left[0], left


def _callbacks(spark: Any, most: int) -> int:
    """How many connections there are by which the JVM calls us, when those that were closed have been noticed."""
    server = spark.sparkContext._gateway._callback_server
    deadline = time.monotonic() + 10
    while len(server.connections) > most and time.monotonic() < deadline:
        time.sleep(0.01)
    return len(server.connections)


class Reader:
    """Counts how often it is let go of. Whatever else is asked of it fails."""

    logged = held = positions = live = None

    def __init__(self) -> None:
        self.closed = self.given_up = 0

    def give_up(self) -> None:
        self.given_up += 1

    def close(self) -> None:
        self.closed += 1


def no_spark(given_up: Any) -> Any:
    raise SqlError("58000", "Spark could not be started")


def test_a_pipeline_that_ends_lets_go_of_its_source() -> None:
    reader = Reader()
    services = PipelineServices(
        writer=cast(Any, None),
        gate=cast(Any, None),
        session=cast(Any, None),
        work_directory=Path(),
        records_per_trigger=100,
        committed=lambda query_ids: None,
    )
    Pipeline("p", cast(Any, reader), services).stop()
    assert (reader.given_up, reader.closed) == (1, 1)


def test_a_query_that_writes_lets_go_of_its_source() -> None:
    reader = Reader()
    query = Query("q0", "insert_into", "", ("postgres", "public"), ("s",), "t", "postgres", 0.0, "{}")
    services = PipelineServices(
        session=no_spark,
        gate=cast(Any, None),
        writer=cast(Any, None),
        work_directory=Path(),
        records_per_trigger=100,
        committed=lambda query_ids: None,
    )
    nothing = cast(Any, None)
    form, made = RecordForm(nothing, nothing), target("SELECT i FROM events")
    rows = Rows(made, cast(Any, made.plan), form)
    running = SinkQuery(query, made.plan, cast(Any, reader), form, rows, nothing, services)
    running.start()
    assert reader.closed == 0
    running.stop()
    assert reader.closed == 1


def test_a_bounded_read_lets_go_of_its_source(tmp_path: Path) -> None:
    class Adopting(Reader):
        def adopt(self, position: Any, *, fresh: bool) -> Any:
            raise SqlError("55000", "the source is gone")

    reader = Adopting()
    reads = BoundedReads(cast(Any, no_spark), cast(Any, None), tmp_path, Unguarded())
    plan = cast(Any, target("SELECT i FROM events").plan)
    with pytest.raises(SqlError, match="the source is gone"):
        reads.read(plan, ("{}", "{}"), lambda work: cast(Any, reader), None, lambda: False)
    assert reader.closed == 1
