"""Rows that are kept finished say what DuckDB says, of the last committed state, or nothing."""

from __future__ import annotations

import gc
import random
import threading
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catalog.model import Column
from mvserver import limits
from mvserver.serving.api import Comparison, Further, Members
from mvserver.serving.fast.finished_loader import Loader, Source
from mvserver.serving.fast.finished_view import Budget, FinishedView
from mvserver.views.finishing import layout_of
from spark_sinks.duckdb import writer
from spark_sinks.duckdb.changes.outbox import Outbox
from spark_sinks.duckdb.layout import ViewLayout
from spark_sinks.duckdb.state.state import AppendState
from tests.serving.kept import COLUMNS, MEMORY, SELECT, KeptView, declare, until
from tests.serving.world import TYPES_ID, VISITS_ID, World
from tests.streaming.states import target

_POINT = "SELECT visits, total FROM visits WHERE site = $1 AND url = $2"
_RANGE = "SELECT url, site, visits FROM visits WHERE site >= $1 AND site < $2"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, finished_rows_memory=MEMORY)
    yield made
    made.close()


@pytest.fixture
def view(world: World) -> Iterator[KeptView]:
    made = KeptView(world)
    yield made
    made.close()


def _records(sites: Sequence[int | None], urls: Sequence[str | None], n: str = "1.25") -> list[dict[str, Any]]:
    return [{"l": site, "k": url, "n": Decimal(n)} for site in sites for url in urls]


class _Lost(Exception):
    """What a transaction meets."""


# --- which queries ----------------------------------------------------------------------------------------------------
_READS: list[tuple[str, tuple[str, ...] | None, list[tuple[Any, ...]]]] = [
    (_POINT, ("visits", "total"), [(0, "=", None, 1), (1, "=", None, 2)]),
    ("SELECT * FROM visits v WHERE 5 = v.site AND (url = 'a')", ("site", "url", "visits", "total"),
     [(0, "=", 5, 0), (1, "=", "a", 0)]),
    ("SELECT total AS x, v.* FROM visits v WHERE -5 < site", ("total", "site", "url", "visits", "total"),
     [(0, ">", -5, 0)]),
    ("SELECT visits FROM visits WHERE url BETWEEN 'a' AND $1", ("visits",),
     [(1, ">=", "a", 0), (1, "<=", None, 1)]),
    ("SELECT visits + 1 AS x FROM visits WHERE site = 1", None, []),
    ("SELECT visits FROM visits WHERE visits > 3", None, []),
    ("SELECT visits FROM visits WHERE site = 1 AND visits > 3.5", None, []),
    ("SELECT visits FROM visits WHERE site = 1 AND visits IN (3, 4)", None, []),
    ("SELECT visits FROM visits WHERE site = 1 AND visits <> 3", None, []),
    ("SELECT visits FROM visits WHERE site = 1 OR site = 2", None, []),
    ("SELECT visits FROM visits WHERE site <> 1 AND url = 'a'", None, []),
    ("SELECT visits FROM visits WHERE site = 1 ORDER BY visits", None, []),
    ("SELECT visits FROM visits WHERE site = 1 LIMIT 1", None, []),
    ("SELECT DISTINCT visits FROM visits WHERE site = 1", None, []),
    ("SELECT count(*) FROM visits WHERE site = 1", None, []),
    ("SELECT visits FROM visits WHERE site = $1::numeric AND url = 'a'", None, []),
    ("SELECT visits FROM visits WHERE site = 1.5 AND url = 'a'", None, []),
    ("SELECT visits FROM visits WHERE lower(url) = 'a' AND site = 1", None, []),
    ("SELECT visits FROM visits WHERE site = visits AND url = 'a'", None, []),
    ("SELECT a.visits FROM visits a, visits b WHERE a.site = 1 AND a.url = 'a'", None, []),
]  # fmt: skip


def test_queries_of_columns_by_the_key_alone_can_be_answered(view: KeptView) -> None:
    for text, columns, comparisons in _READS:
        read = view.world.plan(text).key_read
        if columns is None:
            assert read is None, text
            continue
        assert read is not None, text
        assert (read.view_id, read.key, read.columns) == (VISITS_ID, ("site", "url"), columns)
        assert list(read.comparisons) == [Comparison(*each) for each in comparisons]


