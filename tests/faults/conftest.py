"""One server per module on the shared broker, so that Spark starts as seldom as possible."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.faults.live import LiveServer, temporary_server


@pytest.fixture(scope="session")
def seed() -> int:
    value = int(os.environ.get("MVSERVER_TEST_SEED", "20261121"))
    print(f"seed {value} (MVSERVER_TEST_SEED)")
    return value


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        yield live


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        yield live.start()
