"""The events and views of the measurements: reproducible, of the stated shape, valid statements."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import pytest

from tests.bench.viewsets import clicks_views, wide_views
from tests.bench.workload import CLICKS, CUSTOMERS, KEYS, ORDERS, VISITS, WIDE, Generator, Message, Workload, marker_url

SEED = 11
WORKLOADS = (CLICKS, WIDE, KEYS, ORDERS, CUSTOMERS, VISITS)


def messages(workload: Workload, start: int, stop: int, seed: int = SEED) -> list[Message]:
    generator = Generator(workload, seed)
    try:
        return generator.chunk(start, stop)
    finally:
        generator.close()


def made(workload: Workload, start: int, stop: int, seed: int = SEED) -> list[bytes]:
    return [message["value"] for message in messages(workload, start, stop, seed)]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_events_have_the_declared_columns_and_types(workload: Workload) -> None:
    declared = dict(column.strip().split(" ") for column in workload.columns.split(","))
    kinds = {"BIGINT": int, "INTEGER": int, "VARCHAR": str}
    for value in [*made(workload, 0, 500), workload.marker_message(7)["value"]]:
        event = json.loads(value)
        assert list(event) == list(declared)
        for column, kind in declared.items():
            assert type(event[column]) is kinds[kind]
    assert json.loads(workload.marker_message(7)["value"])["url"] == marker_url(7)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_the_nth_event_of_a_seed_is_always_the_same(workload: Workload) -> None:
    whole = Counter(made(workload, 0, 3_000))
    assert whole == Counter(made(workload, 0, 1_000)) + Counter(made(workload, 1_000, 3_000))
    assert whole != Counter(made(workload, 0, 3_000, seed=SEED + 1))


@pytest.mark.parametrize("workload", [ORDERS, CUSTOMERS, replace(VISITS, primary_key="customer")])
def test_the_records_of_a_changelog_have_the_keys_of_their_rows(workload: Workload) -> None:
    """A topic of a changelog is compacted, and refuses records without a key."""
    for message in [*messages(workload, 0, 500), workload.marker_message(7)]:
        assert message["key"].decode() == json.loads(message["value"])[workload.primary_key]
    assert all(set(message) == {"value"} for message in messages(WIDE, 0, 10))


def test_chunks_cover_a_range_once() -> None:
    generator = Generator(KEYS, SEED)
    times = [json.loads(each["value"])["url"] for chunk in generator.chunks(10, 35, size=10) for each in chunk]
    generator.close()
    assert sorted(times) == sorted(f"key-{number}" for number in range(10, 35))


def test_the_peers_workload_is_the_peers() -> None:
    events = [json.loads(value) for value in made(CLICKS, 0, 50_000)]
    assert 115 <= sum(map(len, made(CLICKS, 0, 50_000))) / 50_000 <= 120
    users = Counter(event["user_id"] for event in events)
    assert len(users) > 9_000
    assert max(users.values()) < 30  # uniform: 5 on average
    assert len({event["device_id"] for event in events}) == 5
    urls = Counter(event["url"] for event in events).most_common()
    assert urls[0][0] == "./catalog/page_1"
    assert 0.12 < urls[0][1] / len(events) < 0.15  # zipf with s = 1 over 1,000: 1 / H(1000) = 0.1336
    assert 1.7 < urls[0][1] / urls[1][1] < 2.3
    keys = {(event["user_id"], event["url"], event["device_id"]) for event in events}
    assert len(keys) > 0.9 * len(events)  # nearly every event is a new key of the third view


def test_a_hundred_views_are_as_the_document_says() -> None:
    views = wide_views(100)
    assert len(views) == 100
    assert len({view.name for view in views}) == 100
    assert len({tuple(sorted(view.keys)) for view in views}) >= 30
    assert sum(view.where is not None for view in views) == 30
    assert {column for view in views for column in view.keys} == {
        "url", "device_id", "country", "campaign", "browser", "plan", "referrer", "user_id"
    }  # fmt: skip
    bodies = {view.create("s").split(" AS ", 1)[1] for view in views}
    assert len(bodies) == 100
    for number in (1, 3, 10):
        assert wide_views(number) == views[:number]
        assert len(clicks_views(number)) == number
    for view_set in (views, clicks_views(10)):
        assert view_set[0].where is None
        assert view_set[0].keys == ("url",)


def test_the_first_ten_views_have_few_keys_and_all_hundred_many() -> None:
    cardinality = {"url": 200, "device_id": 5, "country": 40, "campaign": 50, "browser": 8, "referrer": 30}
    cardinality |= {"user_id": 20_000, "plan": 1}  # the plan follows from the user
    bound = sum(math.prod(cardinality[column] for column in view.keys) for view in wide_views(10))
    assert bound < 100_000
    events = [json.loads(value) for value in made(WIDE, 0, 50_000)]
    assert {column: len({event[column] for event in events}) for column in ("url", "country", "campaign")} == {
        "url": 200, "country": 40, "campaign": 50
    }  # fmt: skip
    assert len({(event["user_id"], event["plan"]) for event in events}) <= 20_000
    seen = [len({tuple(event[column] for column in view.keys) for event in events})
            for view in wide_views(100) if view.where is None and "user_id" in view.keys]  # fmt: skip
    assert sum(seen) > 100_000


def test_statements_read_as_intended() -> None:
    view = next(view for view in wide_views(100) if view.where)
    statement = view.create("events")
    assert statement.startswith(f"CREATE MATERIALIZED VIEW {view.name} AS SELECT {view.keys[0]}")
    assert f" FROM events WHERE {view.where} GROUP BY {', '.join(view.keys)};" in statement
    assert WIDE.declare("events", "k", "t").endswith(
        "'topic.partitions' = 4, 'topic.replicas' = 1, 'value.format' = 'json', 'timestamp' = 'event_ts');"
    )
