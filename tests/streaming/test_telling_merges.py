"""Merges that tell what they do to the rows of a watched view.

The oracles: what the view showed before and behind each commit, and a twin of the view that nobody watches, whose state
has to be the same to the last bit.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mvserver.streaming.watching.history_reader import HistoryReader
from mvserver.views.finishing import logged_view
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.writer import MergeError, Writer
from tests.streaming.states import target
from tests.streaming.test_histories import Watched

TOLD = (
    "SELECT k, count(*) AS n, sum(i) AS s FROM events GROUP BY k",
    "SELECT k, sum(i) AS s, max(i) AS m, min(n) AS least FROM events GROUP BY k",
    "SELECT k, avg(l) AS a, avg(n) AS b, avg(x) AS c FROM events GROUP BY k",
    "SELECT k, stddev_samp(x) AS d, var_pop(i) AS v, count(l) AS c FROM events GROUP BY k",
    "SELECT k, i, max(n) AS m FROM events WHERE l > 1 GROUP BY k, i HAVING count(*) > 1",
    "SELECT i, max(l) AS m FROM events GROUP BY i HAVING max(l) < 3",
    "SELECT k, 100 / count(l) AS share FROM events GROUP BY k HAVING count(l) > 0",
    "SELECT count(*) AS n, min(t) AS first, max(w) AS w FROM events",
    "SELECT x, count(*) AS n FROM events GROUP BY x",
    "SELECT x, k, max(i) AS m FROM events GROUP BY x, k",
    "SELECT n, t, count(*) AS c FROM events GROUP BY n, t",
    "SELECT k, count(*) + 1 AS next, upper(k) AS big, sum(r) AS s FROM events GROUP BY k",
    "SELECT k, count(DISTINCT i) AS d FROM events GROUP BY k",
    "SELECT k, sum(w) AS s FROM events GROUP BY k",
    "SELECT k, i, sum(l) AS s FROM events GROUP BY ROLLUP (k, i)",
)
_NUMBERS = (0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), None)
_TIMES = (dt.datetime(2020, 1, 1), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59), None)


def rows_at_random(chance: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "k": chance.choice(["a", "b", "", "ß", None, str(chance.randrange(50))]),
            "i": chance.choice([0, 1, 2, -3, None]),
            "l": chance.choice([None, 1, 2, 3, 2**40]),
            "n": chance.choice([None, Decimal("1.10"), Decimal("-2.25")]),
            "w": chance.choice([None, Decimal("0.0000000001"), Decimal(10**20)]),
            "x": chance.choice(_NUMBERS),
            "r": chance.choice([None, 0.5, 3.0]),
            "t": chance.choice(_TIMES),
        }
        for _ in range(count)
    ]


class Twins(Watched):
    """The same view twice, of which one is watched."""

    def __init__(self, folder: Path, text: str) -> None:
        super().__init__(folder, text, text)
        self.history = self.watch()

    def shown(self) -> Counter[tuple[Any, ...]]:
        """NaN is made equal to itself."""
        return Counter(map(_comparable, self.fed.rows()))

    def state(self, number: int) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        with self.database.cursor() as cursor:
            for table in self.targets[number].state.tables:
                found.update(map(_comparable, cursor.execute(f"SELECT * FROM {qualified(table)}").fetchall()))
        return found

    def told(self) -> list[tuple[str, tuple[Any, ...]]]:
        return taken(self.history)


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(repr(value) if isinstance(value, float) else value for value in row)


def taken(watch: HistoryReader) -> list[tuple[str, tuple[Any, ...]]]:
    found = []
    while watch.wait(0.0):
        for epoch in watch.take():
            for row in epoch.rows.to_pylist():
                kind = row.pop("mv_op")
                found.append((kind, _comparable(tuple(row.values()))))
    return found


def check(told: list[tuple[str, Any]], before: Counter[Any], after: Counter[Any]) -> None:
    """Two groups may show equal rows, and exchange them."""
    copy = Counter(before)
    for at, (kind, row) in enumerate(told):
        copy[row] += 1 if kind[0] == "+" else -1
        following = told[at + 1] if at + 1 < len(told) else ("", ())
        assert (kind == "-U") == (following[0] == "+U"), "a pair stands side by side"
        assert kind != "-U" or row != following[1], "no change"
    assert copy == after


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Any]:
    found: list[Twins] = []

    def make(text: str) -> Twins:
        found.append(Twins(tmp_path / str(len(found)), text))
        return found[-1]

    yield make
    for each in found:
        each.close()


@pytest.mark.parametrize("text", TOLD)
def test_what_is_told_is_what_the_view_shows(made: Any, text: str) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    assert logged_view(target(text)).groups is not None, "another way would be taken"
    _compare(made(text), random.Random(seed), 12)


@pytest.mark.night
@pytest.mark.parametrize("text", TOLD)
def test_what_is_told_is_what_the_view_shows_for_longer(made: Any, text: str) -> None:
    for _ in range(20):
        seed = random.SystemRandom().randrange(2**32)
        print("seed", seed)
        _compare(made(text), random.Random(seed), 30)


def _compare(twins: Twins, chance: random.Random, batches: int) -> None:
    before = twins.shown()
    for batch in range(batches):
        twins.fed.feed(rows_at_random(chance, chance.choice([1, 3, 40, 300])), partial=batch % 2 == 1)
        after = twins.shown()
        check(twins.told(), before, after)
        assert twins.state(0) == twins.state(1)
        before = after


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, array_agg(i) AS all FROM events GROUP BY k",  # of more than its state's row
        "SELECT k, l FROM events",
    ],
)
def test_others_are_read_before_and_behind(text: str) -> None:
    assert logged_view(target(text)).groups is None


def test_a_commit_that_is_rolled_back_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is the first one, or the next, by whose names rows were told."""
    twins = Twins(tmp_path, TOLD[1])
    try:
        for turn in range(3):
            before = twins.shown()
            rows = [{"k": f"k{turn}", "i": turn, "l": 1}, {"k": "a", "i": 5, "l": 1}]
            twins.fed.prepare(rows)
            with monkeypatch.context() as patched:

                def fail(*_: Any) -> None:
                    raise ConnectionError("it breaks")

                patched.setattr(twins.writer.ledger, "advance", fail)
                with pytest.raises(ConnectionError):
                    twins.fed.commit()
            assert twins.shown() == before
            assert twins.told() == []
            twins.fed._batch -= 1
            twins.fed.commit()
            check(twins.told(), before, twins.shown())
            assert twins.state(0) == twins.state(1)
    finally:
        twins.close()