def test_conditions_of_other_columns_besides(view: KeptView) -> None:
    for text, further in (
        ("SELECT url FROM visits WHERE site = 1 AND visits > -3", [Further("visits", ">", -3)]),
        ("SELECT url FROM visits v WHERE $2 >= v.visits AND site IN (1, 2)", [Further("visits", "<=", parameter=2)]),
        ("SELECT url FROM visits WHERE (visits BETWEEN 1 AND $1) AND site > 1",
         [Further("visits", ">=", 1), Further("visits", "<=", parameter=1)]),
    ):  # fmt: skip
        read = view.world.plan(text).key_read
        assert read is not None, text
        assert list(read.further) == further, text


def test_a_column_that_python_compares_in_another_way_goes_to_duckdb(view: KeptView) -> None:
    view.fed.feed(_records([1], ["a"]))
    view.keep(_POINT, (1, "a"))
    counted = view.world.plan("SELECT url FROM visits WHERE site = $1 AND url = $2 AND visits >= $3")
    assert view.found(counted, (1, "a", 1)) == [("a",)]
    assert view.found(counted, (1, "a", 2)) == []
    for value in (None, True, 1.0, Decimal(1), "1"):
        assert view.found(counted, (1, "a", value)) is None
    summed = view.world.plan("SELECT url FROM visits WHERE site = $1 AND url = $2 AND total > $3")
    for value in (1, Decimal(1)):
        assert view.found(summed, (1, "a", value)) is None


_MEMBERS = [
    ("SELECT visits FROM visits WHERE site IN (1, $1) AND url = 'a'", [Members(0, (1,), (1,))]),
    ("SELECT visits FROM visits WHERE site = ANY($1::bigint[]) AND url IN ($2, 'b')",
     [Members(0, array=1), Members(1, ("b",), (2,))]),
    ("SELECT visits FROM visits WHERE url = 'a' AND site IN (-1)", [Members(0, (-1,))]),
    ("SELECT visits FROM visits WHERE site IN (1, 2)", [Members(0, (1, 2))]),  # a part of the key
    ("SELECT visits FROM visits WHERE site IN (1, 2) AND site = 1 AND url = 'a'", [Members(0, (1, 2))]),
    ("SELECT visits FROM visits WHERE site IN (1, 2) AND url > 'a'", [Members(0, (1, 2))]),
    ("SELECT visits FROM visits WHERE site IN (1, 2) OR url = 'a'", None),
    ("SELECT visits FROM visits WHERE site IN (1, visits) AND url = 'a'", None),
    ("SELECT visits FROM visits WHERE site NOT IN (1, 2) AND url = 'a'", None),
    ("SELECT visits FROM visits WHERE site <> ALL($1::bigint[]) AND url = 'a'", None),
    ("SELECT visits FROM visits WHERE site < ANY($1::bigint[]) AND url = 'a'", None),
    ("SELECT visits FROM visits WHERE site IN (1.5, 2) AND url = 'a'", None),
]  # fmt: skip


def test_queries_of_some_keys_can_be_answered(view: KeptView) -> None:
    for text, members in _MEMBERS:
        read = view.world.plan(text).key_read
        assert (None if read is None else list(read.members)) == members, text


def test_a_list_longer_than_few_rows_goes_to_duckdb(view: KeptView) -> None:
    view.fed.feed(_records([1], ["a"]))
    plan = view.keep("SELECT visits FROM visits WHERE site = ANY($1::bigint[]) AND url = $2", ([1], "a"))
    assert view.found(plan, ([1] * limits.FEW_ROWS_MAX, "a")) == [(1,)]
    assert view.found(plan, ([1] * (limits.FEW_ROWS_MAX + 1), "a")) is None
    for value in ([True], ["1"], [1.0], None, [[1]]):
        assert view.found(plan, (value, "a")) is None
    assert view.found(plan, ([None, 1, 1], "a")) == [(1,)]
    assert view.found(plan, ([], "a")) == []
    numbers = ", ".join(map(str, range(limits.FEW_ROWS_MAX + 1)))
    assert view.world.plan(f"SELECT visits FROM visits WHERE site IN ({numbers}) AND url = 'a'").key_read is None


