"""Look-ups read at the state's tables give what the view gives; the view itself, read by DuckDB, is the oracle."""

from __future__ import annotations

import datetime as dt
import random
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mvserver import limits
from mvserver.serving.api import PlanRequest, PlanRuns, PullPlan
from mvserver.sql.dialect import parse_pull
from tests.serving.world import SCOPE, VISITS_ID, World, key_visits, keyed_layout, make_keyed_state, rows_of


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("direct"))
    key_visits(world)
    yield world
    world.close()


def _run(world: World, plan: PullPlan, parameters: list[Any]) -> list[tuple[Any, ...]]:
    return rows_of(world.snapshot.run(plan, parameters))


def _through_the_view(plan: PullPlan) -> PullPlan:
    return replace(plan, direct=None, arrow_types=(), runs=PlanRuns(few=False))


_LISTS = (
    "*",
    "site, url, visits",
    "mean",
    "visits + 1 AS visits, url",
    "v.*",
    "count(*), max(mean)",
    "url AS site, site AS x",
)
_WHERE = (
    ("site = $1 AND url = $2", 2), ("url = $2 AND site = $1 AND visits > 0", 2), ("site = $1 AND url = 'u1'", 1),
    ("site = $1", 1), ("site >= $1 AND site < $1 + 3", 1), ("site BETWEEN $1 AND $1 + 2 AND url > $2", 2),
    ("url = $1", 1), ("site = $1 AND url IN ('u1', 'u2')", 1), ("site > $1 AND mean IS NULL", 1),
)  # fmt: skip
_ENDS = ("", " ORDER BY site, url", " ORDER BY 1 DESC LIMIT 3", " LIMIT 2 OFFSET 1")


def test_random_look_ups_equal_the_view(keyed: World) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    direct = 0
    for _ in range(30):
        items, (where, count), end = chance.choice(_LISTS), chance.choice(_WHERE), chance.choice(_ENDS)
        if "count" in items:
            end = ""
        of_url = where == "url = $1"
        parameters: list[Any] = [f"u{chance.randrange(6)}" if of_url else chance.randrange(-1, 410)]
        parameters += [f"u{chance.randrange(6)}"] * (count - 1)
        text = f"SELECT {items} FROM visits AS v WHERE {where}{end}"
        plan = keyed.plan(text)
        direct += plan.direct is not None
        found, expected = _run(keyed, plan, parameters), _run(keyed, _through_the_view(plan), parameters)
        if "ORDER BY site, url" not in end:
            if "LIMIT" in end:
                assert len(found) == len(expected), (text, parameters)
                continue
            found, expected = sorted(found, key=repr), sorted(expected, key=repr)
        assert found == expected, (text, parameters)
    assert direct > 8


def test_a_look_up_reads_one_table_and_a_range_both(keyed: World) -> None:
    point = keyed.plan("SELECT visits FROM visits WHERE site = 1 AND url = 'u2'")
    assert point.kind == "point"
    assert point.direct is not None
    assert "_views" not in point.direct
    assert "_nulls" not in point.direct
    assert _run(keyed, point, []) == [(0,)]
    span = keyed.plan("SELECT url, visits FROM visits WHERE site = 1 ORDER BY url")
    assert span.direct is not None
    assert "_nulls" in span.direct
    assert _run(keyed, span, [])[-1] == (None, 9)


def test_what_is_not_a_look_up_reads_the_view(keyed: World) -> None:
    for text in (
        "SELECT count(*) FROM visits",
        "SELECT site FROM visits WHERE site = (SELECT 1)",
        "SELECT a.site FROM visits AS a, visits AS b WHERE a.site = 1",
    ):
        assert keyed.plan(text).direct is None


def test_types_and_names_are_those_of_the_view(keyed: World) -> None:
    plan = keyed.plan("SELECT * FROM visits WHERE site = 3 AND url = 'u0'")
    assert plan.direct is not None
    assert [field.name for field in plan.fields] == ["site", "url", "visits", "mean", "seen"]
    assert _run(keyed, plan, []) == [(3, "u0", 1, None, dt.datetime(2024, 1, 1, 15))]


