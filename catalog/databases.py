"""Databases as rows. A new one has the schema public."""

from __future__ import annotations

import time
import uuid

from catalog import acl, records
from catalog.connection import CatalogConnection, Row
from catalog.counters import next_oid
from catalog.identifiers import check_identifier
from catalog.model import Database
from catalog.roles import Roles
from catalog.schemas import Schemas
from mvserver import sqlstates
from mvserver.errors import SqlError

_SELECT = "SELECT id, oid, name, owner, created_at, acl FROM databases"


class Databases:
    def __init__(self, connection: CatalogConnection, schemas: Schemas, roles: Roles) -> None:
        self._connection = connection
        self._schemas = schemas
        self._roles = roles

    def all(self) -> tuple[Database, ...]:
        return tuple(map(_database, self._connection.read(f"{_SELECT} ORDER BY name")))

    def find(self, name: str) -> Database | None:
        rows = self._connection.read(f"{_SELECT} WHERE name = ?", (name,))
        return _database(rows[0]) if rows else None

    def by_id(self, id_: str) -> Database | None:
        rows = self._connection.read(f"{_SELECT} WHERE id = ?", (id_,))
        return _database(rows[0]) if rows else None

    def get(self, name: str) -> Database:
        found = self.find(name)
        if found is None:
            raise SqlError(sqlstates.INVALID_CATALOG_NAME, f'database "{name}" does not exist')
        return found

    def check_new(self, name: str) -> None:
        check_identifier(name)
        if self.find(name) is not None:
            raise SqlError(sqlstates.DUPLICATE_DATABASE, f'database "{name}" already exists')

    def add(self, name: str, owner: str) -> Database:
        self.check_new(name)
        database = Database(str(uuid.uuid4()), next_oid(self._connection), name, owner, time.time())
        self._connection.write(
            "INSERT INTO databases (id, oid, name, owner, created_at) VALUES (?, ?, ?, ?, ?)",
            (database.id, database.oid, name, owner, database.created_at),
        )
        self._schemas.add(database.id, "public", owner, acl.of_public_schema(self._roles.get(owner).oid))
        return database

    def delete(self, id_: str) -> None:
        """Its schemas must be empty: they go with it."""
        self._connection.write("DELETE FROM schemas WHERE database_id = ?", (id_,))
        self._connection.write("DELETE FROM databases WHERE id = ?", (id_,))


def _database(row: Row) -> Database:
    return Database(row[0], row[1], row[2], row[3], row[4], records.acl(row[5]))
