"""A server whose Spark is a standalone cluster: its tasks are in other processes, and reach it over TCP alone."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import STREAM, Clicks, LiveServer, check_views, create_views
from tests.live.conftest import LIVE
from tests.live.lane import generation, wait_live
from tests.services.standalone import StandaloneSpark, standalone_spark

__all__ = ["standalone_spark"]
pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.fixture
def clustered(server: LiveServer, standalone_spark: StandaloneSpark) -> LiveServer:
    return server.start(**LIVE, MVSERVER_SPARK_MASTER=standalone_spark.master)


def test_views_are_live_and_exact_through_the_end_of_executors(
    clustered: LiveServer,
    standalone_spark: StandaloneSpark,
    kafka_broker: KafkaBroker,
    kafka_topic: Callable[..., str],
    seed: int,
) -> None:
    name = kafka_topic(3)
    clicks = Clicks(seed, kafka_broker.bootstrap, name)
    clustered.run(
        f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')",
        STREAM.format(topic=name),
    )
    create_views(clustered)
    clicks.produce(5_000)
    live = wait_live(clustered, name)
    clicks.produce(500)
    check_views(clustered, clicks)
    for _ in range(2):
        assert standalone_spark.kill_executors() == 1
        clicks.produce(500)
        check_views(clustered, clicks)
        clicks.produce(500)
        live = wait_live(clustered, name, live)
        clicks.produce(500)
        check_views(clustered, clicks)
    assert generation(clustered, name) >= live


@pytest.mark.night
def test_functions_in_python_run_in_executors(
    clustered: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str]
) -> None:
    name = kafka_topic(2)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    for number in range(1, 101):
        producer.produce(name, value=json.dumps({"x": number}).encode())
    assert producer.flush(60) == 0
    clustered.run(
        f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')",
        f"CREATE STREAM n (x BIGINT) WITH ('store' = 's', 'topic' = '{name}', 'value.format' = 'json')",
        "CREATE FUNCTION half(x BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS 'return x // 2'",
        "CREATE MATERIALIZED VIEW halves AS SELECT half(x) AS h, sum(x) AS s FROM n GROUP BY half(x)",
    )
    expected: dict[tuple[int], int] = {}
    for number in range(1, 101):
        expected[(number // 2,)] = expected.get((number // 2,), 0) + number
    clustered.wait_equal("SELECT h, s FROM halves", expected)
