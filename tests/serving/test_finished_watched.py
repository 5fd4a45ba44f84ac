"""Finished rows of a view that is watched: what its history is told of a commit, they are told, too."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mvserver import limits
from mvserver.front import Field
from mvserver.serving.api import Comparison, KeyRead, PullPlan
from mvserver.serving.engine.database import Database
from mvserver.serving.fast.finished_loader import Loader, Source
from mvserver.serving.fast.finished_rows import KeptViews
from mvserver.views.finishing import logged_view
from mvserver.views.targets import Target
from spark_sinks.duckdb import writer as writers
from spark_sinks.duckdb.history.histories import UNWATCHED
from spark_sinks.duckdb.history.history import Bounds
from spark_sinks.duckdb.writer import Writer
from tests.serving.kept import MEMORY, until
from tests.streaming import changelog_states, states

Records = Sequence[dict[str, Any]]

_GROUPS = (
    "SELECT k, count(*) AS n, sum(i) AS s, sum(l) AS big, sum(n) AS d, max(x) AS x, min(k) AS m FROM events GROUP BY k",
    "SELECT count(*) AS n, k, l, sum(w) AS w FROM events GROUP BY l, k",
    "SELECT l, avg(i) AS a, avg(x) AS b, stddev_samp(x) AS c, bool_or(i > 3) AS f FROM events GROUP BY l",
    "SELECT k, max(i) AS m, max(t) AS t FROM events GROUP BY k",
    "SELECT k, max(i) AS m FROM events WHERE i > 1 GROUP BY k",
    "SELECT k, l, max(i) AS m FROM events GROUP BY k, l HAVING sum(l) < 9 OR count(*) > 4",
    "SELECT k, count(DISTINCT i) AS d, mode() WITHIN GROUP (ORDER BY i) AS m FROM events GROUP BY k",
)
_ZERO = re.compile(r"\b0\.0\b")
_CHANGELOGS = (
    "SELECT id, k, i, n FROM rows",
    "SELECT id, x FROM rows WHERE i > 2",
    "SELECT k, count(*) AS n, sum(l) AS s, avg(x) AS a FROM rows GROUP BY k",
    "SELECT k, l, max(i) AS m FROM rows WHERE i > 1 GROUP BY k, l",
    "SELECT k, sum(i) AS s FROM rows GROUP BY k HAVING sum(i) > 6",
)


class _Kept:
    """A view whose rows are kept finished, and how often some of them were read again."""

    def __init__(self, database: Database, writer: Writer, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writer, self.target = writer, target
        self.kept = KeptViews(lambda: Loader(database, writer.layouts, ()), MEMORY)
        writer.watch = self.kept
        self._database = database
        self.view = logged_view(target)
        self.columns = tuple(name for name, _ in self.view.columns)
        self.key = self.view.key_columns
        self.reads = 0
        ordinary = Loader.changed

        def counted(loader: Loader, source: Source, changes: Sequence[pa.Table]) -> Any:
            self.reads += 1
            return ordinary(loader, source, changes)

        monkeypatch.setattr(Loader, "changed", counted)

    def close(self) -> None:
        self.kept.close()

    def watch(self) -> None:
        with self.writer.transaction():
            self.writer.histories.begin_one(self.view, Bounds(3600), always=True)

    def unwatch(self) -> None:
        history = self.writer.histories.of(self.target.query_id)
        assert history is not None
        with self.writer.transaction():
            self.writer.histories.end_one(history, UNWATCHED)

    def plan(self, operator: str = "=") -> PullPlan:
        comparisons = tuple(Comparison(at, operator, parameter=at + 1) for at in range(len(self.key)))
        read = KeyRead(self.view.view_id, self.key, self.columns[:1], comparisons)
        fields = (Field(self.columns[0], 25),)
        return PullPlan("", fields, (), (self.view.view_id,), arrow_types=(pa.string(),), key_read=read)

    def keep(self) -> PullPlan:
        plan = self.plan()
        for _ in range(limits.FINISHED_ROWS_ASKED_MIN):
            self.kept.find(plan, [None] * len(self.key))
        until(lambda: self.kept.knows(plan))
        return plan

    @property
    def rows(self) -> list[str]:
        """Those that are kept, told apart also by the types of their values."""
        view = self.kept._kept[self.view.view_id].view
        assert view is not None
        width = len(self.key)
        for key, row in view.rows.items():
            assert key == (row[0] if width == 1 else row[:width])
        return sorted(map(repr, view.rows.values()))

    @property
    def of_duckdb(self) -> list[str]:
        """The oracle: the same columns of the view, read by DuckDB."""
        columns = ", ".join(f'"{name}"' for name in self.kept._kept[self.view.view_id].source.columns)
        with self._database.cursor() as cursor:
            rows = cursor.execute(f'SELECT {columns} FROM "_views"."{self.view.view_id}"').fetchall()
        return sorted(map(repr, rows))


@contextmanager
def _of_groups(
    folder: Path, sql: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[_Kept, Callable[[Records], None]]]:
    target = states.target(sql, 1)
    with states.writer_in(folder) as (database, writer):
        fed = states.Fed(database, writer, target)
        with closing(_Kept(database, writer, target, monkeypatch)) as kept:
            yield kept, fed.feed


def _events(chance: random.Random) -> Records:
    return [
        {"k": chance.choice(["a", "b", "c", "d", None]), "l": chance.choice([0, 1, 2, None]),
         "i": chance.choice([*range(6), None]), "n": Decimal(chance.randrange(-99, 99)) / 4,
         "w": Decimal(chance.randrange(9)) / 16, "x": chance.choice([0.0, -0.0, 0.1, 1e300, float("nan"), None])}
        for _ in range(chance.randrange(1, 5))
    ]  # fmt: skip


def _changes(chance: random.Random) -> Records:
    return [
        {"id": chance.randrange(8), "gone": True}
        if chance.random() < 0.4
        else {"id": chance.randrange(8), "k": chance.choice(["a", "b", "c", None]), "l": chance.choice([1, 2, None]),
              "i": chance.choice([*range(6), None]), "n": Decimal(chance.randrange(-99, 99)) / 4,
              "x": chance.choice([0.5, 1.5, None])}
        for _ in range(chance.randrange(1, 6))
    ]  # fmt: skip


def _follow(kept: _Kept, feed: Callable[[Records], None], records: Callable[[random.Random], Records]) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    feed(records(chance))
    kept.watch()
    plan = kept.keep()
    for _ in range(15):
        has_zeros, reads = any(map(_ZERO.search, kept.rows)), kept.reads
        feed(records(chance))
        if has_zeros:  # that one has the other sign now would not be told: its row is read
            until(lambda: kept.kept.knows(plan))
        else:
            assert kept.kept.knows(plan)
            assert kept.reads == reads
        assert kept.rows == kept.of_duckdb
    kept.unwatch()
    feed(records(chance))
    until(lambda: kept.kept.knows(plan))
    assert kept.rows == kept.of_duckdb


@pytest.mark.parametrize("sql", _GROUPS)
def test_kept_rows_of_groups_follow_without_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    with _of_groups(tmp_path, sql, monkeypatch) as (kept, feed):
        _follow(kept, feed, _events)


@pytest.mark.parametrize("sql", _CHANGELOGS)
def test_kept_rows_over_changelogs_follow_without_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    target = changelog_states.target(sql, 1)
    with (
        closing(changelog_states.Changes(tmp_path, target)) as changes,
        closing(_Kept(changes._database, changes.writer, target, monkeypatch)) as kept,
    ):
        _follow(kept, changes.feed, _changes)


def test_a_zero_that_becomes_minus_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are equal, so it is no change that a history would tell."""
    with _of_groups(tmp_path, "SELECT k, max(x) * min(i) AS x FROM events GROUP BY k", monkeypatch) as (kept, feed):
        feed([{"k": "a", "i": 1, "x": 0.0}])
        kept.watch()
        plan = kept.keep()
        feed([{"k": "a", "i": -5, "x": 0.0}])
        until(lambda: kept.kept.knows(plan))
        assert kept.rows == kept.of_duckdb == ["('a', -0.0)"]


