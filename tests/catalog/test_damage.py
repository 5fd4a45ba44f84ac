"""A damaged catalog is refused in words, or is read as it was written; the file stays as it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog import integrity, migrations
from catalog.store import Catalog
from mvserver.errors import SqlError
from tests.catalog.objects import query, relation, store

KEY = "key-of-damaged-catalogs"  # beside their folders, and whole
_REFUSALS = {"XX001", "F0000", "58030"}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "catalog.db"
    catalog = Catalog.open(path, tmp_path_factory.getbasetemp() / KEY)
    with catalog.transaction():
        kept = catalog.stores.add(store("k", uris="k:9092", password="secret"))
        source = catalog.relations.add(relation(catalog, "clicks", store_id=kept.id))
        view = catalog.relations.add(relation(catalog, "visits", "materialized view"))
        catalog.queries.add(query(source, view))
        catalog.settings.set("word", "kept")
    catalog.close()
    return path.read_bytes()


def _read(path: Path) -> list[Any]:
    catalog = Catalog.open(path, path.parents[1] / KEY)
    try:
        return [
            part.all()
            for part in (
                catalog.roles, catalog.databases, catalog.schemas, catalog.stores, catalog.relations, catalog.queries,
                catalog.settings,
            )
        ]  # fmt: skip
    finally:
        catalog.close()


def _damaged(content: bytes, step: int) -> Iterator[tuple[str, bytes]]:
    for at in range(0, len(content), step):
        yield f"flip {at}", content[:at] + bytes([content[at] ^ (1 << (at // step) % 8)]) + content[at + 1 :]
    for length in (1, 15, 16, 50, 100, 4_096, 4_097, 8_192, len(content) // 2, len(content) - 4_096, len(content) - 1):
        yield f"cut {length}", content[:length]
    for at in range(0, len(content), 4_096):
        yield f"zeros {at}", content[:at] + bytes(4_096) + content[at + 4_096 :]


def _check(content: bytes, folder: Path, step: int) -> int:
    path = folder / "catalog.db"
    path.write_bytes(content)
    whole = _read(path)
    refused = 0
    for name, damaged in _damaged(content, step):
        for leftover in folder.iterdir():
            leftover.unlink()
        path.write_bytes(damaged)
        try:
            found = _read(path)
        except SqlError as error:
            assert error.sqlstate in _REFUSALS, (name, error)  # noqa: PT017
            assert error.hint or error.sqlstate == "F0000", (name, error)  # noqa: PT017
            assert path.read_bytes() == damaged, name
            refused += 1
            continue
        assert found == whole, name
    return refused


def test_damage_is_refused_or_has_no_effect(content: bytes, tmp_path: Path) -> None:
    assert _check(content, tmp_path, len(content) // 150) > 20


@pytest.mark.night
def test_each_damaged_byte_is_refused_or_has_no_effect(content: bytes, tmp_path: Path) -> None:
    assert _check(content, tmp_path, 7) > 1_000


@pytest.mark.parametrize("left", [None, b""])
def test_a_lost_file_beside_its_log_is_refused_and_the_log_stays(tmp_path: Path, left: bytes | None) -> None:
    path, log = tmp_path / "catalog.db", tmp_path / "catalog.db-wal"
    if left is not None:
        path.write_bytes(left)
    log.write_bytes(b"what was committed")
    with pytest.raises(SqlError, match="XX001: the catalog is damaged"):
        Catalog.open(path)
    assert log.read_bytes() == b"what was committed"


def test_another_letter_in_a_text_is_noticed(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    path.write_bytes(content.replace(b"kept", b"kepu"))
    with pytest.raises(SqlError) as raised:
        Catalog.open(path)
    assert (raised.value.sqlstate, raised.value.message) == ("XX001", "the catalog is damaged")
    assert "put back catalog.db from a backup" in (raised.value.hint or "")


def test_what_a_server_without_digests_has_written_is_accepted(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    path.write_bytes(content)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE settings SET value = 'new' WHERE name = 'word'")
        connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'generation'")
    connection.close()
    catalog = Catalog.open(path)
    assert catalog.settings.get("word") == "new"
    with catalog.transaction():
        catalog.settings.set("word", "newer")
    catalog.close()
    with sqlite3.connect(path) as connection:
        assert integrity.is_whole(lambda sql: connection.execute(sql).fetchall())
        connection.execute(f"DELETE FROM settings WHERE name = '{integrity.SETTING}'")  # made before there were any
    connection.close()
    Catalog.open(path).close()


@pytest.mark.parametrize("steps", [1, 2])
def test_a_further_step_of_the_tables_is_no_damage(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Its rows are changed without a new generation; damage behind it is noticed as before."""
    path = tmp_path / "catalog.db"
    path.write_bytes(content)

    def column(number: int) -> Callable[[sqlite3.Connection], None]:
        def apply(connection: sqlite3.Connection) -> None:
            connection.execute(f"ALTER TABLE stores ADD COLUMN further_{number} TEXT")
            connection.execute("UPDATE roles SET connection_limit = connection_limit + 1")

        return apply

    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, *map(column, range(steps))))
    monkeypatch.setattr(migrations, "VERSION", migrations.VERSION + steps)
    for _ in range(2):
        catalog = Catalog.open(path)
        assert catalog.settings.get("word") == "kept"
        catalog.close()
    path.write_bytes(path.read_bytes().replace(b"kept", b"kepu"))
    with pytest.raises(SqlError, match="the catalog is damaged"):
        Catalog.open(path)


def test_a_damaged_file_of_an_earlier_version_is_refused_before_its_tables_change(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "catalog.db"
    path.write_bytes(damaged := content.replace(b"kept", b"kepu"))
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, lambda connection: None))
    monkeypatch.setattr(migrations, "VERSION", migrations.VERSION + 1)
    with pytest.raises(SqlError, match="the catalog is damaged"):
        Catalog.open(path)
    assert path.read_bytes() == damaged


def test_a_fault_of_the_program_is_no_damage(tmp_path: Path) -> None:
    catalog = Catalog.open(tmp_path / "catalog.db")
    with pytest.raises(sqlite3.ProgrammingError):
        catalog._connection.read("SELECT ?", ())
    catalog.close()
    for use in (lambda: catalog.settings.get("a"), lambda: catalog.transaction().__enter__()):
        with pytest.raises(SqlError) as raised:
            use()
        assert (raised.value.sqlstate, raised.value.message) == ("57P01", "the server is shutting down")
