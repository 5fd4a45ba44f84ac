"""Where readers begin whose source keeps its history for them alone."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from catalog.model import Query
from mvserver.compiler.plans import ErrorHandling
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.evaluated_batch import Share
from mvserver.streaming.pipeline.held_history import EndedReaders
from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.queries.csas import SinkQuery
from mvserver.streaming.queries.held_histories import HeldHistories
from mvserver.streaming.queries.orphan_clean_up import OrphanCleanUp
from mvserver.streaming.queries.outgoing import Rows
from mvserver.streaming.queries.record_form import RecordForm
from mvserver.streaming.queries.renewals import Renewals
from mvserver.streaming.queries.running import RunningQuery
from spark_sinks.base import Position, SourceHealth
from spark_sinks.duckdb.ledger.ledger import HistoryRow
from spark_sinks.duckdb.ledger.sink_position import SinkPosition
from spark_sinks.duckdb.writer import Writer
from tests.streaming.states import target, writer_in

WITHIN_S = 30.0


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    with writer_in(tmp_path) as (_, made):
        yield made


def wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


WITHIN_S = 30.0


def subscriber(name: str) -> Subscriber:
    target: Any = SimpleNamespace(query_id=name)
    return Subscriber(target, 1, {"start": "earliest"}, ErrorHandling.TERMINATE)


class Source:
    """Settles at ascending places; ``meanwhile`` happens while it does."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], None] = lambda: None
        self.settled = 0
        self.checked: list[Any] = []
        self.held = self
        self.health = SimpleNamespace(check_history=self.checked.append)

    def is_settled(self, position: Any) -> bool:
        return "lsn" in position

    def settle(self, position: Any, assign: Callable[[Any], None]) -> None:
        self.settled += 1
        self.meanwhile()
        assign({"lsn": self.settled})


def test_views_that_wait_begin_together_and_one_that_comes_meanwhile_after_them() -> None:
    source: Any = Source()
    state = RunningState(source, SimpleNamespace(), records_max=10)  # type: ignore[arg-type]
    first, second, late = subscriber("a"), subscriber("b"), subscriber("c")
    state.add(first)
    state.add(second)
    source.meanwhile = lambda: state.add(late)
    state.verify_new()
    assert (first.position, second.position, first.unverified) == ({"lsn": 1}, {"lsn": 1}, False)
    assert (late.position, late.unverified) == ({"start": "earliest"}, True)
    assert not state.joins(late, {"lsn": 1})
    source.meanwhile = lambda: None
    state.verify_new()
    assert (late.position, late.claimed, late.unverified) == ({"lsn": 2}, {"lsn": 2}, False)
    assert source.checked == [{"lsn": 1}, {"lsn": 1}, {"lsn": 2}]


# --- a query that writes ----------------------------------------------------------------------------------------------
class Changing(Source):
    """Its end moves on by itself; a query may begin there."""

    def __init__(self) -> None:
        super().__init__()
        self.end = 10
        self.needed: list[Sequence[Position]] = []

    def adopt(self, position: Any, *, fresh: bool) -> Any:
        self.end += 10
        return {"lsn": self.end} if position["start"] == "latest" else position

    def release(self, positions: Callable[[], Sequence[Position]]) -> None:
        self.needed.append(positions())


def writing(source: Changing, writer: Writer, start: str) -> SinkQuery:
    query = Query("q0", "csas", "", ("postgres", "public"), ("s",), "t", "postgres", 0.0, json.dumps({"start": start}))
    kept, form = SinkPosition(writer, query.id), RecordForm(cast(Any, None), cast(Any, None))
    services = cast(Any, SimpleNamespace(records_per_trigger=100))
    made = target("SELECT i FROM events")
    rows = Rows(made, cast(Any, made.plan), form)
    return SinkQuery(query, made.plan, cast(Any, source), form, rows, kept, services)


def test_a_query_that_begins_with_the_latest_begins_once(writer: Writer) -> None:
    """What has come since its statement is its own, whenever and how often it has to begin before it writes."""
    source = Changing()
    running = writing(source, writer, "latest")
    running.begin()
    source.end = 100
    assert running._start(None) == {"lsn": 20}
    again = writing(source, writer, "latest")  # after a kill
    again.begin()
    assert again._start(None) == {"lsn": 20}
    assert again._start({"lsn": 50}) == {"lsn": 50}  # where it has written


