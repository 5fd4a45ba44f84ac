"""Push queries on a real pipeline beside a view: every row once, however slow their client is, and no trace of them."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mvserver import limits
from mvserver.compiler.plans import ErrorHandling
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.push.push import PushSubscriber
from mvserver.streaming.spark.session import SparkGate
from mvserver.views.finishing import layout_of
from mvserver.views.targets import Target
from spark_sinks.duckdb.state.state import AppendState
from spark_sinks.file.entity_files import DirectoryFiles
from spark_sinks.file.source import FileReader
from tests.streaming.states import target, writer_in

pytestmark = pytest.mark.spark
WITHIN_S = 240.0


class Source:
    """A directory, the pipeline over it, and a view that counts its records by key."""

    def __init__(self, folder: Path, spark: Any, writer: Any, database: Any) -> None:
        self.directory = folder / "events"
        self.directory.mkdir()
        self.writer, self.database = writer, database
        self.fed = 0
        self.reader = FileReader(DirectoryFiles(self.directory), folder / "work", None, poll_s=0.01)
        self.pipeline = Pipeline(
            "p1",
            self.reader,
            PipelineServices(
                writer=writer,
                gate=SparkGate(),
                session=lambda given_up: spark,
                work_directory=folder / "pipelines",
                records_per_trigger=100_000,
                committed=lambda ids: None,
            ),
        )
        self._number = 0

    def feed(self, count: int) -> None:
        """One file of so many records, numbered on."""
        lines = [json.dumps({"k": f"k{i % 3}", "i": i}) for i in range(self.fed, self.fed + count)]
        self.fed += count
        aside = self.directory.parent / "aside"
        aside.write_text("".join(line + "\n" for line in lines))
        self._number += 1
        aside.rename(self.directory / f"{self._number:06}.json")

    def view(self) -> None:
        made = target("SELECT k, count(*) AS n FROM events GROUP BY k", 7)
        position = self.reader.adopt({"before": []}, fresh=True)
        with self.writer.transaction() as ledger:
            self.writer.create_state(made.state, layout_of(made))
            ledger.add_subscriber(made.query_id, 1, "p1", position)
        self.pipeline.add(Subscriber(made, 1, position, ErrorHandling.IGNORE_AND_LOG))

    def counted(self) -> int:
        with self.database.cursor() as cursor:
            (row,) = cursor.execute(
                'SELECT coalesce(sum(n), 0)::BIGINT FROM "_views"."00000000-0000-0000-0000-000000000007"'
            ).fetchall()
        return int(row[0])

    def push(self, sql: str, position: Any = None, policy: ErrorHandling = ErrorHandling.IGNORE) -> PushSubscriber:
        plan = target(sql).plan
        subscriber = PushSubscriber(
            Target(f"push-{id(plan)}", "push", plan, AppendState("", ()), delivered=True),
            1, position or {"seq": 0}, policy, filled=True,
        )  # fmt: skip
        self.pipeline.add(subscriber)
        return subscriber


@pytest.fixture
def source(tmp_path: Path, spark: Any) -> Iterator[Source]:
    with writer_in(tmp_path) as (database, writer):
        made = Source(tmp_path, spark, writer, database)
        yield made
        if made.pipeline.started:
            made.pipeline.stop()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read(push: PushSubscriber, count: int, pause: Callable[[], None] = lambda: None) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    while len(found) < count:
        assert push.rows.wait(WITHIN_S), f"{len(found)} of {count} rows"
        found += [tuple(row.values()) for row in push.rows.take().to_pylist()]
        pause()
    return found


def test_rows_are_those_of_the_batches_and_nothing_is_kept(source: Source) -> None:
    source.view()
    all_rows = source.push("SELECT i, k FROM events")
    even = source.push("SELECT i * 10 AS ten, i AS again, i AS twice FROM events WHERE i % 2 = 0")
    source.pipeline.start(None)
    for count in (5, 1, 30):
        before = source.fed
        source.feed(count)
        assert read(all_rows, count) == [(i, f"k{i % 3}") for i in range(before, before + count)]
    assert read(even, 18) == [(i * 10, i, i) for i in range(0, 36, 2)]
    until(lambda: source.counted() == 36)
    assert [row.query_id for row in source.writer.ledger_subscribers()] == ["q7"]
    source.pipeline.remove(even.query_id)
    source.feed(2)
    assert len(read(all_rows, 2)) == 2
    assert not even.rows.wait(0.0)


def test_a_slow_client_gets_every_row_once_and_holds_up_nobody(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PUSH_WAITING_BYTES_MAX", 400)
    monkeypatch.setattr(limits, "PUSH_BATCH_RECORDS_MAX", 60)
    seed = time.time_ns()
    print(f"seed {seed}")
    chance = random.Random(seed)
    source.view()
    slow = source.push("SELECT i FROM events WHERE i % 5 <> 0")
    source.pipeline.start(None)
    for _ in range(12):
        source.feed(chance.randint(1, 120))
    until(lambda: source.counted() == source.fed)  # while the client has read nothing
    until(lambda: slow.rows.full)
    feeder = threading.Thread(target=lambda: [(source.feed(chance.randint(1, 40)), time.sleep(0.05)) for _ in range(6)])
    feeder.start()
    rows = read(slow, 50, lambda: time.sleep(chance.random() / 50))
    feeder.join()
    wanted = [(i,) for i in range(source.fed) if i % 5]
    rows += read(slow, len(wanted) - len(rows))
    assert sorted(rows) == wanted
    assert not slow.rows.wait(0.3)
    until(lambda: source.counted() == source.fed)


def test_the_history_is_read_before_what_comes(source: Source) -> None:
    source.view()
    source.pipeline.start(None)
    for _ in range(4):
        source.feed(25)
    until(lambda: source.counted() == 100)
    late = source.push("SELECT i FROM events")
    source.feed(10)
    assert sorted(read(late, 110)) == [(i,) for i in range(110)]
    assert not late.rows.wait(0.3)


def test_a_failing_expression_ends_the_push_query_alone(source: Source) -> None:
    source.view()
    failing = source.push("SELECT 100 / (i - 3) AS q FROM events")
    other = source.push("SELECT i FROM events")
    source.pipeline.start(None)
    source.feed(2)
    assert read(failing, 2) == [(-33,), (-50,)]
    source.feed(3)
    with pytest.raises(SqlError, match="22012"):
        read(failing, 1)
    assert read(other, 5) == [(i,) for i in range(5)]
    until(lambda: source.counted() == 5)


def test_rejected_records_are_left_out_and_those_of_a_push_query_kept_nowhere(source: Source) -> None:
    loose = source.push("SELECT i FROM events")
    strict = source.push("SELECT i FROM events", policy=ErrorHandling.TERMINATE)
    source.pipeline.start(None)
    (source.directory.parent / "aside").write_text('{"i": 1}\nnot json\n{"i": 2}\n')
    (source.directory.parent / "aside").rename(source.directory / "bad.json")
    assert read(loose, 2) == [(1,), (2,)]
    assert loose.rejected == 1
    with pytest.raises(SqlError) as caught:
        read(strict, 1)
    assert caught.value.sqlstate == "22000"
    assert "IGNORE" in str(caught.value.hint)
    assert source.writer.rejected_rows() == []