def test_values_that_python_compares_in_another_way_go_to_duckdb(view: KeptView) -> None:
    view.fed.feed(_records([1], ["a"]))
    plan = view.keep(_POINT, (1, "a"))
    assert view.found(plan, (1, "a")) == [(1, Decimal("1.25"))]
    for value in (None, True, 1.0, Decimal(1), "1"):
        assert view.found(plan, (value, "a")) is None
    assert view.found(view.world.plan("SELECT visits FROM visits WHERE site = '1' AND url = 'a'")) is None


@pytest.mark.parametrize(("column", "kind"), [("x", "DOUBLE"), ("t", "TIMESTAMP"), ("n", "DECIMAL(10, 2)")])
def test_a_view_with_a_key_of_another_type_is_not_kept(world: World, column: str, kind: str) -> None:
    sql = f"SELECT {column} AS site, count(*) AS visits FROM events GROUP BY {column}"
    view = KeptView(world, sql, (Column("site", kind), Column("visits", "BIGINT")), ("site",))
    view.fed.feed([{"x": 1.0, "n": Decimal(1)}])
    plan = world.plan("SELECT visits FROM visits WHERE site = $1")
    for _ in range(2 * limits.FINISHED_ROWS_ASKED_MIN):
        assert view.found(plan, (1.0,)) is None
    until(lambda: view.finished._refused)
    assert not view.finished.status()
    view.close()


# --- equal to DuckDB --------------------------------------------------------------------------------------------------
def test_random_look_ups_and_ranges_equal_the_view_between_commits(
    view: KeptView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "ROWS_TOLD_MAX", 100)  # rows of larger batches are read by their keys
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    sites = [None, *range(-5, 60)]
    urls = [None, "", "a", "A", "b", "é", "\uffff", "\U00010000", "a\u0301", "zz"]
    texts = [
        _POINT, _RANGE,
        "SELECT * FROM visits WHERE site = $1",
        "SELECT visits FROM visits WHERE site = $1 AND url > $2",
        "SELECT site, total FROM visits WHERE url <= $2 AND url >= $3 AND site BETWEEN $1 AND $4",
        "SELECT url FROM visits WHERE site > $1 AND site <= $2 AND url = $3",
        "SELECT url FROM visits WHERE site = $1 AND url = $2 AND site = $3",
        "SELECT visits FROM visits WHERE url < $1",
        "SELECT * FROM visits WHERE site IN ($1, $2, 3) AND url = $3",
        "SELECT site, total FROM visits WHERE url IN ($1, $2, '') AND site = ANY($3::bigint[])",
        "SELECT * FROM visits WHERE site IN ($1, $2, 3)",
        "SELECT site FROM visits WHERE url = $1",
        "SELECT * FROM visits WHERE url = ANY($1::text[]) AND site > $2 AND site < $3",
        "SELECT visits FROM visits WHERE site IN ($1, $2, 7) AND site = $3",
        "SELECT visits FROM visits WHERE site IN ($1, $2, 7) AND site IN ($3, 7) AND url <= $4",
        "SELECT * FROM visits WHERE site = $1 AND url = $2 AND visits > $3",
        "SELECT url FROM visits WHERE site BETWEEN $1 AND $2 AND visits = $3",
        "SELECT site FROM visits WHERE url = $1 AND visits >= $2 AND $3 > visits",
    ]  # fmt: skip
    kinds = {"site": lambda: chance.randrange(-8, 64), "url": lambda: chance.choice([u for u in urls if u is not None])}
    view.fed.feed(_records([1], ["a"]))
    plans = [view.world.plan(text) for text in texts]
    answered = 0
    for _ in range(12):
        batch = [
            {"l": chance.choice(sites), "k": chance.choice(urls), "n": Decimal(chance.randrange(100)) / 4}
            for _ in range(chance.choice([0, 1, 30, 200]))
        ]
        view.fed.feed(batch, partial=chance.random() < 0.3)
        view.keep(_POINT, (1, "a"))
        for plan in plans:
            assert plan.key_read is not None
            parameters: list[Any] = [None] * len(plan.parameter_oids)
            for comparison in plan.key_read.comparisons:
                parameters[comparison.parameter - 1] = kinds[("site", "url")[comparison.column]]()
            for other in plan.key_read.further:
                parameters[other.parameter - 1] = chance.randrange(4)
            for members in plan.key_read.members:
                value = kinds[("site", "url")[members.column]]
                for number in members.parameters:
                    parameters[number - 1] = value()
                if members.array:
                    parameters[members.array - 1] = [value() for _ in range(chance.randrange(6))] + [None]
            until(lambda plan=plan, parameters=parameters: not _misses_order(view, plan, parameters))
            found = view.found(plan, parameters)
            expected = view.of_duckdb(plan, parameters)
            if found is not None:  # else the range was long before the other conditions
                answered += 1
                assert sorted(found, key=repr) == sorted(expected, key=repr), (plan.sql, parameters)
    assert answered > 60


