"""What ends a query in the transaction of a batch: an expression over closed windows that fails when a watermark shows
them, and it alone; a disk that is full ends none, and a query that is taken away is in no batch any more."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.batch.evaluate import Evaluated
from mvserver.streaming.pipeline import source_watch, stall
from mvserver.streaming.pipeline.evaluated_batch import EvaluatedBatch, Share
from mvserver.streaming.pipeline.idleness import Idleness
from mvserver.streaming.pipeline.source_watch import SourceWatch, explained
from mvserver.streaming.push.push_states import pushed
from mvserver.streaming.spark.errors import unwritten
from spark_sinks.base import SourceHealth
from tests.streaming.test_windows import tumble
from tests.streaming.windows import Event, WindowedView, World, target

S = 1000
GOOD = WindowedView("TUMBLE(events, SIZE 10 SECONDS)", tumble(10 * S), final=True)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A push query whose division fails where a window's values come to 0, and a view beside it."""
    idle = GOOD.sql.replace("'watermark", "'source.idle.timeout.millis' = 5000, 'watermark")
    failing = idle.replace("sum(v) AS s", "10 / sum(v) AS s")
    assert failing != idle != GOOD.sql
    world = World(None, tmp_path, [pushed(target(failing, 0)), target(idle, 1)], 2)
    yield world
    world.close()


def feed(world: World, *events: Event) -> None:
    world.feed_evaluated(events, [GOOD, GOOD])


def outbox(world: World) -> list[int]:
    with world.database.cursor() as cursor:
        return [
            row[0]
            for row in cursor.execute(f'SELECT c5 FROM "_state"."{world.targets[0].state.table}_outbox"').fetchall()
        ]


def test_when_a_batch_closes_the_window(world: World) -> None:
    feed(world, Event(0, 0, "a", 5, 1 * S), Event(1, 0, "a", 5, 2 * S), Event(0, 1, "b", 0, 12 * S))
    feed(world, Event(0, 2, "b", 0, 30 * S), Event(1, 1, "b", 0, 11 * S))
    assert outbox(world) == [1]
    world.failing = frozenset({"q0"})
    feed(world, Event(1, 2, "a", 1, 21 * S))  # shows the window of b
    assert world.running.subscribers["q0"].failure == "22012: division by zero"
    assert world.running.error is None
    feed(world, Event(1, 3, "a", 1, 40 * S))
    assert [row[:4] for row in world.rows(1)] == [
        (0, 10 * S, "a", 2),
        (10 * S, 20 * S, "b", 2),
        (20 * S, 30 * S, "a", 1),
    ]
    assert outbox(world) == [1]


def test_when_a_partition_becomes_idle(world: World) -> None:
    now = [0.0]
    for subscriber in world.running.all():
        subscriber.idleness = Idleness(5.0, lambda: now[0])
    feed(world, Event(0, 0, "a", 0, 1 * S), Event(0, 1, "a", 0, 30 * S))
    world.running.latest, now[0] = {"0": 2, "1": 0}, 6.0
    assert world.idle() == ["q1"]
    assert world.running.subscribers["q0"].failure == "22012: division by zero"
    assert [row[:4] for row in world.rows(1)] == [(0, 10 * S, "a", 1)]
    assert (world.idle(), outbox(world)) == ([], [])


def test_whoever_cannot_begin_a_transaction_any_more_tells_of_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Invalidated:
        def execute(self, statement: str) -> None:
            raise duckdb.FatalException(
                "FATAL Error: Failed: database has been invalidated because of a previous fatal error. The database "
                'must be restarted prior to being used again.\nOriginal error: "Failed to create checkpoint"'
            )

    with monkeypatch.context() as patched:
        patched.setattr(world.writer, "_cursor", Invalidated())
        with pytest.raises(SqlError) as raised, world.writer.transaction():
            pass
    assert raised.value.sqlstate == "58030"
    assert world.writer.damage.reason is not None


