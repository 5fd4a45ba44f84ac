from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving.kept import MEMORY
from tests.serving.server import PullServer
from tests.serving.world import World


@pytest.fixture(scope="module", autouse=True)
def _prepared(copied_system_catalog: None) -> None:
    """Most tests here open a database of their own."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("serving"))
    yield made
    made.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PullServer]:
    """One that keeps finished rows, for modules that make none of their own."""
    with PullServer(tmp_path, finished_rows_memory=MEMORY) as made:
        yield made