def _misses_order(view: KeptView, plan: Any, parameters: Sequence[Any]) -> bool:
    view.found(plan, parameters)
    (kept,) = view.finished._kept.values()
    return kept.view is None or kept.view.lacks_arrangement or kept.view.token is None


def test_rows_of_a_part_of_the_key_come_with_the_commit_that_brings_them(
    view: KeptView, monkeypatch: pytest.MonkeyPatch
) -> None:
    view.fed.feed(_records([1, 2, 3], ["a"]))
    plan = view.keep("SELECT site, visits FROM visits WHERE url IN ($1, $2)", ("a", "b"))
    assert sorted(view.ready(plan, ("a", "b")) or ()) == [(1, 1), (2, 1), (3, 1)]
    reads = _Reads(monkeypatch)
    view.fed.feed([*_records([2, 4], ["b"]), *_records([1], ["a"]), *_records([None], ["b"])])
    assert sorted(view.found(plan, ("a", "b")) or (), key=repr) == sorted(
        [(1, 2), (2, 1), (3, 1), (2, 1), (4, 1), (None, 1)], key=repr
    )
    assert view.found(plan, ("c", "d")) == []
    assert reads.times == 0


def test_a_part_of_the_key_that_many_rows_have_goes_to_duckdb(view: KeptView) -> None:
    view.fed.feed([*_records(range(limits.FEW_ROWS_MAX), ["a"]), *_records([1], ["b"])])
    plan = view.keep("SELECT site FROM visits WHERE url = ANY($1::text[])", (["a"],))
    assert len(view.ready(plan, (["a"],)) or ()) == limits.FEW_ROWS_MAX
    assert view.found(plan, (["b"],)) == [(1,)]
    assert view.found(plan, (["a", "b"],)) is None


def test_an_index_without_room_is_left_out(view: KeptView) -> None:
    view.fed.feed(_records(range(50), ["a", "b"]))
    point = view.keep(_POINT, (1, "a"))
    (kept,) = view.finished._kept.values()
    assert kept.view is not None
    taken = kept.view.size
    kept.view._budget.most = kept.view._budget.taken + 100
    by_part = view.world.plan("SELECT url FROM visits WHERE site = $1")
    assert view.found(by_part, (1,)) is None
    until(lambda: kept.view is not None and not kept.view.lacks_arrangement and kept.view.token is not None)
    assert view.found(by_part, (1,)) is None
    assert view.found(point, (1, "a")) == [(1, Decimal("1.25"))]
    assert (kept.view.size, kept.view._budget.taken) == (taken, taken)


def test_indexes_follow_the_rows_and_give_their_memory_back() -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows = {(site, url): (site, url, 1) for site in range(40) for url in ("a", "b", None)}
    budget = Budget(1 << 30)
    view = FinishedView(("site", "url", "n"), (), (int, str), budget)
    assert view.add(list(rows.values()))
    plain = view.size
    assert (view.index((0,)), view.index((1,)), view.arrange()) == (None, None, True)
    assert view.size > plain
    for _ in range(200):
        keys = chance.sample(list(rows), 7)
        there = chance.sample(keys, chance.randrange(8))
        assert view.replace(keys, [rows[key] for key in there])
        for column in (0, 1):
            expected: dict[Any, set[Any]] = {}
            for key in view.rows:
                if key[column] is not None:
                    expected.setdefault(key[column], set()).add(key)
            found = view.index((column,)) or {}
            assert {value: kept if type(kept) is set else {kept} for value, kept in found.items()} == expected
    assert view.replace(list(rows), [])
    assert (view.size, budget.taken) == (0, 0)


def test_a_long_range_goes_to_duckdb(view: KeptView) -> None:
    view.fed.feed(_records(range(limits.FEW_ROWS_MAX + 1), ["a"]))
    plan = view.keep(_RANGE, (0, limits.FEW_ROWS_MAX))
    assert len(view.found(plan, (0, limits.FEW_ROWS_MAX)) or ()) == limits.FEW_ROWS_MAX
    assert view.found(plan, (0, limits.FEW_ROWS_MAX + 1)) is None