def test_a_disk_that_cannot_be_written_ends_no_query(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    merge, full = world.writer._merge_view, [True]

    def merge_view(view: Any) -> None:
        if full[0]:
            raise duckdb.IOException("IO Error: Could not write file: No space left on device")
        merge(view)

    monkeypatch.setattr(world.writer, "_merge_view", merge_view)
    events = (Event(0, 0, "a", 5, 1 * S), Event(1, 0, "a", 5, 2 * S))
    with pytest.raises(SqlError, match="58030"):
        feed(world, *events)
    assert [each.failure for each in world.running.all()] == [None, None]
    full[0] = False
    feed(world, *events)
    feed(world, Event(0, 1, "a", 5, 30 * S), Event(1, 1, "a", 5, 31 * S))
    assert [row[:4] for row in world.rows(1)] == [(0, 10 * S, "a", 2)]


def test_a_reader_that_takes_all_memory_ends_no_query(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is tried again. A view that never gets through is too large itself, and fails alone."""
    merge, failing = world.writer._merge_view, [limits.MERGES_OUT_OF_MEMORY_MAX - 1]

    def merge_view(view: Any) -> None:
        if failing[0] and view.query_id == "q0":
            failing[0] -= 1
            raise duckdb.OutOfMemoryException("Out of Memory Error: Failed to allocate block of 16777216 bytes")
        merge(view)

    monkeypatch.setattr(world.writer, "_merge_view", merge_view)
    events = (Event(0, 0, "a", 5, 1 * S), Event(1, 0, "a", 5, 2 * S))
    while failing[0]:
        with pytest.raises(SqlError, match="53200"):
            feed(world, *events)
    feed(world, *events)
    assert [each.failure for each in world.running.all()] == [None, None]
    failing[0] = limits.MERGES_OUT_OF_MEMORY_MAX
    more = (Event(0, 1, "a", 5, 30 * S), Event(1, 1, "a", 5, 31 * S))
    while failing[0] > 1:
        with pytest.raises(SqlError, match="53200"):
            feed(world, *more)
    world.failing = frozenset({"q0"})
    feed(world, *more)
    assert (world.running.subscribers["q0"].failure or "").startswith("53200")
    assert [row[:4] for row in world.rows(1)] == [(0, 10 * S, "a", 2)]


def test_a_query_that_is_made_anew_meanwhile_stands_where_it_was_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As REFRESH does it: between the choice of those who take part and their transaction nobody comes in."""
    choose = world.committer._commit_of
    anew = {"0": 0, "1": 0}

    def make_anew() -> None:
        world.running.subscribers.pop("q1")
        with world.writer.transaction() as ledger:
            ledger.add_subscriber("q1", 2, "p", anew)

    other = threading.Thread(target=make_anew)

    def chosen(work: Any) -> Any:
        found = choose(work)
        other.start()
        other.join(0.5)
        return found

    monkeypatch.setattr(world.committer, "_commit_of", chosen)
    feed(world, Event(0, 0, "a", 5, 1 * S), Event(1, 0, "a", 5, 2 * S))
    other.join()
    rows = {row.query_id: (row.version, row.position) for row in world.writer.ledger_subscribers()}
    assert rows == {"q0": (1, {"0": 1, "1": 1}), "q1": (2, anew)}


def test_the_failure_of_a_query_that_was_taken_away_is_not_its_successors(world: World) -> None:
    old = world.running.subscribers.pop("q1")
    world.running.subscribers["q1"] = dataclasses.replace(old, version=2)
    for number, query_id in enumerate(("q1", "q0")):
        failed = (old, world.running.subscribers["q0"])[number]
        world.running.fail(failed, SqlError("22012", f"division by zero in {query_id}"))
    assert {row.query_id: row.failure for row in world.writer.ledger_subscribers()} == {
        "q0": "22012: division by zero in q0",
        "q1": None,
    }


def test_a_round_from_a_topic_that_was_made_anew_counts_for_nothing(world: World) -> None:
    """It was asked for before the round was read, and a connector reads on in the new topic without a word."""

    def confirm(position: Any) -> None:
        raise SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, 'topic "t" was deleted and created again')

    world.reader.confirm = confirm
    (first, _), end = world.running.all(), {"0": 5, "1": 5}
    part = Evaluated((), (), {}, 0, None), [Share(first, first.position, end, 5)]
    with pytest.raises(SqlError, match="created again"):
        world.committer._commit(EvaluatedBatch(None, [part]))
    assert first.position == {"0": 0, "1": 0}
    assert {row.query_id: row.position for row in world.writer.ledger_subscribers()}["q0"] == {"0": 0, "1": 0}


def test_what_ended_a_generation_is_told_until_something_moves(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt at a commit on a full disk is a generation that runs for a moment, over a source that is well."""
    now, state, answer = [0.0], world.running, SourceHealth("ok", latest={"0": 2, "1": 0})
    monkeypatch.setattr(stall, "time", SimpleNamespace(monotonic=lambda: now[0]))
    world.reader.health = SimpleNamespace(look=lambda position: answer)
    counted = SimpleNamespace(distance=lambda start, end: sum(end.values()) - sum(start.values()))
    monkeypatch.setattr(state, "_reader", SimpleNamespace(positions=counted))
    watch = SourceWatch(state, world.reader, interval_s=1.0, stopping=threading.Event())

    def told(known: dict[str, int], seconds: float = 0.0) -> str | None:
        now[0] += seconds
        watch._look(1, known)
        return state.stalled

    state.running = True
    state.met("no space left")
    assert told({"0": 0, "1": 0}) == told({"0": 1, "1": 0}, 1.0) == "no space left"
    assert told({"0": 2, "1": 0}) is None, "it has all that there is"
    state.met("no space left")
    assert told({"0": 1, "1": 0}, stall.LASTED_S) is None, "it has gone on for long"
    state.running = False
    state.running = True
    state.met("no space left")
    assert told({"0": 1, "1": 0}) == "no space left"
    answer = SourceHealth("stalled", "no answer")
    assert told({"0": 1, "1": 0}) == "no answer"
    answer = SourceHealth("ok", latest={"0": 2, "1": 0})
    assert told({"0": 1, "1": 0}) is None, "the source itself was silent, and speaks again"


def test_a_disk_that_spark_cannot_write_to_is_no_failure_of_the_source() -> None:
    text = "[STREAM_FAILED] Query [id = 1] terminated with exception: java.io.IOException: No space left on device"
    reader: Any = SimpleNamespace(health=SimpleNamespace(explain_failure=lambda error, position: error))
    full, other = Exception(text), Exception("java.io.IOException: no such file")
    found = explained(reader, full, {})
    assert isinstance(found, SqlError)
    assert (found.sqlstate, found.message, found.detail) == (
        "53100", "the files of Spark cannot be written", "No space left on device.",
    )  # fmt: skip
    read_only = explained(reader, Exception("java.io.FileNotFoundException: /d/x (Read-only file system)"), {})
    assert isinstance(read_only, SqlError)
    assert read_only.sqlstate == "58030"
    assert explained(reader, other, {}) is other
    own = SqlError("53100", "a file of the store", detail="No space left on device.")
    assert explained(reader, own, {}) is own


_TASK = "Job aborted due to stage failure: Task 0 failed 1 times, most recent failure: Lost task 0.0 (TID 3)"


@pytest.mark.parametrize(
    "text",
    [
        "An error occurred while calling o83.toArrow.\n: java.io.IOException: No space left on device\n\tat x",
        f"{_TASK} (10.0.0.5 executor driver): java.io.FileNotFoundException: /d/b (No space left on device)",
        f"{_TASK} (h executor 1): java.nio.file.FileSystemException: /d/Error/x: Disk quota exceeded\n\tat y",
        "Query terminated with exception: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device",
        "[CANNOT_WRITE_STATE_STORE] Error writing\n\tat z\nCaused by: java.io.IOException: No space left on device",
    ],
)
def test_a_full_disk_under_the_files_of_spark_is_told_as_that(text: str) -> None:
    found = unwritten(Exception(text))
    assert found is not None
    assert (found.sqlstate, found.message) == ("53100", "the files of Spark cannot be written")


@pytest.mark.parametrize(
    "text",
    [
        'java.sql.BatchUpdateException: ERROR: could not extend file "base/5/16384": No space left on device',
        f"{_TASK} (h executor driver): org.postgresql.util.PSQLException: ERROR: could not write: "
        "No space left on device",
        "org.apache.hadoop.ipc.RemoteException: java.io.IOException: No space left on device (datanode)",
        "java.io.IOException: org.apache.hadoop.ipc.RemoteException(java.io.IOException): No space left on device",
        "Caused by: org.apache.hadoop.ipc.RemoteException(java.io.IOException): failed\n"
        "java.io.IOException: No space left on device",
        "java.io.IOException: com.store.StoreException: No space left on device",
        'duckdb.IOException: IO Error: Could not write file "/d/views.duckdb.wal": No space left on device',
        "java.io.IOException: No such file",
    ],
)
def test_a_full_disk_of_another_is_told_by_who_knows_it(text: str) -> None:
    error, told = Exception(text), Exception("the source's own words")
    reader: Any = SimpleNamespace(health=SimpleNamespace(explain_failure=lambda error, position: told))
    assert unwritten(error) is None
    assert explained(reader, error, {}) is told


def test_a_source_that_does_not_answer_has_no_idle_partitions(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records may wait where it cannot be reached: they would be late for windows that are closed meanwhile."""
    now, end = [0.0], {"0": 2, "1": 0}
    monkeypatch.setattr(source_watch, "time", SimpleNamespace(time=lambda: now[0], monotonic=lambda: now[0]))
    answer = SourceHealth("ok", latest=end)
    world.reader.health = SimpleNamespace(look=lambda position: answer)
    watch = SourceWatch(world.running, world.reader, interval_s=1.0, stopping=threading.Event())
    for subscriber in world.running.all():
        subscriber.idleness = Idleness(5.0, lambda: now[0])
    watch._look(1, {})
    feed(world, Event(0, 0, "a", 5, 1 * S), Event(0, 1, "a", 5, 30 * S))
    now[0], answer = 6.0, SourceHealth("stalled", "the leader of partition 1 does not answer")
    watch._look(2, {})
    assert world.idle() == []
    answer = SourceHealth("ok")  # it has not been read so far in time
    watch._look(3, {})
    assert (world.idle(), outbox(world)) == ([], [])
    answer = SourceHealth("ok", latest=end)
    watch._look(4, {})
    assert world.idle() == ["q0", "q1"]
    assert [row[:4] for row in world.rows(1)] == [(0, 10 * S, "a", 1)]
