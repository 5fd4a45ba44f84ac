from __future__ import annotations

from pathlib import Path

import pytest

from tests.iceberg.places import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)