def test_one_key_column_is_enough(world: World) -> None:
    view = KeptView(world, "SELECT k AS url, count(*) AS visits, max(i) AS top, avg(x) AS mean FROM events GROUP BY k",
                    (Column("url", "VARCHAR"), Column("visits", "BIGINT"), Column("top", "INTEGER"),
                     Column("mean", "DOUBLE")), ("url",))  # fmt: skip
    view.fed.feed([{"k": "a", "i": 1, "x": 0.5}, {"k": None, "i": 2}, {"k": "b"}])
    plan = view.keep("SELECT mean, top, visits FROM visits WHERE url = $1", ("a",))
    between = view.keep("SELECT url FROM visits WHERE url >= $1", ("",))
    view.fed.feed([{"k": "a", "i": 7, "x": 1.5}, {"k": "0"}])  # an average is more than a column of the state
    assert view.found(plan, ("a",)) in (None, [(1.0, 7, 2)])
    assert view.ready(plan, ("a",)) == [(1.0, 7, 2)]
    assert view.ready(plan, ("b",)) == [(None, None, 1)]
    assert view.ready(plan, ("c",)) == []
    assert view.ready(between, ("",)) == [("0",), ("a",), ("b",)]
    assert view.ready(between, ("a\0",)) == [("b",)]
    view.close()


# --- rows from the merge ----------------------------------------------------------------------------------------------
class _Reads:
    """How often the rows of changed keys were read again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        ordinary = Loader.changed

        def counted(loader: Loader, source: Source, changes: Sequence[pa.Table]) -> Any:
            self.times += 1
            return ordinary(loader, source, changes)

        monkeypatch.setattr(Loader, "changed", counted)


def test_a_merge_tells_the_rows_that_it_has_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (Column("site", "BIGINT"), Column("url", "VARCHAR"), Column("visits", "BIGINT"), Column("top", "INTEGER"),
               Column("total", "DOUBLE"), Column("low", "VARCHAR"))  # fmt: skip
    sql = ("SELECT l AS site, k AS url, count(*) AS visits, max(i) AS top, sum(x) AS total, min(k) AS low "
           "FROM events GROUP BY l, k")  # fmt: skip
    view = KeptView(world, sql, columns)
    view.fed.feed([{"l": 1, "k": "a", "i": 1, "x": 0.5}, {"l": None, "k": "a", "i": 2}])
    plan = view.keep("SELECT * FROM visits WHERE site = $1 AND url = $2", (1, "a"))
    reads = _Reads(monkeypatch)
    view.fed.feed([{"l": 1, "k": "a", "i": 7, "x": 1.5}, {"l": 2, "k": "b"}, {"l": None, "k": "a"}])
    assert view.found(plan, (1, "a")) == [(1, "a", 2, 7, 2.0, "a")]
    assert view.found(plan, (2, "b")) == [(2, "b", 1, None, None, "b")]
    of_url = view.keep("SELECT visits FROM visits WHERE url >= $1", ("b",))
    view.fed.feed([{"l": 2, "k": "b", "i": 3}])  # no key that is new to the order
    assert view.found(of_url, ("b",)) == [(2,)]
    assert reads.times == 0
    view.fed.feed([{"l": 2, "k": "c"}])
    assert sorted(view.ready(of_url, ("b",))) == [(1,), (2,)]
    assert reads.times == 1
    view.close()


@pytest.mark.parametrize("failing", ["commit", "take"])
def test_rows_that_were_told_for_nothing_are_read_again(
    view: KeptView, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    view.fed.feed(_records([1], ["a"]))
    plan = view.keep(_POINT, (1, "a"))

    def lost(*_: Any) -> Any:
        raise _Lost

    if failing == "take":
        monkeypatch.setattr(FinishedView, "take", lost)
        view.fed.feed(_records([1], ["a"]))
        assert view.found(plan, (1, "a")) is None
        assert not view.finished.status()
        return
    reads = _Reads(monkeypatch)
    monkeypatch.setattr(view.writer.commits, "making", lost)
    with pytest.raises(_Lost):
        view.fed.feed(_records([1], ["a"]))
    assert view.ready(plan, (1, "a")) == [(1, Decimal("1.25"))] == view.of_duckdb(plan, (1, "a"))
    assert reads.times == 1


def test_rows_told_while_the_view_is_read_wait_for_it(view: KeptView, monkeypatch: pytest.MonkeyPatch) -> None:
    view.fed.feed(_records([1], ["a"]))
    ordinary = Loader.load

    def late(loader: Loader, source: Source, *rest: Any) -> Any:
        found = ordinary(loader, source, *rest)
        monkeypatch.setattr(Loader, "load", ordinary)
        view.fed.feed(_records([1, 2], ["a"]))
        return found

    monkeypatch.setattr(Loader, "load", late)
    plan = view.keep(_POINT, (1, "a"))
    assert view.ready(plan, (1, "a")) == [(2, Decimal("2.50"))]
    assert view.ready(plan, (2, "a")) == [(1, Decimal("1.25"))]


def test_a_batch_that_is_merged_when_its_keys_become_wanted_is_waited_for(
    view: KeptView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has told no keys: rows that were read before its COMMIT could not be brought up to date."""
    view.fed.feed(_records([1], ["a"]))
    plan = view.world.plan(_POINT)
    loaded, ordinary = threading.Event(), Loader.load
    monkeypatch.setattr(Loader, "load", lambda *args: (loaded.set(), ordinary(*args))[1])
    too_early: list[bool] = []

    class AsksMeanwhile(_Spy):
        def changing(self, changes: Any) -> None:
            for _ in range(limits.FINISHED_ROWS_ASKED_MIN):
                view.found(plan, (1, "a"))
            until(view.finished.status)
            too_early.append(loaded.wait(0.2))
            super().changing(changes)

    view.writer.watch = AsksMeanwhile(view, plan)
    view.fed.feed(_records([1], ["a"]))
    view.writer.watch = view.finished
    assert too_early == [False]
    assert view.ready(plan, (1, "a")) == [(2, Decimal("2.50"))]


