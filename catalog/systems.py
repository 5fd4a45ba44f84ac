"""Stores and schema registries as rows. Their names are the server's, not a database's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from catalog import records
from catalog.connection import CatalogConnection, Row
from catalog.counters import next_oid
from catalog.identifiers import check_identifier
from catalog.model import SchemaRegistry, Store
from mvserver import sqlstates
from mvserver.errors import SqlError

System = TypeVar("System", Store, SchemaRegistry)


class Systems(Generic[System]):
    """Other systems that the server reaches by their properties: a table for each sort of them."""

    def __init__(self, connection: CatalogConnection, table: str, word: str, made: Callable[[Row], System]) -> None:
        self._connection = connection
        self._table = table
        self._word = word
        self._made: Callable[[Row], System] = made
        self._select = f"SELECT id, oid, name, type, properties, owner, created_at, updated_at, acl FROM {table}"

    def all(self) -> tuple[System, ...]:
        return tuple(map(self._made, self._connection.read(f"{self._select} ORDER BY name")))

    def find(self, name: str) -> System | None:
        rows = self._connection.read(f"{self._select} WHERE name = ?", (name,))
        return self._made(rows[0]) if rows else None

    def by_id(self, id_: str) -> System | None:
        rows = self._connection.read(f"{self._select} WHERE id = ?", (id_,))
        return self._made(rows[0]) if rows else None

    def get(self, name: str) -> System:
        found = self.find(name)
        if found is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'{self._word} "{name}" does not exist')
        return found

    def check_new(self, name: str) -> None:
        check_identifier(name)
        if self.find(name) is not None:
            raise SqlError(sqlstates.DUPLICATE_OBJECT, f'{self._word} "{name}" already exists')

    def add(self, system: System) -> System:
        """``system.oid`` is replaced by a new one."""
        self.check_new(system.name)
        stored = replace(system, oid=next_oid(self._connection))
        self._connection.write(
            f"INSERT INTO {self._table} (id, oid, name, type, properties, owner, created_at, updated_at) "
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
            f"UPDATE {self._table} SET properties = ?, updated_at = ? WHERE id = ?",
            (records.pairs_text(properties), updated_at, id_),
        )

    def delete(self, id_: str) -> None:
        """Nothing may depend on it."""
        self._connection.write(f"DELETE FROM {self._table} WHERE id = ?", (id_,))


def stores(connection: CatalogConnection) -> Systems[Store]:
    return Systems(connection, "stores", "store", lambda row: Store(*_fields(row)))


def schema_registries(connection: CatalogConnection) -> Systems[SchemaRegistry]:
    return Systems(connection, "schema_registries", "schema registry", lambda row: SchemaRegistry(*_fields(row)))


def _fields(row: Row) -> Row:
    return (*row[:4], records.pairs(row[4]), *row[5:8], records.acl(row[8]))
