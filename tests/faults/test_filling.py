"""A view is filled in rounds beside live ones, and the server is killed between them: no record is lost or doubled."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import STREAM, VIEWS, Clicks, LiveServer, check_views

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.night]

HISTORY = 100_000
_SLICE = 10_000  # a producer's queue holds no more than some of these
_FILL_TIMEOUT_S = 180.0


def _create(server: LiveServer, view: str) -> None:
    keys = ", ".join(VIEWS[view])
    server.run(
        f"CREATE MATERIALIZED VIEW {view} AS SELECT {keys}, count(*) AS visits, sum(n) AS total "
        f"FROM clicks GROUP BY {keys}"
    )


def test_a_view_that_is_filled_beside_live_ones_survives_a_kill_between_its_rounds(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int
) -> None:
    topic = kafka_topic(4)
    clicks = Clicks(seed, kafka_broker.bootstrap, topic)
    for _ in range(0, HISTORY, _SLICE):
        clicks.produce(_SLICE)
    server.start()
    server.run(f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')", STREAM.format(topic=topic))
    _create(server, "by_url")
    server.wait_equal("SELECT url, visits FROM by_url", clicks.truth["by_url"])
    stop = threading.Event()

    def feed() -> None:
        while not stop.is_set():
            clicks.produce(100)
            stop.wait(0.1)

    feeding = threading.Thread(target=feed)
    feeding.start()
    shares: list[float] = []

    def begun() -> bool:
        for (share,) in server.query("SELECT share FROM mv_catalog.backfills WHERE rows_done > 0"):
            shares.append(share)
        return bool(shares)

    try:
        live_at = clicks.fed + 500  # live batches go on beside the rounds
        server.wait_for(
            lambda: server.query("SELECT sum(visits) FROM by_url")[0][0] >= live_at, _FILL_TIMEOUT_S, "nothing came in"
        )
        _create(server, "by_device")
        _create(server, "by_user")
        server.wait_for(begun, _FILL_TIMEOUT_S, "no round of filling was committed")
        server.kill()
        server.start()
        server.wait_for(
            lambda: not server.query("SELECT view FROM mv_catalog.backfills"), _FILL_TIMEOUT_S, "it was not filled"
        )
    finally:
        stop.set()
        feeding.join()
    assert 0 < shares[0] < 1  # told while it was filled
    check_views(server, clicks)
    assert server.stop() == 0