@pytest.mark.parametrize("kept", [True, False])
def test_a_batch_that_is_rolled_back_keeps_no_view_from_being_kept(view: KeptView, kept: bool) -> None:
    view.fed.feed(_records([1], ["a"]))
    plan = view.keep(_POINT, (1, "a")) if kept else view.world.plan(_POINT)

    class FailsInside(_Spy):
        def wants_keys(self, table: str) -> bool:
            super().wants_keys(table)
            raise _Lost

        def wants_rows(self, table: str) -> str | None:
            return None

    view.writer.watch = FailsInside(view, plan)
    with pytest.raises(_Lost):
        view.fed.feed(_records([1], ["a"]))
    view.writer.watch = view.finished
    view.keep(_POINT, (1, "a"))
    assert view.ready(plan, (1, "a")) == [(1, Decimal("1.25"))]


# --- nothing stale ----------------------------------------------------------------------------------------------------
class _Spy:
    """Between the writer and the kept rows: looks whether anybody could still read at the COMMIT."""

    def __init__(self, view: KeptView, plan: Any) -> None:
        self.view, self.plan = view, plan
        self.in_use: list[bool] = []

    def wants_rows(self, table: str) -> str | None:
        return self.view.finished.wants_rows(table)

    def wants_keys(self, table: str) -> bool:
        return self.view.finished.wants_keys(table)

    def changing(self, changes: Any) -> None:
        self.view.finished.changing(changes)
        self.in_use.append(self.view.finished.knows(self.plan))

    def changed(self, *, done: bool) -> None:
        self.in_use.append(self.view.finished.knows(self.plan))
        self.view.finished.changed(done=done)


def test_a_view_is_out_of_use_before_the_commit_that_changes_it(view: KeptView) -> None:
    view.fed.feed(_records([1], ["a", "b"]))
    plan = view.keep(_POINT, (1, "a"))
    spy = view.writer.watch = _Spy(view, plan)
    view.fed.feed(_records([1, 2], ["a"]))
    assert spy.in_use == [False, False]
    assert view.ready(plan, (1, "a")) == [(2, Decimal("2.50"))]
    assert view.ready(plan, (2, "a")) == [(1, Decimal("1.25"))]
    assert view.ready(plan, (1, "b")) == [(1, Decimal("1.25"))]


