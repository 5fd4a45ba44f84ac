"""The history of a view: what each commit did to its rows, kept within bounds, and read on from a token.

The oracle is the view itself: whoever has its rows at one moment, and applies what the history says, has its rows at
any later one.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catalog.model import Query
from mvserver import limits
from mvserver.compiler.compile import compile_select
from mvserver.errors import SqlError
from mvserver.resume_tokens import Written
from mvserver.serving.engine.database import Database
from mvserver.sql.dialect import parse_select
from mvserver.streaming.watching.history_reader import HistoryReader
from mvserver.streaming.watching.watched_views import WatchedViews
from mvserver.views.feeds import nodes
from mvserver.views.finishing import layout_of
from mvserver.views.targets import build_target
from spark_sinks.duckdb.batch_plans import Advance, BatchCommit, TableMerge, ViewMerge
from spark_sinks.duckdb.history.history import Bounds
from spark_sinks.duckdb.history.log import as_of_name
from spark_sinks.duckdb.joins.join_sides import Batch
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.record_columns import PARTITION
from spark_sinks.duckdb.state.state import AppendState
from spark_sinks.duckdb.state.windows import Standing
from spark_sinks.duckdb.writer import MergeError
from tests.streaming import changelog_states
from tests.streaming.states import RELATION, Fed, target, writer_in
from tests.streaming.test_group_logs import ALONG, VIEW_ID, fed_along, random_rows
from tests.streaming.test_window_outboxes import QUERIES
from tests.streaming.windows import World, random_batches, random_events
from tests.streaming.windows import target as windowed

VIEWS = (
    "SELECT k, count(*) AS n, sum(i) AS s, avg(l) AS a FROM events GROUP BY k",
    "SELECT k, i, max(n) AS m FROM events GROUP BY k, i HAVING count(*) > 1",
    "SELECT count(*) AS n, min(t) AS first FROM events",
    "SELECT k, count(DISTINCT i) AS d FROM events GROUP BY k",
)


class Watched:
    """Views that are fed, and who may watch them."""

    def __init__(self, folder: Path, *texts: str, retention_s: float = 3600.0) -> None:
        self._context = writer_in(folder)
        self.database, self.writer = self._context.__enter__()
        self.targets = [target(text, number) for number, text in enumerate(texts)]
        self.fed = Fed(self.database, self.writer, *self.targets)
        by_view = {each.view_id: each for each in self.targets}
        self.views = WatchedViews(self.writer, retention_s, by_view.get, lambda view_id: "v")

    def watch(self, number: int = 0, *, since: str | None = None, snapshot: bool = False) -> HistoryReader:
        return self.views.open(self.targets[number].view_id, since=since, snapshot=snapshot)

    def close(self) -> None:
        self._context.__exit__(None, None, None)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path, *VIEWS)
    yield made
    made.close()


class Copy:
    """A client's copy of a view: rows with their number, and the token behind what it has."""

    def __init__(self) -> None:
        self.rows: Counter[tuple[Any, ...]] = Counter()
        self.token: str | None = None
        self.moments: dict[str, Counter[tuple[Any, ...]]] = {}

    def take_snapshot(self, watch: HistoryReader) -> None:
        for batch in watch.snapshot():
            self.rows.update(_tuples(batch.to_pylist()))
        self.token = watch.token

    def take(self, watch: HistoryReader) -> None:
        """All that is there."""
        while watch.wait(0.0):
            for epoch in watch.take():
                for index, row in enumerate(epoch.rows.to_pylist()):
                    self.apply(row.pop("mv_op"), next(iter(_tuples([row]))))
                    self.token = epoch.token(index)

    def apply(self, kind: str, row: tuple[Any, ...]) -> None:
        if kind in ("+I", "+U"):
            self.rows[row] += 1
            return
        assert self.rows[row] > 0, f"{kind} {row} is not there"
        self.rows[row] -= 1
        self.rows += Counter()

    def equals(self, rows: Iterable[tuple[Any, ...]]) -> None:
        assert self.rows == Counter(rows)
        if self.token is not None:
            self.moments[self.token] = Counter(rows)

    def has_its_past(self, database: Database, view_id: str) -> None:
        """The view as of each moment at which the copy was compared with it."""
        assert self.moments
        with database.cursor() as cursor:
            for token, rows in self.moments.items():
                place = Written.read(token)
                found = cursor.execute(
                    f'SELECT * FROM "_changes".{as_of_name(view_id)}(NULL, $1, $2)', [place.incarnation, place.seq]
                ).fetchall()
                assert Counter(found) == rows, token


