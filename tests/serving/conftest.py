from __future__ import annotations

from collections.abc import Iterator

import pytest
from serving_world import World


@pytest.fixture(scope="module", autouse=True)
def _prepared(copied_system_catalog: None) -> None:
    """Most tests here open a database of their own."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("serving"))
    yield made
    made.close()
