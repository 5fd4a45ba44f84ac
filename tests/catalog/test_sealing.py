"""Properties of stores are nowhere in the clear, and open with their key alone."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from catalog import integrity
from catalog.model import SchemaRegistry, Store
from catalog.sealing import KEY_FILE, Sealer
from catalog.store import Catalog
from mvserver.errors import SqlError

SECRET = "pa55-of-the-store"
PROPERTIES = (("type", "KAFKA"), ("sasl.password", SECRET), ("uris", "broker:9092"))


@contextmanager
def _open(folder: Path, key_file: Path | None = None) -> Iterator[Catalog]:
    catalog = Catalog.open(folder / "catalog.db", key_file)
    try:
        yield catalog
    finally:
        catalog.close()


def _fill(catalog: Catalog) -> None:
    now = time.time()
    with catalog.transaction():
        for name in ("one", "two"):
            catalog.stores.add(Store(str(uuid.uuid4()), 0, name, "KAFKA", PROPERTIES, "postgres", now, now))
        registry = SchemaRegistry(str(uuid.uuid4()), 0, "r", "CONFLUENT", PROPERTIES, "postgres", now, now)
        catalog.schema_registries.add(registry)


def _texts(folder: Path) -> str:
    return "".join(file.read_bytes().decode("latin-1") for file in folder.iterdir() if file.name.startswith("catalog"))


def test_a_secret_is_in_no_file_of_the_catalog(tmp_path: Path) -> None:
    with _open(tmp_path) as catalog:
        _fill(catalog)
        store = catalog.stores.get("one")
        with catalog.transaction():
            catalog.stores.update(store.id, (("sasl.password", SECRET + "2"),), 1.0)
        assert SECRET not in _texts(tmp_path)
    assert SECRET not in _texts(tmp_path)
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    with _open(tmp_path) as catalog:
        catalog.seal_all()
        assert catalog.stores.get("one").properties == (("sasl.password", SECRET + "2"),)
        assert catalog.stores.by_id(store.id) == catalog.stores.get("one")
        assert [found.properties for found in catalog.stores.all()][1] == PROPERTIES
        assert catalog.schema_registries.get("r").properties == PROPERTIES


def test_without_stores_there_is_no_key(tmp_path: Path) -> None:
    with _open(tmp_path) as catalog:
        catalog.seal_all()
    assert not (tmp_path / KEY_FILE).exists()


def test_what_an_older_server_left_in_the_clear_is_sealed(tmp_path: Path) -> None:
    with _open(tmp_path) as catalog:
        _fill(catalog)
    text = str([list(pair) for pair in PROPERTIES]).replace("'", '"')
    with sqlite3.connect(tmp_path / "catalog.db", isolation_level=None) as file:
        for table in ("stores", "schema_registries"):
            file.execute(f"UPDATE {table} SET properties = ?", (text,))
        integrity.seal(file.execute, lambda sql: file.execute(sql).fetchall())
    file.close()
    assert SECRET in _texts(tmp_path)
    with _open(tmp_path) as catalog:
        assert catalog.stores.get("two").properties == PROPERTIES
        catalog.seal_all()
        assert catalog.stores.get("two").properties == PROPERTIES
    assert SECRET not in _texts(tmp_path)


@pytest.mark.parametrize(
    ("how", "words"), [("missing", "is missing"), ("another", "is another one"), ("cut", "is not a whole one")]
)
def test_a_wrong_key_is_refused(tmp_path: Path, how: str, words: str) -> None:
    with _open(tmp_path) as catalog:
        _fill(catalog)
    key = tmp_path / KEY_FILE
    before = key.read_text()
    if how == "missing":
        key.unlink()
    elif how == "another":
        key.unlink()
        Sealer(key).sealed("x", "y")
    else:
        key.write_text(before[:10])
    with _open(tmp_path) as catalog:
        for read in (catalog.seal_all, catalog.stores.all):
            with pytest.raises(SqlError, match=words) as raised:
                read()
            assert raised.value.sqlstate == "F0000"
            assert str(key) in (raised.value.detail or "")
    key.write_text(before)
    with _open(tmp_path) as catalog:
        catalog.seal_all()
        assert len(catalog.stores.all()) == 2


def test_the_key_may_lie_elsewhere(tmp_path: Path) -> None:
    folder, key = tmp_path / "data", tmp_path / "keys" / "mine"
    with _open(folder, key) as catalog:
        _fill(catalog)
    assert key.exists()
    assert not (folder / KEY_FILE).exists()
    shutil.copytree(folder, tmp_path / "copy")
    with _open(tmp_path / "copy", key) as catalog:
        assert catalog.stores.get("one").properties == PROPERTIES


def test_a_sealed_text_opens_in_its_own_row_alone(tmp_path: Path) -> None:
    sealer = Sealer(tmp_path / KEY_FILE)
    sealed = sealer.sealed("text", "stores/1")
    assert sealer.sealed("text", "stores/1") != sealed
    assert Sealer(tmp_path / KEY_FILE).opened(sealed, "stores/1") == "text"
    with pytest.raises(SqlError, match="another one"):
        sealer.opened(sealed, "stores/2")
    assert sealer.opened("plain", "stores/1") == "plain"
