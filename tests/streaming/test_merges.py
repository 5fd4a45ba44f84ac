"""State tables: batches in both shapes merge to what one query over all rows gives."""

from __future__ import annotations

import math
import random
import statistics
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from spark_sinks.duckdb.state.state import average_exact
from spark_sinks.duckdb.writer import MergeError
from tests.streaming.states import Fed, target, writer_in

BOTH = pytest.mark.parametrize("partial", [False, True], ids=["rows", "partials"])
D = Decimal


@BOTH
def test_counts_sums_and_extremes_merge_over_batches(tmp_path: Path, partial: bool) -> None:
    sql = "SELECT k, count(*), count(i) AS c, sum(i) AS s, min(i) AS l, max(i) AS h, sum(n) AS n FROM events GROUP BY k"
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        views.feed(
            [{"k": "a", "i": 1, "n": D("1.10")}, {"k": "a", "i": 5, "n": D("2.20")}, {"k": "b"}], partial=partial
        )
        views.feed([{"k": "a", "i": -3}, {"k": "a"}, {"k": "c", "i": 2, "n": D("-1")}], partial=partial)
        assert views.rows() == [
            ("a", 4, 3, 3, -3, 5, D("3.30")),
            ("b", 1, 0, None, None, None, None),
            ("c", 1, 1, 2, 2, 2, D("-1.00")),
        ]


@BOTH
def test_null_keys_are_values_like_any_other(tmp_path: Path, partial: bool) -> None:
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target("SELECT k, i, count(*), sum(l) AS s FROM events GROUP BY k, i"))
        batch = [
            {"k": "a", "i": 1, "l": 1},
            {"k": None, "i": 1, "l": 2},
            {"k": "a", "i": None, "l": 3},
            {"k": None, "i": None, "l": 4},
            {"k": None, "i": None, "l": 5},
        ]
        for _ in range(3):
            views.feed(batch, partial=partial)
        views.feed([{"k": "a", "i": 1, "l": 10}], partial=partial)  # no NULL in this one
        assert views.rows() == [
            (None, None, 6, 27),
            (None, 1, 3, 6),
            ("a", None, 3, 9),
            ("a", 1, 4, 13),
        ]


@BOTH
def test_a_keyless_aggregate_has_one_row_from_the_start(tmp_path: Path, partial: bool) -> None:
    with writer_in(tmp_path) as (database, writer):
        views = Fed(
            database,
            writer,
            target("SELECT count(*), count(i) AS c, sum(i) AS s, avg(x) AS a, stddev(x) AS d FROM events"),
        )
        assert views.rows() == [(0, 0, None, None, None)]
        views.feed([{"i": 4}], partial=partial)
        assert views.rows() == [(1, 1, 4, None, None)]
        views.feed([{"x": 1.0}, {"x": 2.0}, {"i": 1}], partial=partial)
        assert views.rows() == [(4, 2, 5, 1.5, pytest.approx(math.sqrt(0.5)))]


@BOTH
def test_moments_merge_without_cancellation(tmp_path: Path, partial: bool) -> None:
    rng = random.Random(5)
    values = [1e9 + rng.uniform(-1, 1) for _ in range(400)]
    sql = "SELECT k, var_pop(x) AS vp, variance(x) AS vs, stddev_pop(x) AS dp, stddev(x) AS ds FROM events GROUP BY k"
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        at = 0
        for size in (1, 7, 92, 300):
            views.feed([{"k": "a", "x": value} for value in values[at : at + size]] + [{"k": "one"}], partial=partial)
            at += size
        views.feed([{"k": "one", "x": 3.0}], partial=partial)
        (a, one) = views.rows()
    expected = [f(values) for f in (statistics.pvariance, statistics.variance, statistics.pstdev, statistics.stdev)]
    assert a[1:] == tuple(pytest.approx(value, rel=1e-6) for value in expected)
    assert one == ("one", 0.0, None, 0.0, None)


@BOTH
def test_not_a_number_and_infinities_survive_any_order(tmp_path: Path, partial: bool) -> None:
    inf, nan = math.inf, math.nan
    sql = "SELECT k, sum(x) AS s, min(x) AS lo, max(x) AS hi FROM events GROUP BY k"
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        for value in (1.0, inf, nan, -inf):
            views.feed(
                [{"k": "all", "x": value}, {"k": "up", "x": abs(value) if value != nan else 1.0}], partial=partial
            )
        views.feed([{"k": "down", "x": -inf}, {"k": "down", "x": 5.0}], partial=partial)
        found = {row[0]: row[1:] for row in views.rows()}
    assert math.isnan(found["all"][0])
    assert found["all"][1] == -inf
    assert math.isnan(found["all"][2])  # as PostgreSQL: greater than any number
    assert found["down"] == (-inf, -inf, 5.0)


