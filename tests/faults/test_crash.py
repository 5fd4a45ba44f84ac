"""kill -9 at named points and at random moments: nothing lost, nothing doubled, views of a pipeline agree."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import STREAM, Clicks, LiveServer, check_views, create_views, views_agree

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

EACH_CHANGE = {  # where a kill falls, and what happens to Spark's files then
    "after rows": "old copy back",
    "after commit": "whole checkpoint gone",
}
NIGHT = {
    "after spark": "old copy back",
    "before begin": "nothing",
    "after ledger": "old copy back",
    "before spark commit": "last entries gone",
    "after rows": "last entries gone",
}


def _set_up(server: LiveServer, broker: KafkaBroker, topic: str) -> None:
    server.run(
        f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{broker.bootstrap}')",
        STREAM.format(topic=topic),
    )
    create_views(server)


@pytest.mark.parametrize(
    ("damages", "lane"),
    [(EACH_CHANGE, "auto"), *(pytest.param(NIGHT, lane, marks=pytest.mark.night) for lane in ("auto", "off"))],
)
def test_kills_at_steps_of_a_batch_and_checkpoints_lost_cut_and_put_back_lose_and_double_nothing(
    server: LiveServer,
    kafka_broker: KafkaBroker,
    kafka_topic: Callable[..., str],
    seed: int,
    damages: Mapping[str, str],
    lane: str,
) -> None:
    topic = kafka_topic(4)
    clicks = Clicks(seed, kafka_broker.bootstrap, topic)
    server.start(MVSERVER_LIVE_LANE=lane)
    _set_up(server, kafka_broker, topic)
    clicks.produce(500)
    check_views(server, clicks)
    sources = server.data / "sources"
    kept = server.data.parent / "kept"
    shutil.copytree(sources, kept, ignore_dangling_symlinks=True)
    server.kill()  # at no step of its own choosing
    chance = random.Random(seed)
    for point, damage in damages.items():
        server.start(MVSERVER_FAILPOINTS=f"{point}=kill:{chance.randint(1, 2)}", MVSERVER_LIVE_LANE=lane)
        with _fed_and_read(server, clicks) as disagreed:
            server.wait_killed()
        assert not disagreed
        _damage(sources, kept, damage)
    server.start(MVSERVER_LIVE_LANE=lane)
    check_views(server, clicks)
    assert views_agree(server)
    assert server.stop() == 0


@contextmanager
def _fed_and_read(server: LiveServer, clicks: Clicks) -> Iterator[list[str]]:
    """Clicks come in, and the views are read together, until the end of the block; yields what reads disagreed."""
    stop = threading.Event()
    disagreed: list[str] = []

    def feed() -> None:
        while not stop.is_set():
            clicks.produce(100)
            stop.wait(0.1)

    def read() -> None:
        while not stop.is_set():
            try:
                if not views_agree(server):
                    disagreed.append(time.ctime())
            except psycopg.OperationalError:
                pass  # it was killed
            stop.wait(0.2)  # the server has other work to do on two cores

    threads = [threading.Thread(target=feed), threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    try:
        yield disagreed
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _damage(sources: Path, kept: Path, damage: str) -> None:
    """What can happen to Spark's own files while the server is down."""
    if damage == "last entries gone":
        for checkpoint in sources.glob("*/checkpoint-*"):
            for folder in ("offsets", "commits"):
                entries = sorted((checkpoint / folder).glob("[0-9]*"), key=lambda entry: int(entry.name))
                for entry in entries[-1:]:
                    entry.unlink()
    elif damage == "whole checkpoint gone":
        shutil.rmtree(sources)
    elif damage == "old copy back":
        shutil.rmtree(sources)
        shutil.copytree(kept, sources)


@pytest.mark.night
@pytest.mark.parametrize("lane", ["auto", "off"])
def test_fifty_kills(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int, lane: str
) -> None:
    topic = kafka_topic(4)
    clicks = Clicks(seed + 2, kafka_broker.bootstrap, topic)
    server.start(MVSERVER_LIVE_LANE=lane)
    _set_up(server, kafka_broker, topic)
    chance = random.Random(seed + 2)
    for _ in range(50):
        for _ in range(chance.randint(1, 8)):
            clicks.produce(500)
            assert views_agree(server)
        server.kill()
        server.start(MVSERVER_LIVE_LANE=lane)
    check_views(server, clicks)
