"""Windows over a real topic of several partitions: the same after kills, and for a view that comes later."""

from __future__ import annotations

import datetime as dt
import json
import random
import time
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import CATCH_UP_TIMEOUT_S, LiveServer
from tests.faults.test_changelogs import latest, no_repetition
from tests.services.kafka import create_topic
from tests.streaming.windows import Event, WindowedView, expected, random_events

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.night]  # two servers, one after the other
PARTITIONS = 3
S = 1000


def _windows(size: int) -> Any:
    return lambda ts: [(ts // size * size, ts // size * size + size)]


VIEWS = {
    "changing": WindowedView("TUMBLE(events, SIZE 10 SECONDS)", _windows(10 * S), delay_ms=2 * S),
    "closed": WindowedView("TUMBLE(events, SIZE 10 SECONDS)", _windows(10 * S), delay_ms=2 * S, final=True),
    "grown": WindowedView("SESSION(events PARTITION BY k, GAP 2 SECONDS)", gap_ms=2 * S, grace_ms=1 * S),
}
LATER = "later"


def _rows(server: LiveServer, view: str) -> list[tuple[Any, ...]]:
    return server.query(
        "SELECT (extract(epoch FROM window_start) * 1000)::bigint, (extract(epoch FROM window_end) * 1000)::bigint, "
        f"k, n, c, s, lo, hi FROM {view} ORDER BY 1, 2, k NULLS FIRST"
    )


def _create(server: LiveServer, name: str, view: WindowedView) -> None:
    options = f" WITH ('window.grace.millis' = {view.grace_ms})" if view.grace_ms else ""

    def created() -> bool:
        try:
            server.run(f"CREATE MATERIALIZED VIEW {name}{options} AS {view.sql}")
        except psycopg.errors.CannotConnectNow:  # Spark is still starting
            return False
        return True

    server.wait_for(created, CATCH_UP_TIMEOUT_S, f"{name} could not be created")


def test_windows_are_what_the_records_say_over_kills(server: LiveServer, kafka_broker: KafkaBroker, seed: int) -> None:
    rng = random.Random(seed)
    events = random_events(rng, 400, PARTITIONS, step_ms=S, disorder_ms=6 * S)
    create_topic(kafka_broker, "windowed", PARTITIONS)
    server.start()
    server.run(
        f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')",
        "CREATE STREAM events (k VARCHAR, v INTEGER, ts BIGINT) "
        "WITH ('store' = 's', 'topic' = 'windowed', 'value.format' = 'json', 'timestamp' = 'ts')",
    )
    for name, view in VIEWS.items():
        _create(server, name, view)
    for name in ("changing", "closed"):
        server.run(
            f"CREATE CHANGELOG {name}_topic WITH ('store' = 's', 'topic' = '{name}_topic', 'retention.millis' = 20000) "
            f"AS {VIEWS[name].sql}"
        )
    _produce(kafka_broker.bootstrap, events[:150])
    server.wait_for(lambda: bool(_rows(server, "changing")), CATCH_UP_TIMEOUT_S, "nothing came")
    server.kill()
    _produce(kafka_broker.bootstrap, events[150:300])
    server.start()
    _produce(kafka_broker.bootstrap, events[300:])
    for name, view in VIEWS.items():
        _check(server, name, view, events)
    _create(server, LATER, VIEWS["closed"])
    _check(server, LATER, VIEWS["closed"], events)
    for name in ("changing", "closed"):
        _check_topic(kafka_broker.bootstrap, f"{name}_topic", VIEWS[name], events)
    ((number,),) = server.query("SELECT late_rows FROM mv_catalog.views WHERE view = 'postgres.public.changing'")
    assert number == len(expected(VIEWS["changing"], events, PARTITIONS)[1])


def _check(server: LiveServer, name: str, view: WindowedView, events: list[Event]) -> None:
    rows, late = expected(view, events, PARTITIONS)
    deadline = time.monotonic() + CATCH_UP_TIMEOUT_S
    while (shown := _rows(server, name)) != rows and time.monotonic() < deadline:
        time.sleep(0.2)
    assert shown == rows, name
    found = server.query(
        "SELECT position, (extract(epoch FROM window_end) * 1000)::bigint FROM mv_catalog.late_rows "
        f"WHERE view = 'postgres.public.{name}'"
    )
    assert sorted(found, key=_by_position) == sorted(late, key=_by_position)


def _check_topic(bootstrap: str, topic: str, view: WindowedView, events: list[Event]) -> None:
    """What was forgotten stays in the topic, and each change is there once."""
    rows = {row[:3]: row for row in expected(view, events, PARTITIONS)[0] if row[2] is not None}
    found, records = latest(bootstrap, topic, lambda found: len(found) == len(rows))
    shown = [tuple(map(_from_text, value.values())) for value in found.values()]
    assert {row[:3]: row for row in shown} == rows, topic
    assert no_repetition(records)
    assert all(value is not None for _, value in records)
    assert not view.final or len(records) == len(rows)


def _from_text(value: Any) -> Any:
    if not isinstance(value, str) or "-" not in value:
        return value
    return round(dt.datetime.fromisoformat(value).replace(tzinfo=dt.UTC).timestamp() * 1000)


def _by_position(row: tuple[str, int | None]) -> tuple[str, bool, int]:
    return row[0], row[1] is not None, row[1] or 0


def _produce(bootstrap: str, events: list[Event]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2})
    for event in events:
        value = {"k": event.k, "v": event.v, **({} if event.ts is None else {"ts": event.ts})}
        producer.produce("windowed", json.dumps(value), partition=event.partition)
    assert producer.flush(60) == 0