def test_state_made_anew_is_read_at_once(keyed: World) -> None:
    text = "SELECT visits FROM visits WHERE site = 2 AND url = 'u4'"
    plan = keyed.service.plan(PlanRequest(parse_pull(text), SCOPE, text=text))
    assert _run(keyed, plan, []) == [(0,)]
    make_keyed_state(keyed, 2, 100)
    keyed.writer.execute(f'UPDATE _state."{VISITS_ID}_2" SET n = 77 WHERE k0 = 2')
    cached = keyed.service.cached(text, SCOPE)
    assert cached is plan
    assert _run(keyed, plan, []) == [(77,)]
    assert plan.runs.replaced
    make_keyed_state(keyed, 3, 2_000)
    assert _run(keyed, plan, []) == [(0,)]


def test_a_layout_whose_tables_are_gone_is_left_to_duckdb(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        key_visits(world)
        world.layouts.change({VISITS_ID: keyed_layout(9)})  # as between a commit and the word of it
        plan = world.plan("SELECT visits FROM visits WHERE site = 1 AND url = 'u2'")
        assert plan.direct is None
        assert _run(world, plan, []) == [(0,)]
    finally:
        world.close()


def test_a_pinned_snapshot_keeps_what_it_saw(keyed: World) -> None:
    plan = keyed.plan("SELECT visits FROM visits WHERE site = 2 AND url = 'u4'")
    other = keyed.service.snapshot()
    try:
        other.begin()
        before = rows_of(other.run(plan, []))
        keyed.writer.execute(f"UPDATE {plan_table(plan)} SET n = n + 1 WHERE k0 = 2")
        assert rows_of(other.run(plan, [])) == before
        other.end()
        assert rows_of(other.run(plan, [])) == [(before[0][0] + 1,)]
    finally:
        other.close()


def plan_table(plan: PullPlan) -> str:
    found = re.search(r'"_state"\."[^"]+"', plan.direct or "")
    assert found is not None
    return found[0]


@pytest.mark.parametrize("rows", [limits.FEW_ROWS_MAX, limits.FEW_ROWS_MAX + 1, 3_000])
def test_results_around_the_limit_of_few_rows_are_whole(keyed: World, rows: int) -> None:
    plan = keyed.plan(f"SELECT i, i * 2 AS b FROM generate_series(1, {rows}) AS g(i)")
    plan.runs.few = True
    for _ in range(3):
        assert _run(keyed, plan, []) == [(i, 2 * i) for i in range(1, rows + 1)]
        assert plan.runs.few == (rows <= limits.FEW_ROWS_MAX)


def test_a_plan_learns_that_its_results_are_small(keyed: World) -> None:
    plan = keyed.plan("SELECT count(*), max(visits) FROM visits")
    assert not plan.runs.few
    first = _run(keyed, plan, [])
    assert plan.runs.few
    assert _run(keyed, plan, []) == first


@pytest.mark.parametrize(
    "value",
    ["timestamp 'infinity'", "date '-infinity'", "timestamp '0044-03-15 (BC)'", "date '12000-01-01'",
     "timestamptz 'infinity'", "time '24:00:00'", "timestamp '2024-02-29 01:02:03.000004'", "NULL::timestamp"],
)  # fmt: skip
def test_few_rows_hold_every_time(keyed: World, value: str) -> None:
    plan = keyed.plan(f"SELECT {value} AS x, 1 AS one")
    whole, few = replace(plan, runs=PlanRuns(few=False)), replace(plan, runs=PlanRuns(few=True))
    expected = list(keyed.snapshot.run(whole, []).batches)
    found = list(keyed.snapshot.run(few, []).batches)
    assert [b.column(0).cast(_raw(b.column(0).type)) for b in found] == [
        b.column(0).cast(_raw(b.column(0).type)) for b in expected
    ]


def _raw(kind: Any) -> Any:
    return pa.int32() if pa.types.is_date32(kind) else pa.int64()


def test_a_view_of_another_shape_is_left_to_duckdb(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        plan = world.plan("SELECT visits FROM visits WHERE url = './home'")
        assert (plan.kind, plan.direct) == ("point", None)
        assert _run(world, plan, []) == [(3,)]
    finally:
        world.close()
