"""Schemas as rows."""

from __future__ import annotations

import time
import uuid

from catalog import records
from catalog.acl import Acl, ObjectKind
from catalog.connection import CatalogConnection, Row
from catalog.counters import next_oid
from catalog.default_privileges import DefaultPrivileges
from catalog.identifiers import check_schema_name
from catalog.model import Schema
from mvserver import sqlstates
from mvserver.errors import SqlError

_SELECT = "SELECT id, oid, database_id, name, owner, created_at, acl FROM schemas"


class Schemas:
    def __init__(self, connection: CatalogConnection, defaults: DefaultPrivileges) -> None:
        self._connection = connection
        self._defaults = defaults

    def all(self) -> tuple[Schema, ...]:
        return tuple(map(_schema, self._connection.read(f"{_SELECT} ORDER BY database_id, name")))

    def of_database(self, database_id: str) -> tuple[Schema, ...]:
        return tuple(
            map(_schema, self._connection.read(f"{_SELECT} WHERE database_id = ? ORDER BY name", (database_id,)))
        )

    def find(self, database_id: str, name: str) -> Schema | None:
        rows = self._connection.read(f"{_SELECT} WHERE database_id = ? AND name = ?", (database_id, name))
        return _schema(rows[0]) if rows else None

    def by_id(self, id_: str) -> Schema | None:
        rows = self._connection.read(f"{_SELECT} WHERE id = ?", (id_,))
        return _schema(rows[0]) if rows else None

    def get(self, database_id: str, name: str) -> Schema:
        found = self.find(database_id, name)
        if found is None:
            raise SqlError(sqlstates.INVALID_SCHEMA_NAME, f'schema "{name}" does not exist')
        return found

    def check_new(self, database_id: str, name: str) -> None:
        check_schema_name(name)
        if self.find(database_id, name) is not None:
            raise SqlError(sqlstates.DUPLICATE_SCHEMA, f'schema "{name}" already exists')

    def add(self, database_id: str, name: str, owner: str, acl: Acl | None = None) -> Schema:
        self.check_new(database_id, name)
        acl = acl or self._defaults.of_new(ObjectKind.SCHEMA, owner)
        schema = Schema(str(uuid.uuid4()), next_oid(self._connection), database_id, name, owner, time.time(), acl)
        self._connection.write(
            "INSERT INTO schemas (id, oid, database_id, name, owner, created_at, acl) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (schema.id, schema.oid, database_id, name, owner, schema.created_at, records.acl_text(acl)),
        )
        return schema

    def delete(self, id_: str) -> None:
        """It must be empty."""
        self._connection.write("DELETE FROM schemas WHERE id = ?", (id_,))


def _schema(row: Row) -> Schema:
    return Schema(row[0], row[1], row[2], row[3], row[4], row[5], records.acl(row[6]))
