"""The data directory is its owner's alone, whatever made its files and whenever."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.store import Catalog
from mvserver.private_files import keep_private
from mvserver.serving.engine.database import Database
from tests.server.program import refusal


@pytest.fixture(autouse=True)
def _own_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def _modes(folder: Path, but: Path) -> set[tuple[bool, int]]:
    return {
        (path.is_dir(), stat.S_IMODE(path.lstat().st_mode))
        for path in (folder, *folder.rglob("*"))
        if not path.is_symlink() and but not in path.parents
    }


def test_what_is_there_and_what_comes_is_private(tmp_path: Path) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside.json"
    outside.write_text("{}")
    for folder in ("spark/a/b", "sources/1", "store-config", "files/events"):
        (data / folder).mkdir(parents=True)
    for name in ("views.duckdb.damaged-1", "sources/1/files.journal", "spark/a/b/x", "server.lock", "files/events/e"):
        (data / name).write_text("x")
    (data / "spark" / "link").symlink_to(outside)
    keep_private(data, data / "files")
    with Database.open(data / "views.duckdb") as database:
        cursor = database.cursor()
        cursor.execute("CREATE TABLE _state.t AS SELECT range AS n FROM range(1000)")
        assert (data / "views.duckdb.wal").exists()
        cursor.execute("SET memory_limit = '40MB'")
        cursor.execute("CREATE TEMP TABLE spilled AS SELECT range AS n, md5(range::VARCHAR) AS m FROM range(2_000_000)")
        assert any(path.is_file() for path in (data / "spill").iterdir())
        catalog = Catalog.open(data / "catalog.db")
        database.watch_of(data / "views.duckdb").notice(Exception("Corrupt database file: computed checksum 1"))
        assert _modes(data, data / "files") == {(True, 0o700), (False, 0o600)}
        catalog.close()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644
    assert stat.S_IMODE((data / "files" / "events" / "e").stat().st_mode) == 0o644


@pytest.mark.parametrize("in_the_way", ["data", "data/server.lock/x", "data/files"])
def test_a_data_directory_that_cannot_be_used_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_the_way: str
) -> None:
    """A disk that may only be read, or what else is in the way, ended the start with a trace."""
    path = tmp_path / in_the_way
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    told = refusal(monkeypatch, tmp_path)
    assert f"data directory {tmp_path / 'data'} cannot be used" in told
    assert "HINT:" in told
