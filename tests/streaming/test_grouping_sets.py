"""GROUPING SETS, ROLLUP and CUBE: batches merge to what PostgreSQL gives for all rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.streaming.oracle import equal, postgresql, random_row
from tests.streaming.states import Fed, target, writer_in

BOTH = pytest.mark.parametrize("partial", [False, True], ids=["rows", "partials"])
AGGREGATES = "count(*) AS n, sum(l) AS s, avg(n) AS a, max(t) AS m, stddev(x) AS d, count(DISTINCT i) AS c"
CLAUSES = [
    "ROLLUP (k, i)",
    "CUBE (k, i)",
    "GROUPING SETS ((k, i), (k), ())",
    "GROUPING SETS ((k), (k), ROLLUP (i))",
    "k, ROLLUP (i)",
    "ROLLUP ((k, i), k), GROUPING SETS (i, ())",
]


@pytest.mark.postgres
@BOTH
@pytest.mark.parametrize("clause", CLAUSES)
def test_postgresql_agrees_on_sets(postgres_server: Any, tmp_path: Path, partial: bool, clause: str) -> None:
    rng = random.Random(f"{clause} {partial}")
    rows = [random_row(rng) for _ in range(120)]
    sql = (
        f"SELECT k, i, grouping(k) AS gk, grouping(k, i) * 10 AS g, coalesce(k, 'all') AS label, {AGGREGATES} "
        f"FROM events GROUP BY {clause} HAVING count(*) > 1 OR grouping(i) = 1"
    )
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        _same(views, postgresql(postgres_server, [], sql))  # the total of nothing is a row
        start = 0
        while start < len(rows):
            size = rng.choice((1, 3, 40))
            views.feed(rows[start : start + size], partial=partial)
            start += size
        _same(views, postgresql(postgres_server, rows, sql))


def _same(views: Fed, expected: list[tuple[Any, ...]]) -> None:
    def order(row: tuple[Any, ...]) -> list[tuple[bool, str]]:
        return [(value is None, str(value)) for value in row[:6]]

    found = sorted(views.rows(), key=order)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, sorted(expected, key=order), strict=True):
        assert all(equal(a, b) for a, b in zip(ours, theirs, strict=True)), (ours, theirs)


@BOTH
def test_a_null_of_the_data_is_not_the_null_of_a_total(tmp_path: Path, partial: bool) -> None:
    with writer_in(tmp_path) as (database, writer):
        views = Fed(
            database, writer, target("SELECT k, grouping(k) AS g, count(*) AS n FROM events GROUP BY ROLLUP (k)")
        )
        assert views.rows() == [(None, 1, 0)]
        for _ in range(2):
            views.feed([{"k": None}, {"k": "a"}, {"k": None}], partial=partial)
        assert views.rows() == [(None, 0, 4), (None, 1, 6), ("a", 0, 2)]


def test_an_empty_set_alone_is_one_row(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target("SELECT count(*) AS n, sum(i) AS s FROM events GROUP BY ()"))
        assert views.rows() == [(0, None)]
        views.feed([{"i": 2}, {"i": 3}])
        assert views.rows() == [(2, 5)]
