"""Kills and failures in the live lane, under load: nothing is lost, nothing is doubled, and the lane comes back."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import STREAM, Clicks, LiveServer, check_views, create_views, flowing, views_agree
from tests.live.conftest import LIVE
from tests.live.lane import WITHIN_S, lane, wait_live
from tests.services.kafka import create_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.night]
PAUSE_S = 0.05
STEPS = ("live rows", "after spark", "before begin", "after rows", "after ledger", "after commit")


def begun(server: LiveServer, broker: KafkaBroker, topic: str, **environment: str) -> None:
    server.start(**LIVE, **environment)
    server.run(f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{broker.bootstrap}')", STREAM.format(topic=topic))
    create_views(server)
    server.run(
        # Of each record two rows, and three windows: what is committed of it is the whole of it.
        "CREATE MATERIALIZED VIEW twice AS SELECT word, count(*) AS n FROM clicks, "
        "UNNEST(ARRAY[device, url]) AS u (word) WHERE url IS NOT NULL GROUP BY word",
        "CREATE MATERIALIZED VIEW thrice AS SELECT window_start, count(*) AS n "
        "FROM HOP(clicks, SIZE 3 HOURS, ADVANCE BY 1 HOUR) GROUP BY window_start, window_end",
    )


def check_all(server: LiveServer, clicks: Clicks) -> None:
    check_views(server, clicks)
    words: Counter[Any] = Counter()
    for (url, device), count in clicks.truth["by_device"].items():
        if url is not None:
            words.update({(url,): count, (device,): count})
    assert dict(server.query("SELECT word, n FROM twice")) == {word: n for (word,), n in words.items()}
    assert server.query("SELECT sum(n) FROM thrice") == [(3 * clicks.fed,)]


def jvm_of(server: LiveServer) -> int:
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    found = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and _is_jvm(path, server)]
    assert children.exists()
    assert len(found) == 1, found
    return found[0]


def _is_jvm(process: Path, server: LiveServer) -> bool:
    try:
        line = (process / "cmdline").read_bytes()
    except OSError:
        return False
    return b"java" in line.split(b"\0")[0] and str(server.data).encode() in line


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_each_step_of_a_live_commit(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int, step: str
) -> None:
    topic = kafka_topic(3)
    clicks = Clicks(seed, kafka_broker.bootstrap, topic)
    # So many visits come only of a pipeline that is live for long.
    begun(server, kafka_broker, topic, MVSERVER_FAILPOINTS=f"{step}=kill:300")
    clicks.produce(100)
    wait_live(server, topic)
    with flowing(lambda: clicks.produce(20), PAUSE_S):
        server.wait_killed()
        server.start(**LIVE)
        wait_live(server, topic)
        assert views_agree(server)
    check_all(server, clicks)


def test_kills_of_the_server_and_of_its_jvm_under_load(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int
) -> None:
    topic, chance = kafka_topic(4), random.Random(seed)
    clicks = Clicks(seed, kafka_broker.bootstrap, topic)
    begun(server, kafka_broker, topic)
    with flowing(lambda: clicks.produce(20), PAUSE_S):
        for turn in range(4):
            wait_live(server, topic)
            time.sleep(chance.random() * 2)  # a kill at any moment
            if turn % 2:
                os.kill(jvm_of(server), signal.SIGKILL)
                server.wait_for(lambda: lane(server, topic)[0] == "batch", WITHIN_S, "the lane outlives its JVM")
            else:
                server.kill()
                server.start(**LIVE)
        wait_live(server, topic)
        assert views_agree(server)
    check_all(server, clicks)


def test_bursts_are_exact_in_whatever_lane_they_are_read(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int
) -> None:
    """How fast the machine is decides whether the live lane falls behind."""
    topic = kafka_topic(3)
    clicks = Clicks(seed, kafka_broker.bootstrap, topic)
    begun(server, kafka_broker, topic)
    clicks.produce(100)
    wait_live(server, topic)
    for _ in range(2):
        clicks.produce(150_000)
        clicks.produce(1_000)
        check_all(server, clicks)
        wait_live(server, topic)


def test_a_broker_that_goes_and_comes_again(server: LiveServer, own_kafka_broker: KafkaBroker, seed: int) -> None:
    topic = create_topic(own_kafka_broker, "coming", 3)
    clicks = Clicks(seed, own_kafka_broker.bootstrap, topic)
    begun(server, own_kafka_broker, topic)
    clicks.produce(500)
    wait_live(server, topic)
    for _ in range(2):
        clicks.produce(500)
        own_kafka_broker.kill()
        server.wait_for(
            lambda: server.states()["by_url"][0] == "STALLED", WITHIN_S, "nobody notices that the broker is away"
        )
        own_kafka_broker.start()
        clicks.produce(500)
        check_all(server, clicks)
        wait_live(server, topic)
    clicks.produce(500)
    check_all(server, clicks)


def test_a_topic_that_is_made_anew_fails_its_queries(server: LiveServer, own_kafka_broker: KafkaBroker) -> None:
    from confluent_kafka.admin import AdminClient

    topic = create_topic(own_kafka_broker, "anew", 2)
    clicks = Clicks(1, own_kafka_broker.bootstrap, topic)
    begun(server, own_kafka_broker, topic)
    clicks.produce(300)
    wait_live(server, topic)
    check_all(server, clicks)
    admin = AdminClient({"bootstrap.servers": own_kafka_broker.bootstrap})
    admin.delete_topics([topic])[topic].result(60)
    create_topic(own_kafka_broker, topic, 2)
    again = Clicks(2, own_kafka_broker.bootstrap, topic)
    again.produce(1000)
    server.wait_for(lambda: server.states()["by_url"][0] == "FAILED", WITHIN_S, "the new topic is read as the old one")
    for view in ("by_url", "by_device", "by_user"):
        with pytest.raises(AssertionError):
            server.wait_equal(f"SELECT 1, sum(visits)::BIGINT FROM {view}", {(1,): 1300}, timeout_s=1.0)
    check_all(server, clicks)
    assert lane(server, topic)[0] == "batch"


def test_statements_while_lanes_change(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int
) -> None:
    """Views come and go, and queries end and begin again, under load."""
    topic, chance = kafka_topic(3), random.Random(seed)
    clicks = Clicks(seed, kafka_broker.bootstrap, topic)
    begun(server, kafka_broker, topic)
    query = server.query("SELECT id FROM mv_catalog.queries WHERE sink LIKE '%by_device'")[0][0]
    with flowing(lambda: clicks.produce(20), PAUSE_S):
        wait_live(server, topic)
        for number in range(6):
            server.run(f"CREATE MATERIALIZED VIEW v{number} AS SELECT url, count(*) AS visits FROM clicks GROUP BY url")
            if chance.random() < 0.5:
                server.run(f"TERMINATE QUERY '{query}'", f"RESTART QUERY '{query}'")
            time.sleep(chance.random() * 3)
            if number % 2:
                server.run(f"DROP MATERIALIZED VIEW v{number}")
    check_all(server, clicks)
    for number in (0, 2, 4):
        server.wait_equal(f"SELECT url, visits FROM v{number}", clicks.truth["by_url"])
    wait_live(server, topic)