def _tuples(rows: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows]


def some_rows(rng: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {"k": rng.choice(["a", "", "😀", None]), "i": rng.randrange(4), "l": rng.choice([None, 1, 2]), "n": None}
        for _ in range(count)
    ]


@pytest.mark.parametrize("number", range(len(VIEWS)))
def test_a_copy_equals_the_view(watched: Watched, number: int) -> None:
    rng = random.Random(number)
    watched.fed.feed(some_rows(rng, 5))
    watch, copy = watched.watch(number, snapshot=True), Copy()
    for batch in range(20):
        watched.fed.feed(some_rows(rng, rng.choice([1, 3, 30])), partial=batch % 2 == 1)
        if batch == 0:
            copy.take_snapshot(watch)
        if rng.random() < 0.5:
            copy.take(watch)
            copy.equals(watched.fed.rows(number))
    copy.take(watch)
    copy.equals(watched.fed.rows(number))
    copy.has_its_past(watched.database, watched.targets[number].view_id)
    watch.close()


def test_rows_that_stay_as_they_are_make_no_change(watched: Watched) -> None:
    watched.fed.feed([{"k": "a", "i": 1, "n": None}, {"k": "a", "i": 1}])
    watch = watched.watch(3)
    watched.fed.feed([{"k": "a", "i": 1}])
    assert not watch.wait(0.0)
    watched.fed.feed([{"k": "a", "i": 2}])
    (epoch,) = watch.take()
    assert (epoch.epoch, epoch.complete) == (1, True)
    assert epoch.rows.to_pylist() == [
        {"mv_op": "-U", "k": "a", "d": 1},
        {"mv_op": "+U", "k": "a", "d": 2},
    ]


def test_all_readers_of_a_commit_share_what_was_made_of_it(watched: Watched) -> None:
    first, second = watched.watch(), watched.watch()
    watched.fed.feed([{"k": "a"}])
    (one,), (other,) = first.take(), second.take()
    assert one is other
    made: list[int] = []
    for epoch in (one, other):
        assert epoch.once("json", lambda each: made.append(each.epoch) or "text") == "text"
    assert made == [1]


def test_a_reader_resumes_behind_any_row(watched: Watched) -> None:
    watched.watch().close()
    for keys in ("ab", "ac", "b", "abc"):
        watched.fed.feed([{"k": key} for key in keys])
    first = watched.watch()
    token = first.token
    first.close()
    for keys in ("abc", "ab"):
        watched.fed.feed([{"k": key} for key in keys])
    whole = [(e.token(i), r) for e in watched.watch(since=token).take() for i, r in enumerate(e.rows.to_pylist())]
    assert len(whole) == 10
    for at, (behind, _) in enumerate(whole[:-1]):
        rest = watched.watch(since=behind)
        assert [r for e in rest.take() for r in e.rows.to_pylist()] == [row for _, row in whole[at + 1 :]]
        rest.close()
    assert not watched.watch(since=whole[-1][0]).wait(0.0)


