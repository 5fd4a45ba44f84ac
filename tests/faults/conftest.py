"""One server per module on the shared broker, so that Spark starts as seldom as possible."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.live import LiveServer


@pytest.fixture(scope="session")
def seed() -> int:
    value = int(os.environ.get("MVSERVER_TEST_SEED", "20261121"))
    print(f"seed {value} (MVSERVER_TEST_SEED)")
    return value


@pytest.fixture
def server() -> Iterator[LiveServer]:
    folder = Path(tempfile.mkdtemp(prefix="mvserver-faults-"))
    live = LiveServer(folder / "data")
    try:
        yield live
    finally:
        live.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    folder = Path(tempfile.mkdtemp(prefix="mvserver-faults-"))
    live = LiveServer(folder / "data")
    try:
        yield live.start()
    finally:
        live.close()
        shutil.rmtree(folder, ignore_errors=True)
