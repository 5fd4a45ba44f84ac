"""A server and a broker, each for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, temporary_server
from tests.lenses.broker import Broker


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        yield live.start()


@pytest.fixture(scope="module")
def broker(kafka_broker: KafkaBroker) -> Broker:
    return Broker(kafka_broker.bootstrap)