def test_a_commit_that_fails_changes_nothing(view: KeptView) -> None:
    view.fed.feed(_records([1], ["a"]))
    plan = view.keep(_POINT, (1, "a"))

    class FailsAtCommit(_Spy):
        def changing(self, changes: Any) -> None:
            super().changing(changes)
            raise _Lost

    view.writer.watch = FailsAtCommit(view, plan)
    with pytest.raises(_Lost):
        view.fed.feed(_records([1], ["a"]))
    assert view.ready(plan, (1, "a")) == [(1, Decimal("1.25"))] == view.of_duckdb(plan, (1, "a"))


def test_other_views_stay_in_use(view: KeptView) -> None:
    view.fed.feed(_records([1], ["a"]))
    plan = view.keep(_POINT, (1, "a"))
    spy = view.writer.watch = _Spy(view, plan)
    with view.writer.transaction() as ledger:
        ledger.begin_generation("other", {"at": 0})
    with view.writer.transaction():
        state = AppendState("another_1", ("BIGINT",))
        view.writer.create_state(state, ViewLayout("another", state.table, state.stored_columns, (), "SELECT 1 AS x"))
    outbox = Outbox("q9", "another", "another_1", ("x",), (("x", "BIGINT"),))
    with view.writer.transaction():
        for statement in outbox.create_statements():
            view.writer._cursor.execute(statement)
    view.writer.forget_sent(outbox, 1)
    assert all(spy.in_use)
    assert len(spy.in_use) == 8
    assert view.found(plan, (1, "a")) == [(1, Decimal("1.25"))]


def _rebuild(view: KeptView) -> None:
    anew = target(SELECT, 1)
    with view.writer.transaction():
        view.writer.drop_state(view.target.state.tables, None)
        view.writer.create_state(anew.state, layout_of(anew))


def _drop(view: KeptView) -> None:
    with view.writer.transaction():
        view.writer.drop_state(view.target.state.tables, VISITS_ID)


def _replace_definition(view: KeptView) -> None:
    with view.writer.transaction():
        layout = layout_of(view.target)
        view.writer.replace_view(replace(layout, query=layout.query.replace('AS "total"', '+ 1 AS "total"')))


def _unknown_rows(view: KeptView) -> None:
    view.writer._notes.begin()
    view.writer._notes.rows(view.target.state.table)
    view.finished.changing(view.writer._notes.taken)
    view.finished.changed(done=True)


@pytest.mark.parametrize("change", [_rebuild, _drop, _replace_definition, _unknown_rows])
def test_whatever_else_changes_a_view_lets_its_rows_go(view: KeptView, change: Any) -> None:
    view.fed.feed(_records([1], ["a"]))
    plan = view.keep(_POINT, (1, "a"))
    change(view)
    assert view.found(plan, (1, "a")) is None
    assert not view.finished.status()
    assert view.finished._budget.taken == 0
    for _ in range(2 * limits.FINISHED_ROWS_ASKED_MIN):  # nor are they read again at once
        assert view.found(plan, (1, "a")) is None
    assert not view.finished._requests


