"""Aggregates that keep values beside the state, or order by event time: batches in both shapes merge to what one query
over all rows gives, in PostgreSQL where it has the aggregate."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mvserver.streaming.batch.program import build_program
from mvserver.views.finishing import layout_of
from spark_sinks.duckdb.state.state import UpsertState, main_table
from spark_sinks.duckdb.writer import MergeError
from tests.streaming.oracle import NOON, at, equal, postgresql, random_row
from tests.streaming.states import Fed, target, writer_in

BOTH = pytest.mark.parametrize("partial", [False, True], ids=["rows", "partials"])
D = Decimal


@BOTH
def test_booleans(tmp_path: Path, partial: bool) -> None:
    sql = (
        "SELECT k, bool_and(i > 0) AS a, bool_or(i > 0) AS o, every(i > 0) FILTER (WHERE l = 1) AS e, "
        "bool_or(DISTINCT i > 2) AS d FROM events GROUP BY k"
    )
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        views.feed([{"k": "a", "i": 1, "l": 1}, {"k": "a", "i": 3}, {"k": "b", "i": -1}, {"k": "c"}], partial=partial)
        assert views.rows() == [
            ("a", True, True, True, True), ("b", False, False, None, False), ("c", None, None, None, None),
        ]  # fmt: skip
        views.feed([{"k": "a", "i": -1, "l": 1}, {"k": "b", "i": 5}, {"k": "c", "i": 1}, {"k": "a"}], partial=partial)
        assert views.rows() == [
            ("a", False, True, False, True), ("b", False, True, None, True), ("c", True, True, None, False),
        ]  # fmt: skip


@BOTH
def test_distinct_values_count_once_over_batches(tmp_path: Path, partial: bool) -> None:
    sql = (
        "SELECT k, count(DISTINCT i) AS c, count(i) AS all_i, sum(DISTINCT i) AS s, avg(DISTINCT i) AS a, "
        "count(DISTINCT i) FILTER (WHERE l = 1) AS f, stddev(DISTINCT i) AS d, variance(x) AS v, "
        "count(DISTINCT t) AS t FROM events GROUP BY k"
    )
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        views.feed(
            [{"k": "a", "i": 1, "l": 1, "x": 1.0}, {"k": "a", "i": 1, "x": 3.0}, {"k": "a", "i": 4}, {"k": "b"}],
            partial=partial,
        )
        assert views.rows() == [
            ("a", 2, 3, 5, D("2.500000"), 1, pytest.approx(math.sqrt(4.5)), pytest.approx(2.0), 0),
            ("b", 0, 0, None, None, 0, None, None, 0),
        ]
        views.feed(
            [{"k": "a", "i": 4, "l": 1}, {"k": "b", "i": 4, "t": NOON}, {"k": "b", "i": 4, "t": NOON}], partial=partial
        )
        views.feed([{"k": "a", "i": 1, "l": 1}, {"k": "a", "i": -2, "x": 2.0}, {"k": "c"}], partial=partial)
        assert views.rows() == [
            ("a", 3, 6, 3, D("1.000000"), 2, pytest.approx(3.0), pytest.approx(1.0), 0),
            ("b", 1, 2, 4, D("4.000000"), 0, None, None, 1),
            ("c", 0, 0, None, None, 0, None, None, 0),
        ]


@BOTH
def test_distinct_values_of_groups_with_null_keys_and_of_the_whole(tmp_path: Path, partial: bool) -> None:
    grouped = target("SELECT k, i, count(DISTINCT l) AS c FROM events GROUP BY k, i", 1)
    whole = target("SELECT count(DISTINCT k) AS k, sum(DISTINCT l) AS l, count(*) AS n FROM events", 2)
    batch = [
        {"k": "0", "i": 0, "l": 1},  # what fills the place of a NULL in a key
        {"k": None, "i": 0, "l": 1},
        {"k": None, "i": 0, "l": 2},
        {"k": "0", "i": None, "l": 3},
        {"k": None, "i": None, "l": 3},
        {"k": None, "i": None},
    ]
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, grouped, whole)
        assert views.rows(1) == [(0, None, 0)]
        for _ in range(3):
            views.feed(batch, partial=partial)
        views.feed([{"k": "0", "i": 0, "l": 2}], partial=partial)  # no NULL in this one
        assert views.rows(0) == [(None, None, 1), (None, 0, 2), ("0", None, 1), ("0", 0, 2)]
        assert views.rows(1) == [(1, 6, 19)]


@BOTH
def test_equal_doubles_are_one_value(tmp_path: Path, partial: bool) -> None:
    sql = "SELECT count(DISTINCT x) AS c, count(DISTINCT r) AS r, sum(DISTINCT r) AS s FROM events"
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        views.feed([{"x": 0.0}, {"x": -0.0}, {"x": math.nan}, {"r": 0.5}], partial=partial)
        views.feed([{"x": math.nan}, {"x": -0.0}, {"x": math.inf}, {"r": 0.5}, {"r": 2.0}], partial=partial)
        assert views.rows() == [(3, 2, 2.5)]


@BOTH
def test_first_and_last_are_by_event_time(tmp_path: Path, partial: bool) -> None:
    sql = (
        "SELECT k, first_value(i) AS f, last_value(i) AS l, last_value(i) FILTER (WHERE l = 1) AS c, min(i) AS m "
        "FROM events WITH ('timestamp' = 't') GROUP BY k"
    )
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        first = [{"k": "a", "i": 5, "t": at(3)}, {"k": "a", "i": 6, "t": at(4), "l": 1}, {"k": "b"}]
        views.feed(first, partial=partial)
        assert views.rows() == [("a", 5, 6, 6, 5), ("b", None, None, None, None)]
        views.feed(
            [
                {"k": "a", "i": 7, "t": at(1)},  # late
                {"k": "a", "i": None, "t": at(9)},  # no value
                {"k": "a", "i": 8},  # no time
                {"k": "b", "i": 3, "t": at(0)},
                {"k": "b", "i": 2, "t": at(0)},  # of equal times the value decides
            ],
            partial=partial,
        )
        assert views.rows() == [("a", 7, 6, 6, 5), ("b", 2, 3, None, 2)]


@pytest.mark.parametrize("column", ["x", "r"])
def test_a_minus_zero_stays_one(tmp_path: Path, column: str) -> None:
    values = f"first_value({column}) AS f, last_value({column}) AS l"
    sql = f"SELECT k, {values} FROM events WITH ('timestamp' = 't') GROUP BY k"
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        views.feed([{"k": "a", column: -0.0, "t": at(3)}, {"k": "a", column: 1.5, "t": at(2)}])
        assert str(views.rows()) == "[('a', 1.5, -0.0)]"
        views.feed(
            [{"k": "a", column: -0.0, "t": at(1)}, {"k": "a", "t": at(0)}, {"k": "b", column: math.nan, "t": at(0)}]
        )
        assert str(views.rows()) == "[('a', -0.0, -0.0), ('b', nan, nan)]"
        views.feed([{"k": "a", column: 2.0, "t": at(2)}, {"k": "c", "t": at(0)}])
        assert str(views.rows()) == "[('a', -0.0, -0.0), ('b', nan, nan), ('c', None, None)]"


def test_the_event_time_is_the_queries_column_or_the_records_own() -> None:
    def argument(source: str) -> str:
        program = build_program([target(f"SELECT first_value(k) AS f FROM events{source}")])
        (text,) = (text for text in program.columns if text.startswith(f"CASE WHEN {program.flags[0]} THEN CASE WHEN"))
        return text

    assert "THEN unix_micros(record_time) END, 'v', CASE WHEN r0_r.c0 IS NOT NULL THEN r0_r.c0 END)" in argument("")
    assert "THEN r0_r.c2 END, 'v', " in argument(" WITH ('timestamp' = 'l')")
    assert "THEN unix_micros(cast(r0_r.c7 as timestamp)) END, 'v', " in argument(" WITH ('timestamp' = 't')")


@BOTH
def test_percentiles_and_the_mode(tmp_path: Path, partial: bool) -> None:
    sql = (
        "SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY i) AS median, "
        "percentile_disc(0.5) WITHIN GROUP (ORDER BY i) AS disc, "
        "percentile_disc(0.5) WITHIN GROUP (ORDER BY i DESC) AS from_above, "
        "mode() WITHIN GROUP (ORDER BY l) AS m, mode() WITHIN GROUP (ORDER BY l DESC) AS greatest_mode, "
        "percentile_cont(1) WITHIN GROUP (ORDER BY i) FILTER (WHERE l = 1) AS filtered, "
        "count(DISTINCT i) AS c FROM events GROUP BY k HAVING percentile_disc(1) WITHIN GROUP (ORDER BY i) > 0"
    )
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        views.feed([{"k": None, "i": 1, "l": 1}, {"k": None, "i": 2, "l": 2}, {"k": "low", "i": -1}], partial=partial)
        views.feed([{"k": None, "i": 10, "l": 2}, {"k": None, "i": 2, "l": 1}, {"k": None}], partial=partial)
        assert views.rows() == [(None, 2.0, 2, 2, 1, 2, 2.0, 3)]
        views.feed([{"k": None, "i": 20}, {"k": None, "i": 30}], partial=partial)
        assert views.rows() == [(None, 6.0, 2, 10, 1, 2, 2.0, 5)]


@BOTH
def test_texts_are_joined_in_the_order_of_their_times(tmp_path: Path, partial: bool) -> None:
    sql = (
        "SELECT i, string_agg(k, '''') AS s, listagg(k) FILTER (WHERE l = 1) AS f, string_agg(DISTINCT k, '-') AS d, "
        "mode() WITHIN GROUP (ORDER BY k) AS m FROM events WITH ('timestamp' = 't') GROUP BY i"
    )
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        views.feed([{"k": "b", "t": at(2)}, {"k": "a", "t": at(4), "l": 1}, {"i": 1}], partial=partial)
        assert views.rows() == [(None, "b'a", "a", "a-b", "a"), (1, None, None, None, None)]
        later = [{"k": "z", "t": at(3)}, {"k": "b", "t": at(2), "l": 1}, {"k": "x"}, {"i": 1, "k": "", "t": at(0)}]
        views.feed(later, partial=partial)
        assert views.rows() == [(None, "b'b'z'a", "b,a", "a-b-x-z", "b"), (1, "", None, "", "")]


def test_equal_arguments_share_a_value_table() -> None:
    state = target(
        "SELECT k, count(DISTINCT i) AS c, sum(DISTINCT i) AS s, count(DISTINCT i) FILTER (WHERE l = 1) AS f, "
        "percentile_disc(0.5) WITHIN GROUP (ORDER BY i) AS p, mode() WITHIN GROUP (ORDER BY i) AS m "
        "FROM events GROUP BY k"
    ).state
    assert isinstance(state, UpsertState)
    assert [(v.type, v.counted) for v in state.values] == [("INTEGER", False), ("INTEGER", False), ("INTEGER", True)]
    assert [(m.kind.value, m.values) for m in state.measures] == [("count", 0), ("sum", 0), ("count", 1)]


def test_value_tables_live_and_die_with_their_state(tmp_path: Path) -> None:
    view = target("SELECT k, count(DISTINCT i) AS c, mode() WITHIN GROUP (ORDER BY i) AS m FROM events GROUP BY k")
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, view)
        views.feed([{"k": "a", "i": 1}])
        assert set(writer.state_tables()) == set(view.state.tables)
        assert len(view.state.tables) == 4
        assert {main_table(table) for table in view.state.tables} == {view.state.table}
        assert writer.has_tables(view.state.tables)
        with writer.transaction():
            writer.create_state(view.state, layout_of(view))  # made anew: nothing is left of the old values
        views.feed([{"k": "a", "i": 1}])
        assert views.rows() == [("a", 1, 1)]
        with writer.transaction():
            writer.drop_state(view.state.tables, view.view_id)
        assert writer.state_tables() == []


@BOTH
def test_a_failed_merge_leaves_no_values_behind(tmp_path: Path, partial: bool) -> None:
    failing = target("SELECT k, count(DISTINCT i) AS c, sum(w) AS s FROM events GROUP BY k", 1)
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, failing)
        most = D("9" * 28)
        views.feed([{"k": "a", "i": 1, "w": most}], partial=partial)
        with pytest.raises(MergeError):
            views.feed([{"k": "a", "i": 2, "w": most}], partial=partial)
        views._batch -= 1
        views.feed([{"k": "a", "i": 2}], partial=partial)
        assert views.rows() == [("a", 2, most)]


# --- PostgreSQL -----------------------------------------------------------------------------------------------------
ASKED = [
    "bool_and(i > 0)", "bool_or(i > 2)", "every(i <> 7)", "count(DISTINCT i)", "count(DISTINCT k)", "count(DISTINCT t)",
    "count(DISTINCT n) FILTER (WHERE i > 0)", "count(DISTINCT x)", "sum(DISTINCT i)", "sum(DISTINCT l)",
    "sum(DISTINCT n)", "sum(DISTINCT x)", "avg(DISTINCT i)", "avg(DISTINCT n)", "avg(DISTINCT x)",
    "stddev(DISTINCT i)", "var_pop(DISTINCT n)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY i)",
    "percentile_cont(0.9) WITHIN GROUP (ORDER BY n) FILTER (WHERE i > 0)",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY x DESC)", "percentile_cont(0) WITHIN GROUP (ORDER BY x)",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY i)", "percentile_disc(0.75) WITHIN GROUP (ORDER BY k DESC)",
    "percentile_disc(0.99) WITHIN GROUP (ORDER BY t)", "percentile_disc(1) WITHIN GROUP (ORDER BY n)",
    "percentile_disc(0) WITHIN GROUP (ORDER BY i > 0)", "mode() WITHIN GROUP (ORDER BY i)",
    "array_agg(DISTINCT i)", "array_agg(DISTINCT k) FILTER (WHERE i > 0)",
    "string_agg(DISTINCT k, '/')", "mode() WITHIN GROUP (ORDER BY k)", "mode() WITHIN GROUP (ORDER BY n DESC)",
]  # fmt: skip
FIRST = "(array_agg({0} ORDER BY t, {0}) FILTER (WHERE {0} IS NOT NULL AND t IS NOT NULL))[1]"
LAST = "(array_agg({0} ORDER BY t DESC, {0} DESC) FILTER (WHERE {0} IS NOT NULL AND t IS NOT NULL))[1]"
BY_TIME = {
    **{f"first_value({column})": FIRST.format(column) for column in "ilnk"},
    "string_agg(k, ',')": "string_agg(k, ',' ORDER BY t, k) FILTER (WHERE t IS NOT NULL)",
    **{f"last_value({column})": LAST.format(column) for column in "ilnk"},
    "array_agg(k)": "array_agg(k ORDER BY t, k) FILTER (WHERE t IS NOT NULL)",
    "array_agg(n) FILTER (WHERE i > 0)": "array_agg(n ORDER BY t, n) FILTER (WHERE i > 0 AND t IS NOT NULL)",
    "topk(i, 3)": "(array_agg(i ORDER BY i DESC) FILTER (WHERE i IS NOT NULL))[1:3]",
    "topk(t, 2) FILTER (WHERE i > 0)": "(array_agg(t ORDER BY t DESC) FILTER (WHERE i > 0 AND t IS NOT NULL))[1:2]",
    "topkdistinct(n, 4)": "(array_agg(DISTINCT n ORDER BY n DESC) FILTER (WHERE n IS NOT NULL))[1:4]",
    "bottomk(i, 3)": "(array_agg(i ORDER BY i) FILTER (WHERE i IS NOT NULL))[1:3]",
    "bottomk(k, 2) FILTER (WHERE i > 0)": "(array_agg(k ORDER BY k) FILTER (WHERE i > 0 AND k IS NOT NULL))[1:2]",
    "bottomkdistinct(n, 4)": "(array_agg(DISTINCT n ORDER BY n) FILTER (WHERE n IS NOT NULL))[1:4]",
    "array_agg(i, 3)": "(array_agg(i ORDER BY t, i) FILTER (WHERE t IS NOT NULL))[1:3]",
    "array_agg(DISTINCT i, 2)": "(array_agg(DISTINCT i))[1:2]",
}
OFTEN = """SELECT array_agg({0} ORDER BY seen {1}, {0}) FROM (SELECT {0}, count(*) AS seen FROM events AS o
  WHERE {0} IS NOT NULL {2} GROUP BY {0} ORDER BY count(*) {1}, {0} LIMIT {3}) AS counted"""
BY_OFTEN = {
    "most_frequent(i, 2)": ("i", "DESC", 2),
    "most_frequent(n, 3)": ("n", "DESC", 3),
    "least_frequent(k, 1)": ("k", "", 1),
    "least_frequent(i, 40)": ("i", "", 40),
}


@pytest.mark.postgres
@BOTH
@pytest.mark.parametrize("group", ["", "k", "k, i"])
def test_postgresql_agrees(postgres_server: Any, tmp_path: Path, partial: bool, group: str) -> None:
    rng = random.Random(f"{group} {partial}")
    rows = [random_row(rng) for _ in range(300)]
    groups = "".join(f" AND o.{key} IS NOT DISTINCT FROM events.{key}" for key in group.split(", ") if key)
    often = {text: f"({OFTEN.format(*given[:2], groups, given[2])})" for text, given in BY_OFTEN.items()}
    translated = {**BY_TIME, **often}
    names = {text: f"c{number}" for number, text in enumerate((*ASKED, *translated))}
    keys = [f"{text} AS key{number}" for number, text in enumerate(group.split(", "))] if group else []
    tail = f" GROUP BY {group}" if group else ""
    ours = ", ".join([*keys, *(f"{text} AS {name}" for text, name in names.items())])
    theirs = ", ".join([*keys, *(f"{translated.get(text, text)} AS {name}" for text, name in names.items())])
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(f"SELECT {ours} FROM events WITH ('timestamp' = 't'){tail}"))
        start = 0
        while start < len(rows):
            size = rng.choice((1, 3, 40, 90))
            views.feed(rows[start : start + size], partial=partial)
            start += size
        found = views.rows()
    order = ", ".join(f"{number + 1} NULLS FIRST" for number in range(max(1, len(keys))))
    expected = postgresql(postgres_server, rows, f"SELECT {theirs} FROM events{tail} ORDER BY {order}")
    assert len(found) == len(expected)
    columns = [*(key.rsplit(" ", 1)[1] for key in keys), *names]
    wrong = [
        f"{column}: {ours!r}, not {theirs!r}"
        for mine, other in zip(found, expected, strict=True)
        for column, ours, theirs in zip(columns, mine, other, strict=True)
        if not equal(ours, theirs)
    ]
    assert wrong == []