def test_epochs_of_many_rows_come_in_pieces(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    watched.watch().close()
    watched.fed.feed([{"k": f"k{i}"} for i in range(5)])
    watched.fed.feed([{"k": f"l{i}"} for i in range(5)])
    monkeypatch.setattr("spark_sinks.duckdb.history.reading.changes_behind.__defaults__", (3, None, None))
    (history,) = watched.writer.histories.open_ones.values()
    watch = watched.watch(since=f"{history.extent.incarnation}-0")
    pieces = [each for _ in range(4) for each in watch.take()]
    assert [(p.epoch, p.rows.num_rows, p.complete) for p in pieces] == [
        (1, 3, False), (1, 2, True), (2, 1, False), (2, 3, False), (2, 1, True),
    ]  # fmt: skip
    watch.close()


def error_of(call: Any) -> SqlError:
    with pytest.raises(SqlError) as caught:
        call()
    return caught.value


def test_names_that_a_history_needs_itself(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "SELECT k AS mv_op, count(*) AS n FROM events GROUP BY k")
    assert error_of(watched.watch).sqlstate == "42701"
    watched.close()


def test_tokens_that_are_refused(watched: Watched) -> None:
    assert error_of(lambda: watched.watch(since="nonsense")).sqlstate == "22023"
    unknown = error_of(lambda: watched.watch(since=f"{'0' * 16}-1"))
    assert (unknown.sqlstate, unknown.message) == ("72000", 'the history of materialized view "v" is not kept')
    watch = watched.watch()
    (history,) = watched.writer.histories.open_ones.values()
    other = error_of(lambda: watched.watch(since=f"{'0' * 16}-1"))
    assert other.sqlstate == "72000"
    assert f"behind token {watch.token}" in (other.detail or "")
    assert "SNAPSHOT" in (other.hint or "")
    ahead = error_of(lambda: watched.watch(since=f"{history.extent.incarnation}-5"))
    assert ahead.sqlstate == "22023"


def test_what_is_too_much_goes(watched: Watched) -> None:
    watch, late = watched.watch(), watched.watch()
    (history,) = watched.writer.histories.open_ones.values()
    history.bounds = Bounds(3600.0, rows=10)
    token = late.token
    watch.take() if watch.wait(0.0) else None
    for _ in range(12):
        watched.fed.feed([{"k": "a"}])
    assert history.extent.rows <= 10
    gone = error_of(lambda: watched.watch(since=token))
    assert (gone.sqlstate, gone.message) == ("72000", 'the changes of materialized view "v" behind this token are gone')
    copy = Copy()
    copy.take(late)  # what lies in memory is there still
    copy.equals(watched.fed.rows())
    oldest = watched.views.statuses()[0].kept.oldest
    rest = watched.watch(since=str(oldest))
    assert sum(e.rows.num_rows for e in rest.take()) == history.extent.rows


def test_a_slow_reader_is_told_from_where_it_may_go_on(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HISTORY_TAIL_BYTES_MAX", 0)
    slow = watched.watch()
    (history,) = watched.writer.histories.open_ones.values()
    history.bounds = Bounds(3600.0, rows=4)
    for _ in range(4):
        watched.fed.feed([{"k": "a"}])
    error = error_of(slow.take)
    assert error.sqlstate == "72000"
    assert str(watched.views.statuses()[0].kept.oldest) in (error.detail or "")


@pytest.mark.parametrize("bounds", [Bounds(3600.0, rows=10), Bounds(3600.0, bytes=300)])
def test_a_commit_that_changes_more_than_is_kept(watched: Watched, bounds: Bounds) -> None:
    watch = watched.watch()
    (history,) = watched.writer.histories.open_ones.values()
    history.bounds = bounds
    watched.fed.feed([{"k": f"k{i}"} for i in range(11)])
    assert (history.extent.rows, history.extent.last_seq) == (0, 11)
    assert error_of(watch.take).sqlstate == "72000"
    again, copy = watched.watch(snapshot=True), Copy()
    copy.take_snapshot(again)
    watched.fed.feed([{"k": "k1"}])
    copy.take(again)
    copy.equals(watched.fed.rows())


def test_what_is_too_old_goes_by_and_by(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HISTORY_LOOK_S", 0.0)
    monkeypatch.setattr(limits, "HISTORY_TRIMMED_ROWS", 3)
    watch = watched.watch()
    for _ in range(4):
        watched.fed.feed([{"k": "a"}, {"k": "b"}])
    (history,) = watched.writer.histories.open_ones.values()
    assert history.extent.rows == 14
    history.bounds = Bounds(0.0)
    sizes = []
    for _ in range(6):
        watched.views.tend()
        sizes.append(history.extent.rows)
    assert sizes[-1] == 0
    assert sizes[0] > 0, "in steps"
    assert history.extent.bytes == 0
    watch.close()


def test_a_history_ends_when_nobody_has_watched_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HISTORY_LOOK_S", 0.0)  # it is too old as well
    watched = Watched(tmp_path, *VIEWS, retention_s=0.2)
    watch = watched.watch()
    watched.fed.feed([{"k": "a"}])
    token = watch.token
    watched.views.tend()
    assert len(watched.writer.histories.open_ones) == 1
    watch.close()
    for _ in range(600):
        watched.views.tend()
        if not watched.writer.histories.open_ones:
            break
        time.sleep(0.05)
    assert not watched.writer.histories.open_ones
    assert error_of(lambda: watched.watch(since=token)).sqlstate == "72000"
    assert not [name for name in watched.writer.state_tables() if name.endswith("_history")]
    watched.close()


def test_a_history_goes_on_behind_a_restart(tmp_path: Path) -> None:
    watched = Watched(tmp_path, *VIEWS)
    copy, watch = Copy(), watched.watch(snapshot=True)
    copy.take_snapshot(watch)
    watched.fed.feed([{"k": "a"}, {"k": "b"}])
    copy.take(watch)
    watched.fed.feed([{"k": "b"}])  # not taken before the end
    rows, token = watched.fed.rows(), copy.token
    watched.close()
    with writer_in(tmp_path) as (_, writer):
        query = dataclasses.replace(_query(watched.targets[0].query_id))
        views = WatchedViews(writer, 60.0, {t.view_id: t for t in watched.targets}.get, lambda view_id: "v")
        views.take_up(query, watched.targets[0])
        again = views.open(watched.targets[0].view_id, since=token, snapshot=False)
        copy.take(again)
        copy.equals(rows)


@pytest.mark.parametrize("kept_rows", [14, 3, 0])
def test_where_a_history_ends_is_known_behind_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_rows: int
) -> None:
    """Also where its last changes were removed, so that no number is given twice."""
    monkeypatch.setattr(limits, "HISTORY_LOOK_S", 0.0)
    watched = Watched(tmp_path, *VIEWS)
    watched.watch()
    for _ in range(4):
        watched.fed.feed([{"k": "a"}, {"k": "b"}])
    (history,) = watched.writer.histories.open_ones.values()
    bounds = {14: history.bounds, 3: Bounds(3600.0, rows=5), 0: Bounds(0.0)}
    history.bounds = bounds[kept_rows]
    watched.views.tend()
    if kept_rows == 3:
        watched.fed.feed([{"k": "c"}])
        assert history.extent.rows <= 5
        assert history.extent.first_seq > 1
    else:
        assert history.extent.rows == kept_rows
    extent = history.extent
    assert extent.last_seq == (15 if kept_rows == 3 else 14)
    watched.close()
    with writer_in(tmp_path) as (_, writer):
        views = WatchedViews(writer, 3600.0, {t.view_id: t for t in watched.targets}.get, lambda view_id: "v")
        views.take_up(_query(watched.targets[0].query_id), watched.targets[0])
        (again,) = writer.histories.open_ones.values()
        assert again.extent == extent
        assert views.statuses()[0].kept.latest.seq == extent.last_seq


def _query(query_id: str, *properties: tuple[str, str]) -> Any:
    return Query(query_id, "materialized_view", "", ("", ""), (), query_id, "", 0.0, "{}", properties=properties)


def test_views_of_equal_columns_are_watched_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their changes are written by one statement, each to its own log."""
    monkeypatch.setattr(limits, "HISTORY_TAIL_BYTES_MAX", 0)  # what is read comes from the logs
    texts = ("SELECT k, sum(i) AS n FROM events GROUP BY k", "SELECT k, count(i) AS n FROM events GROUP BY k")
    watched = Watched(tmp_path, *texts)
    copies = [Copy(), Copy()]
    watches = [watched.watch(number) for number in range(2)]
    for turn in range(5):
        watched.fed.feed([{"k": f"k{at % 3}", "i": at + turn} for at in range(4 + turn)])
    for number, (copy, watch) in enumerate(zip(copies, watches, strict=True)):
        copy.take(watch)
        assert watched.fed.rows(number), "there are rows"
        copy.equals(watched.fed.rows(number))
    assert watched.fed.rows(0) != watched.fed.rows(1)
    watched.close()


def test_whose_changes_cannot_be_written_is_told(tmp_path: Path) -> None:
    """Although those of all watched views are one statement with the ledger."""
    texts = ("SELECT k, sum(i) AS n FROM events GROUP BY k", "SELECT k, count(i) AS n FROM events GROUP BY k")
    watched = Watched(tmp_path, *texts)
    watches = [watched.watch(number) for number in range(2)]
    query_id = watched.targets[1].query_id
    history = watched.writer.histories.of(query_id)
    assert history is not None
    with watched.writer.transaction():
        watched.writer._cursor.execute(f"ALTER TABLE {qualified(history.view.table)} DROP COLUMN _size")
    with pytest.raises(MergeError) as caught:
        watched.fed.feed([{"k": "a", "i": 1}])
    assert caught.value.query_id == query_id
    assert not any(watch.wait(0.0) for watch in watches)
    watched.close()


def test_a_view_with_the_property_has_a_history_from_its_beginning(watched: Watched) -> None:
    own = watched.targets[0]
    watched.views.take_up(_query(own.query_id, ("history.millis", "7200000")), own)
    (history,) = watched.writer.histories.open_ones.values()
    assert (history.always, history.bounds.seconds, history.is_unwanted) == (True, 7200.0, False)
    watched.fed.feed([{"k": "a"}])
    assert history.extent.rows == 1


def test_a_view_that_is_dropped_ends_its_readers(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HISTORY_LOOK_S", 0.0)
    watch = watched.watch()
    watched.fed.feed([{"k": "a"}])
    watch.take()
    (history,) = watched.writer.histories.open_ones.values()
    history.bounds = Bounds(0.0)
    own = watched.targets[0]
    with watched.writer.transaction():
        watched.writer.drop_state(own.state.tables, own.view_id)
    assert watch.wait(0.0)
    assert error_of(watch.take).sqlstate == "72000"
    watched.fed = Fed(watched.database, watched.writer, *watched.targets[1:])
    watched.fed._batch = 1
    watched.fed.feed([{"k": "a"}])
    assert error_of(lambda: watched.watch(since=watch.token)).sqlstate == "72000"
    with watched.writer.read_cursor() as cursor:
        assert cursor.execute('SELECT count(*) FROM "_ledger".view_histories').fetchall() == [(0,)]


def test_what_is_rolled_back_is_no_change(watched: Watched) -> None:
    watch = watched.watch()
    watched.fed.feed([{"k": "a"}])
    watched.writer._reached = _failing("after ledger")
    with pytest.raises(RuntimeError):
        watched.fed.feed([{"k": "a"}])
    watched.writer._reached = lambda step: None
    watched.fed._batch -= 1
    watched.fed.feed([{"k": "a"}])
    rows = [row for epoch in watch.take() for row in epoch.rows.to_pylist()]
    assert [(row["mv_op"], row["n"]) for row in rows] == [("+I", 1), ("-U", 1), ("+U", 2)]


def _failing(at: str) -> Any:
    def reached(step: str) -> None:
        if step == at:
            raise RuntimeError(step)

    return reached


def test_interrupts_and_shutdown_end_the_wait(watched: Watched) -> None:
    first, second, third = watched.watch(snapshot=True), watched.watch(), watched.watch(snapshot=True)
    third.interrupt()
    assert error_of(lambda: list(third.snapshot())).sqlstate == "57014"
    list(first.snapshot())
    first.interrupt()
    assert error_of(first.take).sqlstate == "57014"
    watched.views.end_all(SqlError("57P01", "terminating connection due to administrator command"))
    assert error_of(second.take).sqlstate == "57P01"
    assert error_of(watched.watch).sqlstate == "57P01"


CHANGELOG_VIEWS = (
    "SELECT id, k, i FROM rows WHERE i > 1",
    "SELECT k, count(*) AS n, max(l) AS m FROM rows GROUP BY k",
    "SELECT count(*) AS n, sum(i) AS s FROM rows",
)


def test_rows_of_changelogs_are_replaced_and_go(tmp_path: Path) -> None:
    rng = random.Random(3)
    targets = [changelog_states.target(text, number) for number, text in enumerate(CHANGELOG_VIEWS)]
    changes = changelog_states.Changes(tmp_path, *targets)
    views = WatchedViews(changes.writer, 3600.0, {t.view_id: t for t in targets}.get, lambda view_id: "v")
    copies = [(Copy(), views.open(each.view_id, since=None, snapshot=True)) for each in targets]
    for copy, watch in copies:
        copy.take_snapshot(watch)
    for _ in range(15):
        changes.feed(
            [
                {"id": rng.randrange(5), "k": rng.choice("ab"), "i": rng.randrange(4), "l": rng.randrange(3),
                 "gone": rng.random() < 0.3}
                for _ in range(rng.choice([1, 4]))
            ]
        )  # fmt: skip
        for number, (copy, watch) in enumerate(copies):
            copy.take(watch)
            copy.equals(changes.rows(number))
    for (copy, _), each in zip(copies, targets, strict=True):
        copy.has_its_past(changes._database, each.view_id)
    changes.close()


def test_groups_of_groups_change_in_the_transaction_of_the_inner_ones(tmp_path: Path) -> None:
    rng = random.Random(4)
    plan = compile_select(parse_select(ALONG[0]), lambda parts, position: RELATION, default_starting="earliest")
    outer = build_target("q", VIEW_ID, 1, plan)
    made = list(nodes(outer, f"{VIEW_ID}_1", "reader"))
    with writer_in(tmp_path) as (database, writer):
        fed = fed_along(database, writer, outer, made)
        views = WatchedViews(writer, 3600.0, {VIEW_ID: outer}.get, lambda view_id: "v")
        copy, watch = Copy(), views.open(VIEW_ID, since=None, snapshot=True)
        copy.take_snapshot(watch)
        for _ in range(10):
            fed.feed(random_rows(rng, rng.choice((1, 3, 10))))
            copy.take(watch)
            copy.equals(fed.rows())
        copy.has_its_past(database, VIEW_ID)


def test_rows_that_are_only_added_and_go_for_their_age(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (database, writer):
        plain = windowed("SELECT k, v FROM events", 0, retention_ms=5000)
        with writer.transaction():
            writer.create_state(plain.state, layout_of(plain))
        views = WatchedViews(writer, 3600.0, {plain.view_id: plain}.get, lambda view_id: "v")
        copy, watch = Copy(), views.open(plain.view_id, since=None, snapshot=True)
        copy.take_snapshot(watch)
        for number, at in enumerate((1000, 1000, 3000, 9000, 20_000)):
            rows = pa.table({"f": [True], "k": ["a"], "v": pa.array([1], pa.int32()), "e": [at * 1000]})
            rows = rows.append_column(PARTITION, pa.array(["0"]))
            batch = Batch("mv_batch", "f", "f", ("k", "v", "e"), plain.query_id, (), "e")
            taking = plain.state
            assert isinstance(taking, AppendState)
            merge = ViewMerge(
                plain.query_id, taking, statements=tuple(taking.take_statements(batch)), added=taking.added_rows(batch)
            )
            advance = Advance(Standing(plain.query_id, ("0",)), taking)
            entry = LedgerEntry("p", 1, number, {"at": number}, {"at": number + 1}, 1)
            assert writer.commit(BatchCommit(entry, (TableMerge(rows, (merge,)),), advances=(advance,)))
            copy.take(watch)
            with database.cursor() as cursor:
                copy.equals(cursor.execute(f'SELECT * FROM "_views"."{plain.view_id}"').fetchall())
        assert sum(copy.rows.values()) == 1
        copy.has_its_past(database, plain.view_id)


def test_windows_that_close_and_that_go_are_changes_too(tmp_path: Path) -> None:
    _windows(tmp_path, 1)


@pytest.mark.night
@pytest.mark.parametrize("run", range(100))
def test_windows_that_close_and_that_go_whatever_comes(tmp_path: Path, run: int) -> None:
    _windows(tmp_path, random.SystemRandom().randrange(2**32))


def _windows(tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    rng, partitions = random.Random(seed), 2
    events = random_events(rng, 150, partitions, step_ms=1000, disorder_ms=6000)
    targets = [
        windowed(query.sql, number, grace_ms=query.grace_ms, retention_ms=query.retention_ms)
        for number, query in enumerate(QUERIES)
    ]
    world = World(None, tmp_path, targets, partitions)
    try:
        views = WatchedViews(world.writer, 3600.0, {t.view_id: t for t in targets}.get, lambda view_id: "v")
        copies = [(Copy(), views.open(t.view_id, since=None, snapshot=True), t) for t in targets]
        for copy, watch, _ in copies:
            copy.take_snapshot(watch)
        for batch in random_batches(rng, events):
            world.feed_evaluated(batch, QUERIES)
            for copy, watch, each in copies:
                copy.take(watch)
                with world.database.cursor() as cursor:
                    copy.equals(cursor.execute(f'SELECT * FROM "_views"."{each.view_id}"').fetchall())
        for copy, _, each in copies:
            copy.has_its_past(world.database, each.view_id)
    finally:
        world.close()
