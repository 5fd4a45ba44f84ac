from __future__ import annotations

from collections.abc import Iterator

import pytest
from session_fakes import World

from mvserver.session.session import Session


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


@pytest.fixture
def session(world: World) -> Session:
    return world.open()
