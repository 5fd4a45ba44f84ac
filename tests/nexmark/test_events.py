"""The events are as the benchmark describes them, and the same for a seed; every query is accepted."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter

import pytest

from mvserver.compiler.changelogs import over_changelog
from mvserver.compiler.compile import compile_select
from mvserver.compiler.plans import Projection, ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.sql import types as t
from mvserver.sql.dialect import parse_select
from tests.nexmark.events import COLUMNS, FIRST_ID, LONGEST_AUCTION, START, Event, Site
from tests.nexmark.queries import Query, oracle, queries

BETWEEN = dt.timedelta(milliseconds=20)
DISORDER = 100


@pytest.fixture(scope="module")
def events() -> list[Event]:
    return list(Site(7, BETWEEN, DISORDER).events(10_000))


def test_events_of_a_seed_are_always_the_same(events: list[Event]) -> None:
    assert list(Site(7, BETWEEN, DISORDER).events(10_000)) == events
    assert list(Site(8, BETWEEN, DISORDER).events(10_000)) != events


def test_kinds_are_as_1_to_3_to_46_and_keys_are_given_once(events: list[Event]) -> None:
    assert Counter(event.kind for event in events) == {"person": 200, "auction": 600, "bid": 9_200}
    for kind, count in (("person", 200), ("auction", 600)):
        keys = [event.key for event in events if event.kind == kind]
        assert sorted(keys) == list(range(FIRST_ID, FIRST_ID + count))


def test_some_auctions_sellers_and_bidders_are_hot(events: list[Event]) -> None:
    bids = [event.row for event in events if event.kind == "bid"]
    hot = sum((bid[0] - FIRST_ID) % 100 == 0 for bid in bids) / len(bids)
    assert 0.48 < hot < 0.54
    sellers = Counter(event.row[7] for event in events if event.kind == "auction")
    assert 0.6 < (sellers[FIRST_ID] + sellers[FIRST_ID + 100]) / 600 < 0.9
    bidders = Counter(bid[1] for bid in bids)
    assert 0.7 < sum(count for _, count in bidders.most_common(2)) / len(bids) < 0.8
    assert len(bidders) > 100


def test_what_is_named_is_there_and_auctions_end_in_time(events: list[Event]) -> None:
    opened = {event.key: event.row for event in events if event.kind == "auction"}
    people = {event.key for event in events if event.kind == "person"}
    assert {row[7] for row in opened.values()} <= people
    assert all(dt.timedelta(0) < row[6] - row[5] <= LONGEST_AUCTION for row in opened.values())
    bids = [event.row for event in events if event.kind == "bid"]
    assert {bid[0] for bid in bids} <= opened.keys()
    assert {bid[1] for bid in bids} <= people
    assert 0.5 < sum(opened[bid[0]][5] <= bid[5] <= opened[bid[0]][6] for bid in bids) / len(bids) < 1


def test_events_come_out_of_order_by_no_more_than_was_asked(events: list[Event]) -> None:
    times = [event.row[6 if event.kind == "person" else 5] for event in events]
    newest = START
    behind = []
    for event, time in zip(events, times, strict=True):
        newest = max(newest, time)
        behind.append(newest - time)
        assert time <= event.sent <= time + DISORDER * BETWEEN + dt.timedelta(milliseconds=1)
    assert dt.timedelta(seconds=1) < max(behind) <= DISORDER * BETWEEN
    assert [event.sent for event in events] == sorted(event.sent for event in events)


def test_values_are_json_of_the_declared_types(events: list[Event]) -> None:
    for kind, kinds in (("person", [int, *[str] * 7]), ("bid", [int, int, int, str, str, str, str])):
        event = next(event for event in events if event.kind == kind)
        value = json.loads(event.value())
        assert list(value) == [column.split()[0] for column in COLUMNS[kind].split(", ")]
        assert [type(each) for each in value.values()] == kinds
        assert value["date_time"].startswith("2024-05-01 12:00:0")
    sizes = Counter[str]()
    for event in events:
        sizes[event.kind] += len(event.value())
    assert 250 < sizes["person"] / 200 < 350
    assert 380 < sizes["auction"] / 600 < 520
    assert 150 < sizes["bid"] / 9_200 < 220


_TYPES = {"BIGINT": t.BIGINT, "VARCHAR": t.VARCHAR, "TIMESTAMP": t.TIMESTAMP}


def _shape(name: str, kind: str, key: tuple[str, ...] = (), timestamp: str | None = "date_time") -> RelationShape:
    columns = (column.split() for column in COLUMNS[kind].split(", "))
    declared = tuple(ScanColumn(column, _TYPES[type_]) for column, type_ in columns)
    relation = "changelog" if key else "stream"
    return RelationShape(name, f"db.public.{name}", relation, declared, timestamp=timestamp, primary_key=key)


_RELATIONS = {
    **{kind: _shape(kind, kind) for kind in COLUMNS},
    **{f"{kind}s_by_id": _shape(f"{kind}s_by_id", kind, ("id",)) for kind in ("person", "auction")},
    "bid_as_sent": _shape("bid_as_sent", "bid", timestamp=None),
}


def test_there_is_a_query_of_each_number() -> None:
    assert list(queries()) == ["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q11", "q12"]


@pytest.mark.parametrize("query", queries().values(), ids=lambda query: query.name)
def test_each_query_is_one_continuous_query(query: Query) -> None:
    head, select = query.create.split(" AS\n", 1)
    assert head == f"CREATE MATERIALIZED VIEW {query.name}"
    plan = compile_select(
        parse_select(select), lambda parts, position: _RELATIONS[parts[-1]], default_starting="earliest"
    )
    changing = {"q3", "q5", "q6", "q7", "q8", "q9"}
    assert isinstance(plan, Projection) == (query.name in {"q0", "q1", "q2"} | changing)
    assert over_changelog(plan) == (query.name in {"q4"} | changing)
    assert oracle(query.name)