def test_a_row_that_goes_for_its_condition_and_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT k, sum(i) AS s FROM events GROUP BY k HAVING sum(i) < 5"
    with _of_groups(tmp_path, sql, monkeypatch) as (kept, feed):
        feed([{"k": "a", "i": 1}, {"k": "b", "i": 2}])
        kept.watch()
        kept.keep()
        for i, shown in ((1, [("a", 2), ("b", 2)]), (3, [("b", 2)]), (1, [("b", 2)]), (-4, [("a", 2), ("b", 2)])):
            feed([{"k": "a", "i": i}])
            assert kept.rows == sorted(map(repr, shown))
        assert kept.reads == 0


def test_rows_of_an_order_are_read_where_keys_come_or_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT k, sum(i) AS s FROM events GROUP BY k HAVING sum(i) < 5"
    with _of_groups(tmp_path, sql, monkeypatch) as (kept, feed):
        feed([{"k": "a", "i": 1}, {"k": "b", "i": 2}])
        kept.watch()
        kept.keep()
        between = kept.plan(">=")
        until(lambda: kept.kept.find(between, ["a"]) is not None)
        for records, read in (
            ([{"k": "a", "i": 1}], 0),
            ([{"k": "a", "i": 9}, {"k": "b", "i": 1}], 1),
            ([{"k": "a", "i": 1}, {"k": "b", "i": 1}], 1),  # one that was not shown, and is not
            ([{"k": "c", "i": 1}], 2),
        ):
            feed(records)
            until(lambda: kept.kept.knows(between))
            assert kept.rows == kept.of_duckdb
            assert kept.reads == read
            found = kept.kept.find(between, ["b"])
            assert found is not None


@pytest.mark.parametrize("bound", ["told", "kept"])
def test_more_changes_than_are_told_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    with _of_groups(tmp_path, _GROUPS[0], monkeypatch) as (kept, feed):
        feed([{"k": "a", "i": 1}])
        kept.watch()
        plan = kept.keep()
        history = kept.writer.histories.of(kept.target.query_id)
        assert history is not None
        if bound == "told":
            monkeypatch.setattr(writers, "ROWS_TOLD_MAX", 1)
        else:
            history.bounds = Bounds(3600, rows=2)
        feed([{"k": "a", "i": 1}])
        assert kept.reads == 0
        assert kept.rows == kept.of_duckdb
        feed([{"k": "a", "i": 1}, {"k": "b", "i": 1}])
        until(lambda: kept.kept.knows(plan))
        assert kept.reads == 1
        assert kept.rows == kept.of_duckdb


def test_what_a_commit_that_fails_has_told_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class _Lost(Exception):
        pass

    def lost(*_: Any) -> Any:
        raise _Lost

    with _of_groups(tmp_path, _GROUPS[0], monkeypatch) as (kept, feed):
        feed([{"k": "a", "i": 1}])
        kept.watch()
        plan = kept.keep()
        with monkeypatch.context() as failing:
            failing.setattr(kept.writer.commits, "making", lost)
            with pytest.raises(_Lost):
                feed([{"k": "a", "i": 1}, {"k": "b", "i": 1}])
        until(lambda: kept.kept.knows(plan))
        assert kept.rows == kept.of_duckdb
        assert kept.reads == 1
