from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databricks.places import Workspace
from tests.databricks.unity_server import serving


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with serving() as unity:
        yield Workspace(unity, tmp_path)