@BOTH
def test_averages_are_exact(tmp_path: Path, partial: bool) -> None:
    sql = "SELECT k, avg(i) AS ai, avg(l) AS al, avg(n) AS an, avg(w) AS aw FROM events GROUP BY k"
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        big = 2**62
        views.feed(
            [{"k": "a", "i": 1, "l": big, "n": D("0.01"), "w": D("1e20")}, {"k": "a", "i": 2, "l": big + 1}],
            partial=partial,
        )
        views.feed(
            [
                {"k": "a", "i": 2, "l": big, "n": D("0.02"), "w": D("0.0000000001")},
                {"k": "b", "i": -1},
                {"k": "b", "i": 0},
                {"k": "b", "i": 0},
            ],
            partial=partial,
        )
        a, b = views.rows()
    assert a == ("a", D("1.666667"), D(big) + D("0.333333"), D("0.015000"), D("50000000000000000000.00000000005000"))
    assert b == ("b", D("-0.333333"), None, None, None)


@pytest.mark.parametrize(("scale", "result"), [(0, 6), (2, 6), (5, 9), (10, 14), (17, 21), (30, 34)])
def test_average_exact_is_the_decimal_quotient_rounded_half_up(scale: int, result: int) -> None:
    rng = random.Random(scale)
    context = Context(prec=200)
    connection = duckdb.connect()
    wrong = []
    for _ in range(200):
        count = rng.choice((1, 2, 3, 7, 8, 64, rng.randint(1, 10**6)))
        # What the result can hold: DECIMAL(38, result).
        digits = rng.randint(1, 38 - (result - scale))
        unscaled = rng.choice((-1, 1)) * rng.randint(0, 10**digits - 1)
        total = D(unscaled).scaleb(-scale, context)
        expected = context.divide(total, D(count)).quantize(D(1).scaleb(-result), ROUND_HALF_UP, context)
        text = average_exact("s", scale, "n", result)
        query = f"SELECT {text} FROM (SELECT '{total:f}'::DECIMAL(38, {scale}) AS s, {count}::BIGINT AS n)"
        (found,) = connection.execute(query).fetchall()[0]
        if found != expected:
            wrong.append((total, count, found, expected))
    assert wrong == []
    none = average_exact("s", scale, "n", result)
    assert connection.execute(
        f"SELECT {none} FROM (SELECT NULL::DECIMAL(38, {scale}) AS s, 0::BIGINT AS n)"
    ).fetchall() == [(None,)]


@BOTH
def test_overflow_is_an_error_that_names_the_query_and_leaves_all_as_it_was(tmp_path: Path, partial: bool) -> None:
    overflowing = target("SELECT k, sum(w) AS s FROM events GROUP BY k", 1)
    sibling = target("SELECT k, count(*) FROM events GROUP BY k", 2)
    most = D("9" * 28)  # of DECIMAL(38, 10)
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, sibling, overflowing)
        views.feed([{"k": "a", "w": most}], partial=partial)
        with pytest.raises(MergeError) as caught:
            views.feed([{"k": "a", "w": most}], partial=partial)
        assert caught.value.query_id == "q1"
        assert caught.value.error.sqlstate == "22003"
        assert views.rows(0) == [("a", 1)]
        assert views.rows(1) == [("a", most)]
        assert writer.pipeline_position("p") == {"at": 1}


@BOTH
def test_finishing_in_duckdb(tmp_path: Path, partial: bool) -> None:
    sql = (
        "SELECT k, round(sum(i) * 1.0 / count(*), 2) AS a, sum(i) / count(*) AS q, "
        "CASE WHEN count(*) > 2 THEN 'many' END AS c, coalesce(sum(n), 0) AS z, "
        "max(i) - min(i) AS spread, count(*) FILTER (WHERE i > 0) AS f "
        "FROM events GROUP BY k HAVING count(*) > 1 AND max(i) IS NOT NULL"
    )
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        views.feed([{"k": "a", "i": -5}, {"k": "a", "i": 2}, {"k": "b", "i": 9}], partial=partial)
        assert views.rows() == [("a", D("-1.50"), -1, None, D("0.00"), 7, 1)]
        views.feed([{"k": "a", "i": -4}, {"k": "b", "i": 0, "n": D("2.5")}], partial=partial)
        assert views.rows() == [
            ("a", D("-2.33"), -2, "many", D("0.00"), 7, 1),
            ("b", D("4.50"), 4, None, D("2.50"), 9, 1),
        ]


def test_two_views_share_one_batch_and_hidden_keys_still_group(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (database, writer):
        views = Fed(
            database,
            writer,
            target("SELECT count(*) FROM events GROUP BY k", 1),
            target("SELECT max(t) AS t FROM events", 2),
        )
        views.feed([{"k": "a"}, {"k": "b"}, {"k": "a"}])
        assert views.rows(0) == [(1,), (2,)]
        assert views.rows(1) == [(None,)]


def test_equal_measures_are_kept_once() -> None:
    state: Any = target(
        "SELECT k, avg(i) AS a, sum(i) AS s, count(i) AS c, avg(i) + 1 AS b FROM events GROUP BY k"
    ).state
    assert [(m.kind.value, m.type) for m in state.measures] == [
        ("sum", "DECIMAL(38, 0)"),
        ("count", "BIGINT"),
        ("sum", "BIGINT"),
    ]
