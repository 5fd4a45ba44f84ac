"""Windows in plans: what they ask of a query, what EXPLAIN says of them, and each refusal."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from mvserver.compiler.compile import compile_select
from mvserver.compiler.explain import explain
from mvserver.compiler.expressions import walk
from mvserver.compiler.lower_spark import lower as lower_spark
from mvserver.compiler.plans import Aggregation, Projection, ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.compiler.view_properties import kept_properties, view_properties, with_view_properties
from mvserver.compiler.windowed import START
from mvserver.errors import SqlError
from mvserver.sql.dialect import parse_select
from mvserver.sql.types import parse_type

_COLUMNS = {"k": "VARCHAR", "v": "INTEGER", "at": "TIMESTAMP"}
_SHAPES = {
    "events": RelationShape("r1", "db.public.events", "stream", (), timestamp="at"),
    "rows": RelationShape("r2", "db.public.rows", "changelog", (), primary_key=("k",)),
}
_BY = "GROUP BY window_start, window_end"


def _resolve(parts: tuple[str, ...], position: int | None) -> RelationShape:
    taken = {**_COLUMNS, **({"window_end": "TIMESTAMP"} if parts[-1] == "taken" else {})}
    columns = tuple(ScanColumn(name, parse_type(kind)) for name, kind in taken.items())
    return dataclasses.replace(_SHAPES.get(parts[-1], _SHAPES["events"]), columns=columns)


def plan(sql: str) -> Any:
    return compile_select(parse_select(sql), _resolve, default_starting="earliest")


def test_window_columns_come_last_and_are_timestamps() -> None:
    found = plan("SELECT * FROM HOP(events, SIZE 2 MINUTES, ADVANCE BY 1 MINUTE)")
    assert isinstance(found, Projection)
    assert [(o.name, str(o.type)) for o in found.outputs[-2:]] == [
        ("window_start", "TIMESTAMP"),
        ("window_end", "TIMESTAMP"),
    ]


def test_a_sub_query_stands_in_brackets_or_in_with() -> None:
    inner = "SELECT a.k, b.v FROM events a JOIN events b WITHIN 1 DAY ON a.k = b.k"
    rest = f"window_start, sum(v) AS s FROM TUMBLE({{}}, SIZE 1 DAY) AS t {_BY}"
    bracketed, named = (
        plan(f"SELECT {rest.format(f'({inner})')}"),
        plan(f"WITH w AS ({inner}) SELECT {rest.format('w')}"),
    )
    assert bracketed == named
    assert bracketed.scan.columns[-1].name == "rowmark"
    assert plan(f"SELECT * FROM TUMBLE(({inner}), SIZE 1 DAY) AS t").outputs[0].name == "k"


def test_rows_of_a_changelog_without_a_time_are_in_no_window() -> None:
    found = plan(f"SELECT window_start, count(*) AS n FROM TUMBLE(rows, SIZE 1 DAY) WHERE v > 1 {_BY}")
    assert lower_spark(found.where, str) == "(CASE WHEN (window_start IS NOT NULL) THEN (v > 1) ELSE FALSE END)"
    assert [line.strip() for line in explain(found) if "indow:" in line] == ["Window: TUMBLE SIZE 1 DAY"]
    assert not any("Watermark" in line for line in explain(found))


@pytest.mark.parametrize("condition", ["", "WHERE v > 1"])
def test_a_projection_has_no_records_outside_of_windows(condition: str) -> None:
    found = plan(f"SELECT k FROM TUMBLE(events, SIZE 1 MINUTE) {condition}")
    bounds = [part for part in walk(found.where) if part == START]
    assert len(bounds) == 1
    lowered = lower_spark(found.where, str)
    assert lowered.startswith(
        "(window_start IS NOT NULL)" if not condition else "(CASE WHEN (window_start IS NOT NULL)"
    )


@pytest.mark.parametrize(
    ("window", "keys"),
    [
        ("TUMBLE({}, SIZE 1 MINUTE) {}", "window_start, window_end, {}"),
        ("HOP({}, SIZE 2 MINUTES, ADVANCE BY 1 MINUTE) {}", "window_start, window_end, ROLLUP ({})"),
        ("SESSION({} PARTITION BY {}, GAP 1 MINUTE)", "window_start, window_end, {}"),
    ],
)
def test_a_window_over_a_query_of_with_is_one_over_its_stream(window: str, keys: str) -> None:
    direct = window.format("events", "k" if "PARTITION" in window else "AS t")
    through = window.format("w", "who" if "PARTITION" in window else "AS t")
    one = plan(f"SELECT window_end, k AS who, sum(v + 1) AS n FROM {direct} WHERE v > 2 GROUP BY {keys.format('k')}")
    other = plan(
        "WITH w AS (SELECT k AS who, v + 1 AS more FROM events WHERE v > 2) "
        f"SELECT window_end, who, sum(more) AS n FROM {through} GROUP BY {keys.format('who')}"
    )
    assert one == other
    assert one.scan.window is not None


def test_explain_says_how_time_passes() -> None:
    found = plan(
        "SELECT k, count(*) FROM TUMBLE(events, SIZE 90 SECONDS) "
        f"WITH ('watermark.delay.millis' = 5000, 'source.idle.timeout.millis' = 60000) {_BY}, k EMIT FINAL"
    )
    kept = with_view_properties(found, {"window.grace.millis": 1000, "retention.millis": 7000})
    lines = [line.strip() for line in explain(kept)]
    assert "Window: TUMBLE SIZE 90 SECONDS" in lines
    assert "Watermark: event time - 5000 ms of each partition, partitions idle for 60000 ms left out" in lines
    assert "A window is shown once, when it is closed; grace 1000 ms" in lines
    assert "Rows are kept until 7000 ms behind the watermark" in lines


def test_sub_queries_may_group_what_a_window_gives() -> None:
    found = plan(
        "SELECT ws, we, n FROM (SELECT window_start AS ws, window_end AS we, count(*) AS n "
        f"FROM TUMBLE(events, SIZE 1 DAY) {_BY}) x WHERE n > 1"
    )
    assert isinstance(found, Aggregation)
    again = plan(
        "SELECT window_start, upper(k) AS k, count(*) FROM (SELECT * FROM TUMBLE(events, SIZE 1 DAY)) e "
        "GROUP BY upper(k), window_start, window_end"
    )
    assert isinstance(again, Aggregation)
    assert again.scan.window is not None


def test_view_properties_come_back_from_the_catalog() -> None:
    found = plan(f"SELECT count(*) FROM TUMBLE(events, SIZE 1 DAY) {_BY}")
    kept = with_view_properties(found, {"window.grace.millis": 5, "retention.millis": 9})
    assert with_view_properties(found, kept_properties(dict(view_properties(kept)))) == kept
    assert view_properties(found) == ()


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message", "hint"),
    [
        (f"SELECT 1 AS one, count(*) FROM HOP(events, SIZE 1 HOUR, ADVANCE BY 2 HOURS) {_BY}", "22023",
         "ADVANCE BY must not be longer than SIZE", None),
        (f"SELECT count(*) FROM CUMULATE(events, SIZE 1 HOUR, STEP 7 MINUTES) {_BY}", "22023",
         "SIZE must be a multiple of STEP", "The last of the windows that begin together is SIZE long."),
        (f"SELECT count(*) FROM HOP(events, SIZE 1 DAY, ADVANCE BY 1 SECOND) {_BY}", "54000",
         "a record would belong to 86400 windows; 1000 are allowed", "Make ADVANCE BY longer."),
        ("SELECT count(*) FROM TUMBLE(events, SIZE 1 DAY)", "42803",
         "an aggregation over TUMBLE must be grouped by window_start and window_end",
         "Add window_start and window_end to GROUP BY."),
        ("SELECT count(*) FROM TUMBLE(events, SIZE 1 DAY) GROUP BY window_start", "42803",
         "an aggregation over TUMBLE must be grouped by window_start and window_end", "Add window_end to GROUP BY."),
        (f"SELECT k, count(*) FROM SESSION(events PARTITION BY k, v, GAP 1 DAY) {_BY}, k", "0A000",
         "an aggregation over SESSION must be grouped by its PARTITION BY columns, window_start and window_end",
         "Write SESSION(stream PARTITION BY a, GAP n unit) with GROUP BY window_start, window_end, a."),
        (f"SELECT max(window_start) FROM SESSION(events, GAP 1 DAY) {_BY}", "0A000",
         "the bounds of a session can only be grouped by and selected",
         "Compute with them in the SELECT that reads the view."),
        (f"SELECT count(DISTINCT k) FROM SESSION(events, GAP 1 DAY) {_BY}", "0A000",
         "aggregates of DISTINCT values are not supported over SESSION",
         "Collect the values with ARRAY_AGG(DISTINCT x), or use TUMBLE, HOP or CUMULATE."),
        ("SELECT count(*) FROM SESSION(events PARTITION BY nosuch, GAP 1 DAY)", "42703",
         'column "nosuch" does not exist', None),
        ("SELECT count(*) FROM TUMBLE(events, SIZE 1 DAY) GROUP BY ROLLUP (window_start, window_end)", "42803",
         "an aggregation over TUMBLE must be grouped by window_start and window_end",
         "Add window_start and window_end to GROUP BY."),
        ("SELECT count(*) FROM HOP(events, SIZE 1 DAY, ADVANCE BY 1 HOUR) GROUP BY window_start, CUBE (k, window_end)",
         "42803", "an aggregation over HOP must be grouped by window_start and window_end",
         "Add window_end to GROUP BY."),
        (f"SELECT count(*) FROM SESSION(events PARTITION BY k, GAP 1 DAY) {_BY}, ROLLUP (k)", "0A000",
         "grouping sets over SESSION are not supported", "Create one view for each set of keys."),
        ("SELECT k FROM events EMIT FINAL", "0A000", "EMIT FINAL needs an aggregation over a window",
         "Read FROM TUMBLE(stream, SIZE n unit) and GROUP BY window_start, window_end."),
        ("SELECT k FROM TUMBLE(events, SIZE 1 DAY) EMIT FINAL", "0A000",
         "EMIT FINAL needs an aggregation over a window",
         "Read FROM TUMBLE(stream, SIZE n unit) and GROUP BY window_start, window_end."),
        ("SELECT k FROM TUMBLE(taken, SIZE 1 DAY)", "42701",
         'the stream has a column "window_end" already, which is what the window would add',
         "Declare a stream over the same entity without it."),
        ("SELECT k FROM HOP(rows, SIZE 2 DAYS, ADVANCE BY 1 DAY)", "0A000",
         "HOP windows over a changelog are not supported", "TUMBLE is, for the rows that are there now."),
        ("WITH w AS (SELECT k FROM rows) SELECT k FROM SESSION(w, GAP 1 DAY)", "0A000",
         "SESSION windows over a changelog are not supported", "TUMBLE is, for the rows that are there now."),
        (f"SELECT count(*) FROM TUMBLE(rows, SIZE 1 DAY) {_BY} EMIT FINAL", "0A000",
         "EMIT FINAL over a changelog is not supported", "Leave EMIT FINAL out, or read a stream."),
        ("SELECT k FROM TUMBLE((SELECT a.k FROM rows a JOIN rows b ON a.v = b.v), SIZE 1 DAY)", "0A000",
         "windows over joined changelogs, groups and elements are not supported", "Group by date_trunc of a time."),
        ("SELECT k FROM TUMBLE(rows, SIZE 1 DAY) GROUP BY k", "42803",
         "an aggregation over TUMBLE must be grouped by window_start and window_end",
         "Add window_start and window_end to GROUP BY."),
        ("WITH w AS (SELECT k, count(*) AS n FROM events GROUP BY k) SELECT k FROM TUMBLE(w, SIZE 1 DAY)", "0A000",
         "windows over a query that aggregates are not supported",
         "Write the window in that query, or aggregate its windows again."),
        ("WITH w AS (SELECT k FROM TUMBLE(events, SIZE 1 DAY)) SELECT k FROM TUMBLE(w, SIZE 1 DAY)", "0A000",
         "windows over a query that is over a window are not supported", "Write one window."),
        ("SELECT k FROM TUMBLE((SELECT a.k FROM events a JOIN events b WITHIN 1 DAY ON a.k = b.k "
         "JOIN events c WITHIN 1 DAY ON a.k = c.k), SIZE 1 DAY)", "0A000",
         "windows over several joins are not supported",
         "Write the first one to a stream with CREATE STREAM ... AS, and join that."),
        ("SELECT k FROM TUMBLE((SELECT k FROM events), SIZE 1 DAY) WITH ('timestamp' = 'at')", "0A000",
         "WITH (...) after a sub-query is not supported in a continuous query",
         "Write it after the stream that the query reads."),
        ("WITH w AS (SELECT at AS window_end FROM events) SELECT 1 FROM TUMBLE(w, SIZE 1 DAY)", "42701",
         'the stream has a column "window_end" already, which is what the window would add',
         "Give it another name in the query that the window is over."),
        (f"WITH w AS (SELECT v + 1 AS n FROM events) SELECT n FROM SESSION(w PARTITION BY n, GAP 1 DAY) {_BY}, n",
         "0A000", 'PARTITION BY "n" is not supported: the query computes it',
         "Write the query to a stream with CREATE STREAM ... AS, and read that."),
        ("SELECT a.k FROM TUMBLE(events, SIZE 1 DAY) a JOIN events b WITHIN 1 DAY ON a.k = b.k", "0A000",
         "a window in a join is not supported in a continuous query",
         "Join the streams first, or join the views where you read them."),
        ("SELECT k FROM events WITH ('watermark.delay.millis' = '-1')", "22023",
         'invalid value for property "watermark.delay.millis": "-1"',
         "It is a number of milliseconds, 0 to 3162240000000."),
        ("SELECT k FROM events WITH ('source.idle.timeout.millis' = soon)", "22023",
         'invalid value for property "source.idle.timeout.millis": "soon"',
         "It is a number of milliseconds, 0 to 3162240000000."),
    ],
)  # fmt: skip
def test_refusals(sql: str, sqlstate: str, message: str, hint: str | None) -> None:
    with pytest.raises(SqlError) as caught:
        plan(sql)
    assert (caught.value.sqlstate, caught.value.message, caught.value.hint) == (sqlstate, message, hint)


@pytest.mark.parametrize(
    ("source", "millis", "sqlstate", "message"),
    [
        ("events", {"window.grace.millis": 5}, "0A000",
         'property "window.grace.millis" needs an aggregation over a window'),
        ("TUMBLE(rows, SIZE 1 DAY)", {"retention.millis": 5}, "0A000",
         'property "retention.millis" needs an aggregation over a window'),
        ("TUMBLE(events, SIZE 1 DAY)", {"window.grace.millis": 5, "retention.millis": 4}, "22023",
         'property "retention.millis" must be at least 5'),
        ("SESSION(events, GAP 1 SECOND)", {"window.grace.millis": 5, "retention.millis": 1004}, "22023",
         'property "retention.millis" must be at least 1005'),
    ],
)  # fmt: skip
def test_view_properties_that_do_not_fit(source: str, millis: dict[str, int], sqlstate: str, message: str) -> None:
    by = "" if source == "events" else _BY
    with pytest.raises(SqlError) as caught:
        with_view_properties(plan(f"SELECT count(*) FROM {source} {by}"), millis)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)
    assert caught.value.hint is not None


def test_rows_of_a_projection_may_age() -> None:
    kept = with_view_properties(plan("SELECT k FROM events"), {"retention.millis": 9})
    assert isinstance(kept, Projection)
    assert kept.retention_ms == 9
    assert view_properties(kept) == (("retention.millis", "9"),)
    lines = [line.strip() for line in explain(kept)]
    assert "Watermark: event time - 0 ms of each partition" in lines
    assert "Rows are kept until 9 ms behind the watermark" in lines


@pytest.mark.parametrize(
    ("sql", "millis"),
    [
        ("SELECT k FROM events", {"window.grace.millis": 9}),
        ("SELECT k, count(*) FROM events GROUP BY k", {"window.grace.millis": 9}),
        ("SELECT k, v FROM rows", {"retention.millis": 9}),
    ],
)
def test_what_cannot_age(sql: str, millis: dict[str, int]) -> None:
    with pytest.raises(SqlError) as caught:
        with_view_properties(plan(sql), millis)
    assert caught.value.sqlstate == "0A000"
    assert caught.value.hint == "Read FROM TUMBLE(stream, SIZE n unit) and GROUP BY window_start, window_end."
