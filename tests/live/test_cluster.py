"""A server whose Spark is a standalone cluster: its tasks are in other processes, and reach it over TCP alone."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import STREAM, Clicks, LiveServer, check_views, create_views
from tests.live.conftest import LIVE
from tests.live.lane import WITHIN_S, generation, wait_live
from tests.postgresql.test_views import rows_of, store
from tests.services.kinesis import KinesisEmulator, Stream
from tests.services.postgres import LogicalPostgres
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


@pytest.mark.night
@pytest.mark.kinesis
@pytest.mark.postgres
def test_what_the_server_reads_itself_comes_to_executors(
    clustered: LiveServer,
    standalone_spark: StandaloneSpark,
    kinesis: KinesisEmulator,
    kinesis_stream: Callable[..., Stream],
    logical_postgres: LogicalPostgres,
) -> None:
    """Records of Kinesis, and the rows and changes of a table."""
    stream = kinesis_stream(2)
    sent = 0

    def put(count: int) -> None:
        nonlocal sent
        stream.put([(f"k{n % 5}", json.dumps({"n": n}).encode()) for n in range(sent, sent + count)])
        with logical_postgres.connect() as source:
            source.execute("INSERT INTO given SELECT generate_series(%s::bigint, %s::bigint)", (sent, sent + count - 1))
        sent += count

    def seen() -> bool:
        counts = "SELECT (SELECT count(*) FROM streamed), (SELECT count(*) FROM changed)"
        return rows_of(clustered, counts) == [(sent, sent)]

    with logical_postgres.connect() as source:
        source.execute("CREATE TABLE given (n bigint PRIMARY KEY)")
    clustered.run(
        f"CREATE STORE k WITH ({kinesis.properties})",
        f"CREATE STREAM records (n BIGINT) WITH ('store' = 'k', 'topic' = '{stream.name}', 'value.format' = 'json')",
        store(logical_postgres),
        "CREATE CHANGELOG given WITH ('store' = pg)",
    )
    put(500)
    clustered.run(
        "CREATE MATERIALIZED VIEW streamed AS SELECT n FROM records WITH ('starting.position' = 'earliest')",
        "CREATE MATERIALIZED VIEW changed AS SELECT n FROM given",
    )
    clustered.wait_for(seen, WITHIN_S, "rows are missing")
    stream.split()
    put(500)
    clustered.wait_for(seen, WITHIN_S, "rows are missing")
    assert standalone_spark.kill_executors() == 1
    put(500)
    clustered.wait_for(seen, WITHIN_S, "rows are missing")
    numbers = [(n,) for n in range(sent)]
    assert clustered.query("SELECT n FROM streamed ORDER BY n") == numbers
    assert clustered.query("SELECT n FROM changed ORDER BY n") == numbers
    clustered.run("DROP STREAM records CASCADE", "DROP CHANGELOG given CASCADE", "DROP STORE k", "DROP STORE pg")
    with logical_postgres.connect() as source:
        source.execute("DROP TABLE given")