def test_a_query_that_begins_with_all_is_settled_once_and_needs_its_place_at_once(writer: Writer) -> None:
    source = Changing()
    running = writing(source, writer, "earliest")
    running.begin()
    source.meanwhile = running._release
    assert running._start(None) == {"lsn": 1}
    running._release()
    assert source.needed == [[], [{"lsn": 1}]]
    assert writing(source, writer, "earliest")._start(None) == {"lsn": 1}
    assert source.settled == 1


def test_what_a_query_needs_is_asked_while_it_is_settled_anew(writer: Writer) -> None:
    """Whoever releases a source has looked at the query before the source assigned it another place."""
    source = Changing()
    running = writing(source, writer, "earliest")
    running._position = {"lsn": 0}
    asked, assigned = threading.Event(), threading.Event()

    def release(positions: Callable[[], Sequence[Position]]) -> None:
        asked.set()
        assert assigned.wait(WITHIN_S)
        source.needed.append(positions())

    source.release = release  # type: ignore[method-assign]
    thread = threading.Thread(target=running._release)
    thread.start()
    assert asked.wait(WITHIN_S)
    running._start(None)
    assigned.set()
    thread.join()
    assert source.needed == [[{"lsn": 1}]]


def test_a_query_that_has_written_on_meanwhile_lacks_nothing(writer: Writer) -> None:
    """What it had read went out of its source while that was asked for it."""
    source = Changing()
    running = writing(source, writer, "earliest")
    running._position, found = {"lsn": 1}, SourceHealth("failed", "changes from 1 on are gone", {"lsn": 9})

    def look(position: Position) -> SourceHealth:
        running._position = {"lsn": 5}
        return found

    source.health.look = look
    running._look({"lsn": 1})
    assert running.failure is None
    running._look({"lsn": 5})
    assert running.failure == "changes from 1 on are gone"


def test_a_source_that_cannot_be_told_what_is_durable_is_told_later(writer: Writer) -> None:
    source = Changing()
    running = writing(source, writer, "earliest")
    running._services = cast(Any, SimpleNamespace(health_interval_s=0.01, writer=writer))
    running._position = {"lsn": 1}
    source.health.look = lambda position: SourceHealth("ok", latest={"lsn": 9})
    told, stalled = threading.Semaphore(0), []

    def release(positions: Callable[[], Sequence[Position]]) -> None:
        stalled.append(running._stall.cause)
        told.release()
        if len(stalled) == 1:
            raise OSError(5, "Input/output error")

    source.release = release  # type: ignore[method-assign]
    thread = threading.Thread(target=running._watch)
    thread.start()
    try:
        assert told.acquire(timeout=WITHIN_S)
        assert told.acquire(timeout=WITHIN_S)
    finally:
        running._stopping.set()
        thread.join(WITHIN_S)
    assert "Input/output error" in (stalled[1] or "")


# --- a view that joins a batch ----------------------------------------------------------------------------------------
def test_a_view_that_lacks_what_cannot_be_read_fails_alone() -> None:
    class Barred:
        held = logged = health = None
        positions: Any = None

        def batch(self, session: Any, start: Any, end: Any) -> Any:
            raise SqlError(self.sqlstate, "the table was truncated")

        sqlstate = "55000"

    reader = Barred()
    recorded: list[Any] = []
    ledger = SimpleNamespace(set_failure=lambda *row: recorded.append(row))
    services = PipelineServices(
        writer=cast(Any, SimpleNamespace(transaction=lambda: _Entered(ledger))),
        gate=cast(Any, None),
        session=cast(Any, None),
        work_directory=Path(),
        records_per_trigger=100,
        committed=lambda query_ids: None,
    )
    pipeline = Pipeline("p", cast(Any, reader), services)
    behind = subscriber("behind")
    behind.position, behind.claimed = {"lsn": 1}, {"lsn": 9}
    pipeline._state.subscribers["behind"] = behind
    share = Share(behind, {"lsn": 1}, {"lsn": 9}, 8)
    assert pipeline._frame_of(cast(Any, None), share) is None
    assert "the table was truncated" in (behind.failure or "")
    assert behind.claimed == {"lsn": 1}
    assert [row[0] for row in recorded] == ["behind"]
    reader.sqlstate = "08006"  # which is tried again, for all
    with pytest.raises(SqlError):
        pipeline._frame_of(cast(Any, None), share)


class _Entered:
    def __init__(self, value: Any) -> None:
        self._value = value

    def __enter__(self) -> Any:
        return self._value

    def __exit__(self, *error: object) -> None:
        """Nothing to end."""


