from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from live_server import LiveServer, with_views


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Shared by all client tests: they leave its views as they found them."""
    made = with_views(LiveServer(tmp_path_factory.mktemp("live")))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[LiveServer]:
    """For tests that change definitions or rows."""
    made = with_views(LiveServer(tmp_path))
    made.start()
    yield made
    made.stop()
