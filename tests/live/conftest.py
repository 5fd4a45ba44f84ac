"""One server in whose live lane a module's topics are, on the shared broker."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.faults.live import LiveServer, temporary_server

LIVE = {"MVSERVER_LIVE_LANE": "auto", "MVSERVER_SOURCE_CHECK_INTERVAL": "500ms"}


@pytest.fixture(scope="session")
def seed() -> int:
    value = int(os.environ.get("MVSERVER_TEST_SEED", "20261123"))
    print(f"seed {value} (MVSERVER_TEST_SEED)")
    return value


@pytest.fixture(scope="module")
def live_server() -> Iterator[LiveServer]:
    with temporary_server() as server:
        yield server.start(**LIVE)


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with temporary_server() as server:
        yield server
