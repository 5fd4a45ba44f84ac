"""CREATE STREAM AS and INSERT INTO: each record exactly once, over kills between the steps of a write."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

import pytest

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import STREAM, Clicks, LiveServer, topic_values
from tests.services.kafka import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.mark.night  # each change kills the sink itself: tests/kafka/test_sink.py
@pytest.mark.parametrize("point", ["after sink", "before sink"])
def test_a_stream_made_by_a_query_has_each_record_once(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int, point: str
) -> None:
    topic, sink = kafka_topic(4), f"out-{uuid.uuid4().hex[:8]}"
    clicks = Clicks(seed, kafka_broker.bootstrap, topic)
    server.start()
    server.run(
        f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')",
        STREAM.format(topic=topic),
        f"CREATE STREAM homes WITH ('topic' = '{sink}') AS SELECT n, n * 2 AS twice, url, user_id "
        "FROM clicks WITH ('starting.position' = 'earliest') WHERE url = './home'",
    )
    clicks.produce(500)
    server.wait_for(lambda: server.states()["homes"][0] == "RUNNING", 60, "the query does not run")
    server.kill()
    server.start(MVSERVER_FAILPOINTS=f"{point}=kill:2")
    while server.process.poll() is None:  # two batches are needed: fed until the second has come
        clicks.produce(100)
        time.sleep(0.2)
    server.start()
    expected = clicks.truth["by_url"][("./home",)]
    rows = topic_values(kafka_broker.bootstrap, sink, expected)
    numbers = [row["n"] for row in rows]
    assert len(numbers) == len(set(numbers)) == expected
    assert all(row["twice"] == 2 * int(str(row["n"])) and row["url"] == "./home" for row in rows)
    assert list(rows[0]) == ["n", "twice", "url", "user_id"]
    described = dict(server.query("SELECT kind, state FROM mv_catalog.queries"))
    assert described == {"create_stream_as": "RUNNING"}


@pytest.mark.night
def test_insert_into_writes_between_two_clusters(
    server: LiveServer, kafka_broker: KafkaBroker, own_kafka_broker: KafkaBroker, kafka_topic: Callable[..., str]
) -> None:
    topic, sink = kafka_topic(2), create_topic(own_kafka_broker, "far", 3)
    server.start()
    server.run(
        f"CREATE STORE near WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')",
        f"CREATE STORE far WITH ('type' = KAFKA, 'uris' = '{own_kafka_broker.bootstrap}')",
        STREAM.format(topic=topic).replace("'s'", "'near'"),
        f"CREATE STREAM doubled (n BIGINT, twice BIGINT) WITH ('store' = 'far', 'topic' = '{sink}', "
        "'value.format' = 'json', 'key.columns' = 'n')",
        "INSERT INTO doubled SELECT n, n * 2 AS twice FROM clicks WITH ('starting.position' = 'earliest')",
    )
    clicks = Clicks(5, kafka_broker.bootstrap, topic)
    clicks.produce(400)
    server.wait_for(lambda: server.states()["doubled"][0] == "RUNNING", 60, "the query does not run")
    server.kill()
    clicks.produce(300)
    server.start()
    rows = topic_values(own_kafka_broker.bootstrap, sink, clicks.fed)
    assert sorted(int(str(row["n"])) for row in rows) == list(range(1, clicks.fed + 1))
    assert all(int(str(row["twice"])) == 2 * int(str(row["n"])) for row in rows)
