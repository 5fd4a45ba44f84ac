"""Stores, schema registries and descriptor sources as rows. Their names are the server's, not a database's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from catalog import records
from catalog.connection import CatalogConnection, Row
from catalog.counters import next_oid
from catalog.identifiers import check_identifier
from catalog.model import DescriptorSource, SchemaRegistry, Store
from catalog.sealing import Sealer, is_sealed
from mvserver import sqlstates
from mvserver.errors import SqlError

System = TypeVar("System", Store, SchemaRegistry, DescriptorSource)


class Systems(Generic[System]):
    """What the server knows by its properties, which are sealed, systems that it reaches above all: a table for each
    sort of them."""

    def __init__(
        self, connection: CatalogConnection, sealer: Sealer, table: str, word: str, made: Callable[[Row], System]
    ) -> None:
        self._connection = connection
        self._sealer = sealer
        self._table = table
        self._word = word
        self._of_row: Callable[[Row], System] = made
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
                self._sealed(stored.id, stored.properties),
                stored.owner,
                stored.created_at,
                stored.updated_at,
            ),
        )
        return stored

    def update(self, id_: str, properties: Sequence[tuple[str, str]], updated_at: float) -> None:
        self._connection.write(
            f"UPDATE {self._table} SET properties = ?, updated_at = ? WHERE id = ?",
            (self._sealed(id_, properties), updated_at, id_),
        )

    def seal_all(self) -> None:
        """Those that an older server has left in the clear; looks whether the others can be opened."""
        for id_, text in self._connection.read(f"SELECT id, properties FROM {self._table}"):
            if is_sealed(text):
                self._sealer.opened(text, self._row(id_))
            else:
                sealed = self._sealer.sealed(text, self._row(id_))
                self._connection.write(f"UPDATE {self._table} SET properties = ? WHERE id = ?", (sealed, id_))

    def delete(self, id_: str) -> None:
        """Nothing may depend on it."""
        self._connection.write(f"DELETE FROM {self._table} WHERE id = ?", (id_,))

    def _made(self, row: Row) -> System:
        properties = records.pairs(self._sealer.opened(row[4], self._row(row[0])))
        return self._of_row((*row[:4], properties, *row[5:8], records.acl(row[8])))

    def _sealed(self, id_: str, properties: Sequence[tuple[str, str]]) -> str:
        return self._sealer.sealed(records.pairs_text(properties), self._row(id_))

    def _row(self, id_: str) -> str:
        return f"{self._table}/{id_}"


def stores(connection: CatalogConnection, sealer: Sealer) -> Systems[Store]:
    return Systems(connection, sealer, "stores", "store", lambda row: Store(*row))


def schema_registries(connection: CatalogConnection, sealer: Sealer) -> Systems[SchemaRegistry]:
    return Systems(connection, sealer, "schema_registries", "schema registry", lambda row: SchemaRegistry(*row))


def descriptor_sources(connection: CatalogConnection, sealer: Sealer) -> Systems[DescriptorSource]:
    return Systems(connection, sealer, "descriptor_sources", "descriptor source", lambda row: DescriptorSource(*row))
