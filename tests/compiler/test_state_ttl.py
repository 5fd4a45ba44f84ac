"""``state.ttl.millis`` in plans: where it may stand, what EXPLAIN says of it, what is kept of it, and each refusal."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from mvserver.compiler.changelogs import result_key
from mvserver.compiler.compile import compile_select
from mvserver.compiler.explain import explain
from mvserver.compiler.plans import Aggregation
from mvserver.compiler.shape import RelationShape, ViewDefinition
from mvserver.compiler.state_ttl import state_ttl
from mvserver.compiler.view_properties import kept_properties, view_properties, with_view_properties
from mvserver.compiler.windows import Window, WindowKind
from mvserver.errors import SqlError
from mvserver.sql.dialect import parse_select
from tests.compiler.test_windows import _resolve

COUNTED = "SELECT k, count(*) AS n FROM events GROUP BY k"
TTL = "QUERY WITH ('state.ttl.millis' = 9000)"


def resolve(parts: tuple[str, ...], position: int | None) -> RelationShape:
    found = _resolve(parts, position)
    if parts[-1] != "v":
        return found
    definition = ViewDefinition(parse_select(COUNTED), _resolve, 9000)
    return dataclasses.replace(found, kind="materialized view", view=definition)


def plan(sql: str, **millis: int) -> Any:
    made = compile_select(parse_select(sql), resolve, default_starting="earliest")
    return with_view_properties(made, {name.replace("_", "."): value for name, value in millis.items()})


def test_it_may_be_a_property_of_the_view_or_of_the_query() -> None:
    made = plan(f"{COUNTED} {TTL}")
    assert isinstance(made, Aggregation)
    assert made.scan.window == Window(WindowKind.SESSION, 9000)
    assert made == plan(COUNTED, state_ttl_millis=9000) == plan(f"{COUNTED} {TTL}", state_ttl_millis=9000)
    assert made == plan(COUNTED, retention_millis=9000), "without a window it means the same"
    assert view_properties(made) == (("state.ttl.millis", "9000"),)
    assert with_view_properties(plan(COUNTED), kept_properties(dict(view_properties(made)))) == made
    assert result_key(made) == ("k",)
    lines = [line.strip() for line in explain(made)]
    assert "A group is forgotten after 9 SECONDS without a record" in lines
    assert "Watermark: event time - 0 ms of each partition" in lines
    assert not any(line.startswith(("Window", "A window")) for line in lines)


def test_zero_is_for_ever() -> None:
    assert plan(f"{COUNTED} QUERY WITH ('state.ttl.millis' = 0)") == plan(COUNTED, state_ttl_millis=0) == plan(COUNTED)


def test_a_view_over_such_a_view_forgets_with_it() -> None:
    assert state_ttl(plan("SELECT k, n * 2 AS n FROM v WHERE n > 1")) == 9000
    regrouped = plan("SELECT n, count(*) AS ks FROM v GROUP BY n")
    assert state_ttl(regrouped) is None
    assert [state_ttl(side.plan) for side in regrouped.scan.derived.sides] == [9000]
    joined = plan("SELECT a.n, b.v FROM v AS a JOIN rows AS b ON a.k = b.k")
    assert [line.strip() for line in explain(joined)].count(
        "A group is forgotten after 9 SECONDS without a record"
    ) == 1


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message"),
    [
        ("SELECT k FROM events", "0A000", 'property "state.ttl.millis" needs GROUP BY or DISTINCT'),
        ("SELECT count(*) FROM events", "0A000", 'property "state.ttl.millis" needs GROUP BY or DISTINCT'),
        ("SELECT k, count(*) FROM TUMBLE(events, SIZE 1 DAY) GROUP BY k, window_start, window_end", "0A000",
         'property "state.ttl.millis" is not supported over a window'),
        ("SELECT k, count(*) FROM rows GROUP BY k", "0A000",
         'property "state.ttl.millis" is not supported over a changelog'),
        ("SELECT n, count(*) FROM v GROUP BY n", "0A000", 'property "state.ttl.millis" is not supported over groups'),
        ("SELECT a.k, count(*) FROM events a JOIN events b WITHIN 1 SECOND ON a.k = b.k GROUP BY a.k", "0A000",
         'property "state.ttl.millis" is not supported over a join or UNION ALL'),
        ("SELECT k, v, count(*) FROM events GROUP BY ROLLUP (k, v)", "0A000",
         'property "state.ttl.millis" is not supported over grouping sets'),
        ("SELECT k, count(DISTINCT v) FROM events GROUP BY k", "0A000",
         'property "state.ttl.millis" is not supported with DISTINCT in an aggregate, or aggregates that keep their '
         "values"),
        ("SELECT k, count(*) FROM taken GROUP BY k", "42701",
         'the stream has a column "window_end" already, as the bounds of a group in time are called'),
        (f"{COUNTED} QUERY WITH ('state.ttl.millis' = 8)", "22023",
         'property "state.ttl.millis" is 9, but the groups are forgotten after 8 ms already'),
    ],
)  # fmt: skip
def test_what_cannot_forget(sql: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        plan(sql, state_ttl_millis=9)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    ("sql", "millis", "sqlstate", "message"),
    [
        (COUNTED, {"retention_millis": 0}, "22023", 'property "retention.millis" must be at least 1'),
        (COUNTED, {"retention_millis": 5, "state_ttl_millis": 6}, "22023",
         'property "retention.millis" is 5, but the groups are forgotten after 6 ms already'),
        (COUNTED, {"window_grace_millis": 5, "state_ttl_millis": 6}, "0A000",
         'property "window.grace.millis" needs an aggregation over a window'),
        ("SELECT k, count(*) FROM rows GROUP BY k", {"retention_millis": 5}, "0A000",
         'property "retention.millis" is not supported over a changelog'),
        ("SELECT k, n FROM v EMIT FINAL", {}, "0A000", "EMIT FINAL needs an aggregation over a window"),
        (f"{COUNTED} QUERY WITH ('state.ttl.millis' = 'soon')", {}, "22023",
         'invalid value for property "state.ttl.millis": "soon"'),
        (f"{COUNTED} QUERY WITH ('ttl' = 5)", {}, "22023", 'unrecognized query property "ttl"'),
    ],
)  # fmt: skip
def test_properties_that_do_not_fit(sql: str, millis: dict[str, int], sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        plan(sql, **millis)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)
    assert caught.value.hint is not None