def test_a_merge_that_fails_names_its_view(tmp_path: Path) -> None:
    twins = Twins(tmp_path, "SELECT k, sum(w) AS s FROM events GROUP BY k")
    try:
        twins.fed.feed([{"k": "a", "w": Decimal(9 * 10**27)}])
        twins.told()
        before = twins.shown()
        with pytest.raises(MergeError) as failed:
            twins.fed.feed([{"k": "a", "w": Decimal(2 * 10**27)}])
        assert failed.value.query_id == twins.targets[0].query_id
        assert twins.shown() == before
        assert twins.told() == []
    finally:
        twins.close()


def test_one_transaction_that_merges_a_view_twice(tmp_path: Path) -> None:
    """The second merge finds the rows of the first by their places, though they are not committed."""
    twins = Twins(tmp_path, TOLD[0])
    try:
        twins.fed.feed([{"k": "old", "i": 1}])
        twins.told()
        before = twins.shown()
        writer: Writer = twins.writer
        merges = []
        for rows in ([{"k": "new", "i": 1}, {"k": "old", "i": 2}], [{"k": "new", "i": 5}], [{"k": "old", "i": 7}]):
            twins.fed.prepare(rows)
            merges += twins.fed._prepared[0]
        twins.fed._prepared = tuple(merges), 4
        twins.fed.commit()
        copy = Counter(before)
        for kind, row in twins.told():
            copy[row] += 1 if kind[0] == "+" else -1
        assert +copy == twins.shown()
        assert twins.state(0) == twins.state(1)
        assert writer.histories.open_ones
    finally:
        twins.close()