# --- what is left behind ----------------------------------------------------------------------------------------------
class Store:
    """Of which some do not answer."""

    def __init__(self, writer: Writer, work: Path) -> None:
        self.writer, self.work_directory = writer, work
        self.forgotten: list[str] = []
        self.silent: set[str] = set()
        self.known = {"s": SimpleNamespace(id="s", name="pg")}
        self.waits = threading.Event()
        self.waits.set()
        self.catalog = SimpleNamespace(stores=SimpleNamespace(by_id=self.known.get))
        self.stores = self

    def held_reader(self, store: Any, entity: str, work: Path) -> Any:
        def forget() -> None:
            assert self.waits.wait(WITHIN_S)
            if work.name in self.silent:
                raise SqlError("08006", "no answer")
            self.forgotten.append(f"{entity}/{work.name}")

        return SimpleNamespace(held=SimpleNamespace(forget=forget))

    def reader(self) -> Any:
        return SimpleNamespace(held=self)

    def histories(self) -> list[str]:
        return sorted(row.reader_id for row in self.writer.ledger_histories())


def test_what_nobody_reads_is_let_go_and_tried_again(writer: Writer, tmp_path: Path) -> None:
    store = Store(writer, tmp_path)
    histories = HeldHistories(cast(Any, store), retry_s=0.01)
    for reader_id in ("a", "b", "c"):
        histories.hold(reader_id, cast(Any, store.known["s"]), "t", store.reader())
        (tmp_path / reader_id).mkdir()
    assert store.histories() == ["a", "b", "c"]
    store.silent.add("a")
    left = [row for row in writer.ledger_histories() if row.reader_id != "c"]
    histories.let_go(left)
    wait_until(lambda: store.histories() == ["a", "c"])
    assert store.forgotten == ["t/b"]
    store.silent.clear()
    wait_until(lambda: store.histories() == ["c"])
    wait_until(lambda: sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["c"])
    histories.stop()


def test_who_begins_again_keeps_what_was_left_and_waits_for_what_is_going(writer: Writer, tmp_path: Path) -> None:
    store = Store(writer, tmp_path)
    histories = HeldHistories(cast(Any, store), retry_s=0.01)
    pg: Any = store.known["s"]
    for reader_id in ("a", "b"):
        histories.hold(reader_id, pg, "t", store.reader())
    store.waits.clear()
    histories.let_go(writer.ledger_histories())
    wait_until(lambda: bool(histories._ending))
    going = next(iter(histories._ending))
    other = "b" if going == "a" else "a"
    histories.hold(other, pg, "t", store.reader())  # nothing has happened to it, and nothing will
    again = threading.Thread(target=histories.hold, args=(going, pg, "t", store.reader()))
    again.start()
    store.waits.set()
    again.join(WITHIN_S)
    assert store.forgotten == [f"t/{going}"]
    assert store.histories() == ["a", "b"]
    histories.stop()


def test_what_was_left_in_a_store_that_is_gone_is_not_noted_for_ever(writer: Writer, tmp_path: Path) -> None:
    store = Store(writer, tmp_path)
    histories = HeldHistories(cast(Any, store))
    with writer.transaction() as ledger:
        ledger.hold_history(HistoryRow("a", "gone", "t"))
    histories.let_go(writer.ledger_histories())
    wait_until(lambda: store.histories() == [])
    assert store.forgotten == []
    histories.stop()


# --- readers that have ended ------------------------------------------------------------------------------------------
class Keeps:
    """A source that answers when it is let."""

    def __init__(self) -> None:
        self.held = self
        self.answers = threading.Event()
        self.forgotten = False

    def forget(self) -> None:
        assert self.answers.wait(WITHIN_S)
        self.forgotten = True


def ending(ended: EndedReaders, reading_id: str, reader: object, folder: Path) -> None:
    ended.end(reading_id, lambda: ended.forget(reading_id, cast(Any, reader), folder))


def test_a_source_that_does_not_answer_holds_up_nobody(writer: Writer, tmp_path: Path) -> None:
    ended, silent, other = EndedReaders(writer, unexpected), Keeps(), Keeps()
    other.answers.set()
    (tmp_path / "silent").mkdir()
    ending(ended, "silent", silent, tmp_path / "silent")
    began = time.monotonic()
    ended.wait_own(0.1)
    assert ended.is_ending("silent")

    def end_other() -> None:
        ending(ended, "other", other, tmp_path / "other")
        ended.wait_own(WITHIN_S)

    thread = threading.Thread(target=end_other)
    thread.start()
    thread.join(WITHIN_S)
    assert other.forgotten
    assert time.monotonic() - began < WITHIN_S
    silent.answers.set()
    ended.wait_ended("silent")
    assert silent.forgotten
    assert not (tmp_path / "silent").exists()
    assert not ended.is_ending("silent")


