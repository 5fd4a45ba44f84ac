from __future__ import annotations

from collections.abc import Iterator

import pytest

from mvserver.session.session import Session
from tests.session.fakes import World


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


@pytest.fixture
def session(world: World) -> Session:
    return world.open()
