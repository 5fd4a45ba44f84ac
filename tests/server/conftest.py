"""A server's rooms over the kept directory, in the process of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mvserver.server import Rooms
from tests.server.kept_directory import opened_rooms, unpack


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    unpack(tmp_path)
    return tmp_path


@pytest.fixture
def rooms(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rooms]:
    with opened_rooms(folder, monkeypatch) as opened:
        yield opened
