"""kill -9 at named points and at random moments: nothing lost, nothing doubled, views of a pipeline agree."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable

import pytest

from faults.live import STREAM, Clicks, LiveServer, check_views, create_views, views_agree
from mvserver.demo.kafka_broker import KafkaBroker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

POINTS = ("before begin", "after rows", "after ledger", "after commit", "after spark", "before spark commit")


def _set_up(server: LiveServer, broker: KafkaBroker, topic: str) -> None:
    server.run(
        f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{broker.bootstrap}')",
        STREAM.format(topic=topic),
    )
    create_views(server)


def test_kill_at_each_step_of_a_batch_loses_and_doubles_nothing(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int
) -> None:
    topic = kafka_topic(4)
    clicks = Clicks(seed, kafka_broker.bootstrap, topic)
    server.start()
    _set_up(server, kafka_broker, topic)
    clicks.produce(500)
    check_views(server, clicks)
    server.kill()
    chance = random.Random(seed)
    for point in POINTS:
        server.start(MVSERVER_FAILPOINTS=f"{point}=kill:{chance.randint(1, 2)}")
        stop = threading.Event()

        def feed(stop: threading.Event = stop) -> None:
            while not stop.is_set():
                clicks.produce(100)
                stop.wait(0.1)

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            server.wait_killed()
        finally:
            stop.set()
            feeder.join()
    server.start()
    check_views(server, clicks)
    assert views_agree(server)


def test_kill_at_random_while_views_are_read_and_the_checkpoint_is_lost_put_back_and_cut(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int
) -> None:
    topic = kafka_topic(4)
    clicks = Clicks(seed + 1, kafka_broker.bootstrap, topic)
    server.start()
    _set_up(server, kafka_broker, topic)
    clicks.produce(2000)
    check_views(server, clicks)
    chance = random.Random(seed + 1)
    sources = server.data / "sources"
    kept = server.data.parent / "kept"
    shutil.copytree(sources, kept)
    for damage in ("nothing", "last entries", "whole checkpoint", "old copy"):
        for _ in range(chance.randint(1, 5)):
            clicks.produce(400)
            assert views_agree(server)
        server.kill()
        if damage == "last entries":
            for folder in ("offsets", "commits"):
                for checkpoint in sources.glob("*/checkpoint-*"):
                    entries = sorted((e for e in (checkpoint / folder).glob("[0-9]*")), key=lambda e: int(e.name))
                    for entry in entries[-1:]:
                        entry.unlink()
        elif damage == "whole checkpoint":
            shutil.rmtree(sources)
        elif damage == "old copy":
            shutil.rmtree(sources, ignore_errors=True)
            shutil.copytree(kept, sources)
        clicks.produce(300)
        server.start()
        assert views_agree(server)
        check_views(server, clicks)
    assert server.stop() == 0


@pytest.mark.night
def test_fifty_kills(server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int) -> None:
    topic = kafka_topic(4)
    clicks = Clicks(seed + 2, kafka_broker.bootstrap, topic)
    server.start()
    _set_up(server, kafka_broker, topic)
    chance = random.Random(seed + 2)
    for _ in range(50):
        for _ in range(chance.randint(1, 8)):
            clicks.produce(500)
            assert views_agree(server)
        server.kill()
        server.start()
    check_views(server, clicks)