def test_the_files_of_a_reader_go_behind_what_its_source_keeps(writer: Writer, tmp_path: Path) -> None:
    ended, source = EndedReaders(writer, unexpected), Keeps()
    (tmp_path / "work").mkdir()
    ending(ended, "reader", source, tmp_path / "work")
    assert (tmp_path / "work").exists()
    source.answers.set()
    ended.wait_all(WITHIN_S)
    assert not (tmp_path / "work").exists()
    (tmp_path / "work").mkdir()
    ending(ended, "plain", SimpleNamespace(held=None), tmp_path / "work")
    ended.wait_ended("plain")
    assert not ended.is_ending("plain")
    assert not (tmp_path / "work").exists()


def test_a_source_that_has_not_let_go_is_left_to_others(writer: Writer, tmp_path: Path) -> None:
    class Refuses(Keeps):
        def forget(self) -> None:
            raise SqlError("08006", "no answer")

    store = Store(writer, tmp_path)
    histories = HeldHistories(cast(Any, store), retry_s=0.01)
    ended = EndedReaders(writer, histories.left)
    for reader_id in ("a", "b"):
        histories.hold(reader_id, cast(Any, store.known["s"]), "t", store.reader())
    gone = Keeps()
    gone.answers.set()
    ending(ended, "a", Refuses(), tmp_path / "a")
    ending(ended, "b", gone, tmp_path / "b")
    ended.wait_all(WITHIN_S)
    wait_until(lambda: store.histories() == [])
    assert store.forgotten == ["t/a"]
    histories.stop()


def test_a_renewal_waits_again_where_others_have_read_and_ended_the_same_meanwhile(writer: Writer) -> None:
    ended, first, second, renewed = EndedReaders(writer, unexpected), *(threading.Event() for _ in range(3))
    tries: list[bool] = []

    def take_up(known: RunningQuery) -> bool:
        if not tries:  # a statement had its turn before: it has read by the same pipeline, and ended that
            ended.end("p", lambda: wait_until(second.is_set))
        tries.append(renewals.is_over(known))
        if tries[-1]:
            renewed.set()
        return tries[-1]

    none = cast(Any, None)
    renewals = Renewals(none, none, ended, take_up)
    ended.end("p", lambda: wait_until(first.is_set))
    renewals.begin([RunningQuery(cast(Any, SimpleNamespace(id="q")))])
    first.set()
    wait_until(lambda: tries == [False])
    second.set()
    assert renewed.wait(WITHIN_S)
    assert tries == [False, True]


@dataclass
class Output:
    """What writes to a store that does not answer until it is let."""

    answers: threading.Event = field(default_factory=threading.Event)
    given_up: bool = False
    reader: Any = field(default_factory=lambda: SimpleNamespace(held=None))

    def give_up(self) -> None:
        self.given_up = True

    def stop(self) -> None:
        assert self.given_up
        assert self.answers.wait(WITHIN_S)


@pytest.mark.parametrize("kind", ["sink", "relay"])
def test_a_query_is_dropped_whose_store_does_not_answer(writer: Writer, tmp_path: Path, kind: str) -> None:
    """It is gone at once, and what it has left when its store has answered."""
    output, ended, forgotten = Output(), EndedReaders(writer, unexpected), threading.Event()
    services = SimpleNamespace(
        writer=writer,
        work_directory=tmp_path,
        catalog=SimpleNamespace(queries=SimpleNamespace(of_source=lambda relation_id: [])),
    )
    SinkPosition(writer, "q").write({"seq": 1})
    (tmp_path / "q").mkdir()
    query = cast(Any, SimpleNamespace(id="q", source_ids=("r",)))
    known = RunningQuery(query, forget_output=forgotten.set, **{kind: cast(Any, output)})
    OrphanCleanUp(cast(Any, services), cast(Any, None), cast(Any, None), ended).drop(known)
    assert output.given_up
    assert ended.is_ending("q")
    assert not forgotten.is_set()
    output.answers.set()
    ended.wait_ended("q")
    assert forgotten.wait(WITHIN_S)
    assert writer.ledger_sinks() == []
    assert (tmp_path / "q").exists() == (kind == "relay")  # which has no files of its own


def unexpected(reader_id: str) -> None:
    raise AssertionError(reader_id)
