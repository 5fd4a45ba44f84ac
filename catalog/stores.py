"""Stores as rows. Their names are the server's, not a database's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from catalog import records
from catalog.connection import CatalogConnection, Row
from catalog.counters import next_oid
from catalog.identifiers import check_identifier
from catalog.model import Store
from mvserver import sqlstates
from mvserver.errors import SqlError

_SELECT = "SELECT id, oid, name, type, properties, owner, created_at, updated_at, acl FROM stores"


class Stores:
    def __init__(self, connection: CatalogConnection) -> None:
        self._connection = connection

    def all(self) -> tuple[Store, ...]:
        return tuple(map(_store, self._connection.read(f"{_SELECT} ORDER BY name")))

    def find(self, name: str) -> Store | None:
        rows = self._connection.read(f"{_SELECT} WHERE name = ?", (name,))
        return _store(rows[0]) if rows else None

    def by_id(self, id_: str) -> Store | None:
        rows = self._connection.read(f"{_SELECT} WHERE id = ?", (id_,))
        return _store(rows[0]) if rows else None

    def get(self, name: str) -> Store:
        found = self.find(name)
        if found is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'store "{name}" does not exist')
        return found

    def check_new(self, name: str) -> None:
        check_identifier(name)
        if self.find(name) is not None:
            raise SqlError(sqlstates.DUPLICATE_OBJECT, f'store "{name}" already exists')

    def add(self, store: Store) -> Store:
        """``store.oid`` is replaced by a new one."""
        self.check_new(store.name)
        stored = replace(store, oid=next_oid(self._connection))
        self._connection.write(
            "INSERT INTO stores (id, oid, name, type, properties, owner, created_at, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                stored.id,
                stored.oid,
                stored.name,
                stored.type,
                records.pairs_text(stored.properties),
                stored.owner,
                stored.created_at,
                stored.updated_at,
            ),
        )
        return stored

    def update(self, id_: str, properties: Sequence[tuple[str, str]], updated_at: float) -> None:
        self._connection.write(
            "UPDATE stores SET properties = ?, updated_at = ? WHERE id = ?",
            (records.pairs_text(properties), updated_at, id_),
        )

    def delete(self, id_: str) -> None:
        """No relation may be on it."""
        self._connection.write("DELETE FROM stores WHERE id = ?", (id_,))


def _store(row: Row) -> Store:
    return Store(row[0], row[1], row[2], row[3], records.pairs(row[4]), row[5], row[6], row[7], records.acl(row[8]))