def test_a_view_that_was_made_anew_is_kept_as_it_is_now(view: KeptView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FINISHED_ROWS_RETRY_S", 0.0)
    view.fed.feed(_records([1], ["a"]))
    plan = view.keep(_POINT, (1, "a"))
    _rebuild(view)
    view.fed.feed(_records([1], ["a"], "7"))
    view.keep(_POINT, (1, "a"))
    assert view.found(plan, (1, "a")) == [(1, Decimal(7))]


def test_a_batch_of_many_keys_lets_the_rows_go(view: KeptView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FINISHED_ROWS_KEYS_MAX", 10)
    monkeypatch.setattr(writer, "ROWS_TOLD_MAX", 10)
    view.fed.feed(_records([1], ["a"]))
    plan = view.keep(_POINT, (1, "a"))
    view.fed.feed(_records(range(11), ["a"]))
    assert view.found(plan, (1, "a")) is None
    assert not view.finished.status()


# --- memory -----------------------------------------------------------------------------------------------------------
def test_a_view_that_is_too_large_is_not_kept_nor_tried_at_once(tmp_path: Path) -> None:
    world = World(tmp_path, finished_rows_memory=40_000)
    view = KeptView(world)
    view.fed.feed(_records(range(250), ["a"]))  # fewer than the bytes that a row takes at least
    plan = world.plan(_POINT)
    for _ in range(limits.FINISHED_ROWS_ASKED_MIN):
        assert view.found(plan, (1, "a")) is None
    until(lambda: view.finished._refused)
    for _ in range(2 * limits.FINISHED_ROWS_ASKED_MIN):
        assert view.found(plan, (1, "a")) is None
    assert not view.finished._requests
    assert not view.finished.status()
    assert view.finished._budget.taken == 0
    view.close()
    world.close()


def test_a_view_that_grows_too_large_is_let_go(tmp_path: Path) -> None:
    world = World(tmp_path, finished_rows_memory=40_000)
    view = KeptView(world)
    view.fed.feed(_records([1], ["a"]))
    plan = view.keep(_POINT, (1, "a"))
    view.fed.feed(_records(range(250), ["a"]))
    until(lambda: not view.finished.status())
    assert view.found(plan, (1, "a")) is None
    assert view.finished._budget.taken == 0
    view.close()
    world.close()


def test_what_is_counted_is_what_is_taken(view: KeptView) -> None:
    records = [{"l": n // 5, "k": f"u{n % 5}", "n": Decimal(n) / 4} for n in range(20_000)]
    view.fed.feed(records)
    view.world.plan(_RANGE)
    gc.collect()
    tracemalloc.start()
    view.keep(_RANGE, (1, 20))
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    (status,) = view.finished.status()
    assert status.answered == view.finished.answered > 0
    assert (status.view_id, status.state, status.rows) == (VISITS_ID, "ready", 20_000)
    assert 0.7 < taken / status.bytes < 1.1


def test_rows_that_nobody_asks_for_are_let_go(view: KeptView, monkeypatch: pytest.MonkeyPatch) -> None:
    from mvserver.serving.fast import finished_rows

    monkeypatch.setattr(finished_rows, "_LOOK_S", 0.02)
    view.fed.feed(_records([1], ["a"]))
    plan = view.keep(_POINT, (1, "a"))
    monkeypatch.setattr(limits, "FINISHED_ROWS_IDLE_S", 0.05)
    view.fed.feed(_records([1], ["a"]))  # wakes the thread, which looks at intervals then
    until(lambda: not view.finished.status())
    assert not view.finished.knows(plan)
    assert view.finished._budget.taken == 0


def test_rows_that_are_let_go_during_a_commit_take_nothing(view: KeptView, monkeypatch: pytest.MonkeyPatch) -> None:
    view.fed.feed(_records([1], ["a"]))
    view.keep(_POINT, (1, "a"))
    kept, ordinary = view.finished._kept[VISITS_ID], view.writer.commits.making

    def making(query_ids: Any) -> Any:
        with view.finished._condition:
            view.finished._let_go(kept)
        return ordinary(query_ids)

    monkeypatch.setattr(view.writer.commits, "making", making)
    view.fed.feed(_records([1], ["a", "b"]))
    assert view.finished._budget.taken == 0


def test_without_memory_nothing_is_kept(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = KeptView(world)
    view.fed.feed(_records([1], ["a"]))
    plan = world.plan(_POINT)
    for _ in range(3 * limits.FINISHED_ROWS_ASKED_MIN):
        assert view.found(plan, (1, "a")) is None
    assert view.finished._thread is None
    assert not view.finished.status()
    view.close()
    world.close()


def test_a_view_of_more_than_its_state_is_not_kept(view: KeptView) -> None:
    """As one that shows closed windows only, by a watermark."""
    view.fed.feed(_records([1], ["a"]))
    with view.writer.transaction():
        query = (
            "SELECT k0 AS site, k1 AS url, n AS visits, m0 AS total "
            f'FROM _state."{view.target.state.table}" WHERE (SELECT count(*) FROM _ledger.windows) = 0'
        )
        view.writer.replace_view(replace(layout_of(view.target), query=query, by_state_alone=False))
    plan = view.world.plan(_POINT)
    for _ in range(limits.FINISHED_ROWS_ASKED_MIN):
        view.found(plan, (1, "a"))
    until(lambda: view.finished._refused)
    assert not view.finished.status()


def test_a_view_without_a_key_is_none_of_these(world: World) -> None:
    declare(world, COLUMNS, ())
    assert world.plan("SELECT i8 FROM all_types WHERE i4 = 2").key_read is None
    assert world.catalog.current.relations_by_id[TYPES_ID].key_columns == ()
