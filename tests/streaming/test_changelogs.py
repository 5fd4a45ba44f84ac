"""Views over a changelog: rows are replaced and deleted by key, and what they gave to groups is taken back exactly."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from spark_sinks.duckdb.state.state import main_table
from tests.streaming.changelog_states import Changes, target

D = Decimal
NOON = dt.datetime(2024, 5, 17, 12)
BEFORE_1970 = dt.datetime(1969, 12, 31, 23, 59, 30, 500_000)
SEED = int(os.environ.get("MVSERVER_TEST_SEED", "20261121"))


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Any]:
    opened: list[Changes] = []

    def make(*sqls: str, **more: Any) -> Changes:
        opened.append(Changes(tmp_path, *(target(sql, number, **more) for number, sql in enumerate(sqls))))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def test_rows_are_replaced_deleted_and_filtered_by_their_key(fed: Any) -> None:
    views = fed("SELECT id, k, i + 1 AS j FROM rows WHERE i > 3", "SELECT k FROM rows")
    views.feed([{"id": 1, "k": "a", "i": 9}, {"id": 2, "k": "b", "i": 2}, {"id": 3, "k": "c", "i": 7}])
    assert views.rows() == [(1, "a", 10), (3, "c", 8)]
    views.feed(
        [{"id": 1, "k": "a", "i": 0}, {"id": 2, "k": "b", "i": 8}, {"id": 3, "gone": True}, {"id": 9, "gone": True}]
    )
    assert views.rows() == [(2, "b", 9)]
    assert views.rows(1) == [("a",), ("b",)]
    views.feed([{"id": 3, "k": "d", "i": 5}])
    assert views.rows() == [(2, "b", 9), (3, "d", 6)]


def test_the_last_record_of_a_batch_counts(fed: Any) -> None:
    views = fed("SELECT id, k FROM rows", "SELECT count(*) AS n FROM rows")
    views.feed(
        [
            {"id": 1, "k": "a"},
            {"id": 1, "gone": True},
            {"id": 1, "k": "b"},
            {"id": 2, "k": "x"},
            {"id": 2, "gone": True},
        ]
    )
    assert views.rows() == [(1, "b")]
    assert views.rows(1) == [(1,)]


def test_a_minus_zero_stays_one_also_in_arrays_and_structures(fed: Any) -> None:
    lasts = "SELECT k, last_value(x) AS l FROM rows GROUP BY k"
    views = fed("SELECT id, ARRAY[x, 1.0] AS a FROM rows", "SELECT id FROM rows", lasts)
    for x in (-0.0, 2.5, -0.0):  # the row comes, and is replaced
        views.feed([{"id": 1, "k": "a", "x": x, "t": NOON}])
        assert str(views.rows()) == f"[(1, [{x}, 1.0])]"
        assert str(views.rows(2)) == f"[('a', {x})]"
    assert views.rows(1) == [(1,)]


def test_event_times_do_not_change_which_record_is_the_last(fed: Any) -> None:
    views = fed("SELECT id, k FROM rows")
    views.feed([{"id": 1, "k": "new", "t": NOON}])
    views.feed([{"id": 1, "k": "late", "t": NOON - dt.timedelta(days=1)}])
    assert views.rows() == [(1, "late")]


def test_groups_lose_what_left_them_and_go_when_they_are_empty(fed: Any) -> None:
    views = fed("SELECT k, count(*) AS c, sum(i) AS s, avg(n) AS a, count(i) AS ci FROM rows GROUP BY k")
    views.feed(
        [{"id": 1, "k": "a", "i": 5, "n": D("1.50")}, {"id": 2, "k": "a", "i": 7, "n": D("2.00")}, {"id": 3, "k": None}]
    )
    assert views.rows() == [(None, 1, None, None, 0), ("a", 2, 12, D("1.750000"), 2)]
    views.feed([{"id": 1, "k": "b", "i": 6, "n": D("1.00")}, {"id": 2, "k": "a"}, {"id": 3, "gone": True}])
    assert views.rows() == [("a", 1, None, None, 0), ("b", 1, 6, D("1.000000"), 1)]
    views.feed([{"id": 2, "gone": True}])
    assert views.rows() == [("b", 1, 6, D("1.000000"), 1)]
    assert views.select(f'SELECT count(*) FROM "_state"."{views._targets[0].state.table}"') == [(1,)]


def test_the_whole_is_one_row_also_when_all_is_gone(fed: Any) -> None:
    views = fed(
        "SELECT count(*) AS c, sum(i) AS s FROM rows",
        "SELECT max(i) AS m, count(DISTINCT k) AS d, stddev(i) AS v FROM rows",
    )
    assert (views.rows(), views.rows(1)) == ([(0, None)], [(None, 0, None)])
    views.feed([{"id": 1, "k": "a", "i": 5}, {"id": 2, "k": "a", "i": 9}])
    assert (views.rows(), views.rows(1)) == ([(2, 14)], [(9, 1, pytest.approx(math.sqrt(8)))])
    views.feed([{"id": 2, "k": "b", "i": 4}])
    assert (views.rows(), views.rows(1)) == ([(2, 9)], [(5, 2, pytest.approx(math.sqrt(0.5)))])
    views.feed([{"id": 1, "gone": True}, {"id": 2, "gone": True}])
    assert (views.rows(), views.rows(1)) == ([(0, None)], [(None, 0, None)])


def test_doubles_leave_no_trace(fed: Any) -> None:
    """Subtracting 1e300, NaN or an infinity would not give back what was there."""
    views = fed("SELECT k, sum(x) AS s, avg(x) AS a, max(x) AS m FROM rows GROUP BY k")
    views.feed([{"id": 1, "k": "a", "x": 0.1}, {"id": 2, "k": "a", "x": 0.2}])
    before = views.rows()
    for odd in (1e300, math.nan, math.inf, -math.inf):
        views.feed([{"id": 3, "k": "a", "x": odd}])
        assert views.rows() != before
        views.feed([{"id": 3, "gone": True}])
        assert views.rows() == before


def test_having_hides_and_shows_a_group(fed: Any) -> None:
    views = fed("SELECT k, count(*) AS c FROM rows GROUP BY k HAVING count(*) > 1")
    views.feed([{"id": 1, "k": "a"}, {"id": 2, "k": "a"}])
    assert views.rows() == [("a", 2)]
    views.feed([{"id": 2, "k": "b"}])
    assert views.rows() == []
    views.feed([{"id": 1, "k": "b"}])
    assert views.rows() == [("b", 2)]


def test_distinct_is_a_group_by_all_columns(fed: Any) -> None:
    views = fed("SELECT DISTINCT k FROM rows")
    views.feed([{"id": 1, "k": "a"}, {"id": 2, "k": "a"}, {"id": 3, "k": "b"}])
    views.feed([{"id": 1, "gone": True}, {"id": 3, "gone": True}])
    assert views.rows() == [("a",)]


def test_a_key_of_several_columns(fed: Any) -> None:
    views = fed("SELECT id, k, i FROM rows", "SELECT id, sum(i) AS s FROM rows GROUP BY id", key=("k", "id"))
    views.feed([{"id": 1, "k": "a", "i": 1}, {"id": 1, "k": "b", "i": 2}, {"id": 2, "k": "a", "i": 4}])
    views.feed([{"id": 1, "k": "b", "i": 8}, {"id": 2, "k": "a", "gone": True}])
    assert views.rows() == [(1, "a", 1), (1, "b", 8)]
    assert views.rows(1) == [(1, 9)]


# --- random changes against one query over what is left -------------------------------------------------------------
_QUERIES = {
    "SELECT id, k, i, n FROM rows WHERE i > 2": "SELECT id, k, i, n FROM rows_now WHERE i > 2",
    "SELECT k, count(*) AS c, sum(i) AS s, sum(l) AS sl, avg(n) AS a FROM rows WHERE l < 6 GROUP BY k": (
        "SELECT k, count(*), sum(i), sum(l), CAST(sum(n) / count(n) AS DECIMAL(38, 6)) FROM rows_now "
        "WHERE l < 6 GROUP BY k"
    ),
    "SELECT k, l, count(i) FILTER (WHERE n > 1) AS c, sum(n) FILTER (WHERE i > 1) AS s FROM rows GROUP BY k, l": (
        "SELECT k, l, count(i) FILTER (n > 1), sum(n) FILTER (i > 1) FROM rows_now GROUP BY k, l"
    ),
    "SELECT k, min(i) AS a, max(n) AS b, count(DISTINCT i) AS d, sum(DISTINCT l) AS e, bool_or(i > 3) AS o "
    "FROM rows GROUP BY k": (
        "SELECT k, min(i), max(n), count(DISTINCT i), sum(DISTINCT l), bool_or(i > 3) FROM rows_now GROUP BY k"
    ),
    "SELECT l, sum(x) AS s, stddev(x) AS d, var_pop(i) AS v, avg(DISTINCT x) AS a FROM rows GROUP BY l": (
        "SELECT l, sum(x), stddev(x), var_pop(i), avg(DISTINCT x) FROM rows_now GROUP BY l"
    ),
    "SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY i) AS p, "
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY x) AS q, count(*) AS c FROM rows GROUP BY k": (
        "SELECT k, quantile_disc(i, 0.5), quantile_cont(x, 0.25), count(*) FROM rows_now GROUP BY k"
    ),
    "SELECT k, string_agg(k, '+') AS a, string_agg(DISTINCT k, '-') AS b, mode() WITHIN GROUP (ORDER BY l) AS m "
    "FROM rows WHERE k IS NOT NULL AND t IS NOT NULL GROUP BY k": (
        "SELECT k, string_agg(k, '+'), string_agg(DISTINCT k, '-'), (SELECT min(l) FROM (SELECT l, count(*) AS c, "
        "max(count(*)) OVER () AS peak FROM rows_now AS o WHERE o.k = r.k AND t IS NOT NULL AND l IS NOT NULL "
        "GROUP BY l) WHERE c = peak) FROM rows_now AS r WHERE k IS NOT NULL AND t IS NOT NULL GROUP BY k"
    ),
    "SELECT k, array_agg(i) AS a, array_agg(DISTINCT l) AS b, topk(l, 3) AS c FROM rows WHERE t IS NOT NULL "
    "GROUP BY k": (
        "SELECT k, list(i ORDER BY t, i NULLS LAST), list_sort(list(DISTINCT l)), "
        "max(l, 3) FROM rows_now WHERE t IS NOT NULL GROUP BY k"
    ),
    "SELECT k, bottomk(i, 2) AS a, bottomkdistinct(l, 2) AS b, topkdistinct(i, 2) AS c, array_agg(i, 2) AS d, "
    "array_agg(DISTINCT l, 2) AS e FROM rows WHERE t IS NOT NULL GROUP BY k": (
        "SELECT k, min(i, 2), list_sort(list(DISTINCT l) FILTER (l IS NOT NULL))[1:2], "
        "list_reverse_sort(list(DISTINCT i) FILTER (i IS NOT NULL))[1:2], "
        "list(i ORDER BY t, i NULLS LAST)[1:2], list_sort(list(DISTINCT l), 'ASC', 'NULLS LAST')[1:2] "
        "FROM rows_now WHERE t IS NOT NULL GROUP BY k"
    ),
    "SELECT k, most_frequent(i, 2) AS a, least_frequent(l, 2) AS b FROM rows GROUP BY k": (
        "SELECT k, (SELECT list(i ORDER BY c DESC, i)[1:2] FROM (SELECT i, count(*) AS c FROM rows_now AS o "
        "WHERE o.k IS NOT DISTINCT FROM r.k AND i IS NOT NULL GROUP BY i)), "
        "(SELECT list(l ORDER BY c, l)[1:2] FROM (SELECT l, count(*) AS c FROM rows_now AS o "
        "WHERE o.k IS NOT DISTINCT FROM r.k AND l IS NOT NULL GROUP BY l)) FROM rows_now AS r GROUP BY k"
    ),
    "SELECT count(*) AS c, sum(i) AS s, max(l) AS m FROM rows": "SELECT count(*), sum(i), max(l) FROM rows_now",
    "SELECT k, l, grouping(k, l) AS g, count(*) AS c, sum(i) AS s, avg(n) AS a FROM rows GROUP BY CUBE (k, l)": (
        "SELECT k, l, grouping(k, l), count(*), sum(i), CAST(sum(n) / count(n) AS DECIMAL(38, 6)) FROM rows_now "
        "GROUP BY CUBE (k, l)"
    ),
    "SELECT k, l, max(i) AS a, count(DISTINCT i) AS d, stddev(x) AS v, string_agg(DISTINCT k, '-') AS t FROM rows "
    "GROUP BY GROUPING SETS ((k), (k), ROLLUP (l)) HAVING count(*) > 1 OR grouping(k) = 1": (
        "SELECT k, l, max(i), count(DISTINCT i), stddev(x), string_agg(DISTINCT k, '-' ORDER BY k) FROM rows_now "
        "GROUP BY GROUPING SETS ((k), (k), (l), ()) HAVING count(*) > 1 OR grouping(k) = 1"
    ),
    "SELECT k, sum(x) AS s, percentile_disc(0.5) WITHIN GROUP (ORDER BY i) AS p FROM rows GROUP BY k, ROLLUP (l)": (
        "SELECT k, sum(x), quantile_disc(i, 0.5) FROM rows_now GROUP BY GROUPING SETS ((k), (k, l))"
    ),
    "SELECT count(*) AS c, sum(i) AS s, max(l) AS m FROM rows GROUP BY ()": (
        "SELECT count(*), sum(i), max(l) FROM rows_now"
    ),
    "SELECT k, last_value(i) AS a, first_value(l) AS b FROM rows GROUP BY k": (
        "SELECT k, max(struct_pack(t := t, v := i)) FILTER (t IS NOT NULL AND i IS NOT NULL).v, "
        "min(struct_pack(t := t, v := l)) FILTER (t IS NOT NULL AND l IS NOT NULL).v FROM rows_now GROUP BY k"
    ),
}


def _records(rng: random.Random, count: int) -> list[dict[str, Any]]:
    def some(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    return [
        {"id": rng.randrange(60), "gone": True}
        if rng.random() < 0.25
        else {
            "id": rng.randrange(60),
            "k": some(rng.choice(("a", "é", "😀", ""))),
            "i": some(rng.randrange(6)),
            "l": some(rng.randrange(8)),
            "n": some(D(rng.randrange(400)) / 100),
            "x": some(rng.choice([0.5, 1.25, -3.0, 1e6, 0.1])),
            "t": some(rng.choice((NOON, BEFORE_1970)) + dt.timedelta(seconds=rng.randrange(50))),
        }
        for _ in range(count)
    ]


def _current(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for record in records:
        rows.pop(record["id"], None)
        if not record.get("gone"):
            rows[record["id"]] = record
    return list(rows.values())


def _rounded(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    found = [tuple(round(v, 6) + 0.0 if isinstance(v, float) else v for v in row) for row in rows]
    return sorted(found, key=repr)


@pytest.mark.parametrize("round_", [0, *(pytest.param(number, marks=pytest.mark.night) for number in range(1, 20))])
def test_random_changes_in_random_batches_over_crashes(fed: Any, round_: int) -> None:
    seed = SEED + round_
    print(f"seed {seed} (MVSERVER_TEST_SEED)")
    rng = random.Random(seed)
    views = fed(*_QUERIES)
    records: list[dict[str, Any]] = []
    for size in rng.sample([1, 5, 20, 60], 4):
        batch = _records(rng, size)
        records += batch
        views.feed(batch)
        if rng.random() < 0.3:
            views.crash()
        for number, (sql, oracle) in enumerate(_QUERIES.items()):
            assert _rounded(views.rows(number)) == _rounded(views.oracle(oracle, _current(records))), sql


@pytest.mark.parametrize("clause", ["ROLLUP (k)", "CUBE (k, l)", "()", "GROUPING SETS ((), (k), ())"])
def test_a_total_is_there_when_all_is_gone(fed: Any, clause: str) -> None:
    views = fed(
        f"SELECT count(*) AS c, sum(i) AS s FROM rows GROUP BY {clause}",
        f"SELECT max(i) AS m FROM rows GROUP BY {clause}",
    )
    totals = clause.count("()") or 1
    for _ in range(2):
        assert (views.rows(), views.rows(1)) == ([(0, None)] * totals, [(None,)] * totals)
        views.feed([{"id": 1, "k": "a", "i": 5}, {"id": 2, "k": None, "i": 9}])
        assert (2, 14) in views.rows()
        assert (9,) in views.rows(1)
        views.feed([{"id": 1, "gone": True}, {"id": 2, "gone": True}])
        views.crash()


# --- approximate aggregates: what they keep is counted, and so taken back --------------------------------------------
def test_a_sketch_over_a_changelog_is_as_near_as_one_that_saw_only_what_is_left(fed: Any) -> None:
    rng = random.Random(SEED)
    views = fed(
        "SELECT approx_count_distinct(l) AS d, approx_percentile(x, 0.5) AS p FROM rows",
        "SELECT k, approx_count_distinct(l) AS d, count(DISTINCT l) AS e FROM rows GROUP BY ROLLUP (k)",
    )
    rows: dict[int, dict[str, Any]] = {}
    for size in (6_000, 3_000, 9_000):
        batch = []
        for _ in range(size):
            key = rng.randrange(8_000)
            row = {"id": key, "k": rng.choice("ab"), "l": rng.randrange(6_000), "x": rng.lognormvariate(0, 3)}
            batch.append({"id": key, "gone": True} if rng.random() < 0.3 else row)
            rows.pop(key, None)
            if not batch[-1].get("gone"):
                rows[key] = row
        views.feed(batch)
        exact = len({row["l"] for row in rows.values()})
        xs = sorted(row["x"] for row in rows.values())
        ((distinct, median),) = views.rows()
        assert distinct == pytest.approx(exact, rel=0.05)
        assert median == pytest.approx(xs[math.ceil(len(xs) / 2) - 1], rel=0.0101)
        assert all(d == pytest.approx(e, rel=0.05) for _, d, e in views.rows(1))
    views.feed([{"id": key, "gone": True} for key in list(rows)[3:]])
    left = list(rows.values())[:3]
    assert views.rows()[0][0] == len({row["l"] for row in left}), "of a few values it is exact"
    views.feed([{"id": row["id"], "gone": True} for row in left])
    assert views.rows() == [(0, None)]
    assert views.rows(1) == [(None, 0, 0)]


def test_all_tables_of_a_state_belong_to_it() -> None:
    state = target("SELECT k, string_agg(k, ',') AS s FROM rows GROUP BY k").state
    assert {main_table(table) for table in state.tables} == {state.table}
