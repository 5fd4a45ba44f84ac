"""Every statement that the demos send is one that the server's parser and compiler take, with the types they expect."""

from __future__ import annotations

import pytest

from mvserver.compiler.compile import compile_select
from mvserver.compiler.plans import Aggregation, ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.demo import __main__ as clicks_demo
from mvserver.demo import clicks, flights, flights_views
from mvserver.sql.parser import parse
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.queries import Pull
from mvserver.sql.statements.relations import CreateMaterializedView, CreateStream

CLICKS_STREAM = clicks.STREAM.format(store="s")
FLIGHTS_STREAM = flights_views.STREAM.format(store="s")
SELECTS = [
    clicks.HOME_VISITS,
    clicks.MOST_VISITED,
    clicks.USER_9_ON_MOBILE,
    clicks_demo.REJECTED,
    clicks_demo.REJECTED_COUNT,
    flights.BY_ORIGIN,
    *(select for _, select, _ in clicks.ROWS),
    *(view.select() for view in flights_views.VIEWS),
]


def parsed(text: str) -> Statement:
    statements = parse(text)
    assert len(statements) == 1
    return statements[0]


@pytest.mark.parametrize("text", SELECTS)
def test_selects_are_pull_queries(text: str) -> None:
    assert isinstance(parsed(text), Pull)


def columns_of(stream: str, view: str) -> dict[str, str]:
    declared = parsed(stream)
    assert isinstance(declared, CreateStream)
    created = parsed(view)
    assert isinstance(created, CreateMaterializedView)
    shape = RelationShape(
        "id",
        f"db.public.{declared.name}",
        "stream",
        tuple(ScanColumn(column.name, column.type, column.not_null) for column in declared.columns),
        timestamp=str(declared.properties["timestamp"]),
    )
    plan = compile_select(created.select, lambda parts, position: shape, default_starting="earliest")
    assert isinstance(plan, Aggregation)
    return {output.name: str(output.type) for output in plan.outputs}


def test_the_tutorials_views() -> None:
    assert [columns_of(CLICKS_STREAM, view) for view in clicks.VIEWS] == [
        {"url": "VARCHAR", "url_visit_count": "BIGINT"},
        {"url": "VARCHAR", "device_id": "VARCHAR", "visits": "BIGINT"},
        {"userid": "VARCHAR", "url": "VARCHAR", "device_id": "VARCHAR", "visits": "BIGINT"},
    ]


def test_the_flights_views() -> None:
    measures = {"flights": "BIGINT"}
    for delay in ("dep_delay", "arr_delay"):
        measures |= {f"{delay}_sum": "BIGINT", f"{delay}_min": "INTEGER", f"{delay}_max": "INTEGER"}
    for view, keys in zip(
        flights_views.VIEWS,
        ({"origin": "VARCHAR"}, {"carrier": "VARCHAR", "departure_hour": "TIMESTAMP"}, {"tailnum": "VARCHAR"}),
        strict=True,
    ):
        found = columns_of(FLIGHTS_STREAM, view.create())
        averages = {name: found.pop(name) for name in list(found) if name.endswith("_avg")}
        assert found == keys | measures
        assert all(kind.startswith("DECIMAL(") and kind.endswith(", 6)") for kind in averages.values())
        assert len(averages) == 2
