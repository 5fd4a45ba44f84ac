"""Jars of functions as rows; their bytes are files of the data directory, named by their digests."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from catalog.connection import CatalogConnection, Row
from catalog.counters import next_oid
from catalog.identifiers import check_identifier
from catalog.model import FunctionSource
from mvserver import sqlstates
from mvserver.errors import SqlError

_SELECT = "SELECT id, oid, name, file, digest, description, owner, created_at FROM function_sources"


class FunctionSources:
    def __init__(self, connection: CatalogConnection) -> None:
        self._connection = connection

    def all(self) -> tuple[FunctionSource, ...]:
        return tuple(map(_source, self._connection.read(f"{_SELECT} ORDER BY name")))

    def find(self, name: str) -> FunctionSource | None:
        rows = self._connection.read(f"{_SELECT} WHERE name = ?", (name,))
        return _source(rows[0]) if rows else None

    def by_id(self, id_: str) -> FunctionSource | None:
        rows = self._connection.read(f"{_SELECT} WHERE id = ?", (id_,))
        return _source(rows[0]) if rows else None

    def get(self, name: str, position: int | None = None) -> FunctionSource:
        found = self.find(name)
        if found is None:
            raise SqlError(
                sqlstates.UNDEFINED_OBJECT,
                f'function source "{name}" does not exist',
                hint="LIST FUNCTION_SOURCES shows those that there are.",
                position=position,
            )
        return found

    def check_new(self, name: str) -> None:
        check_identifier(name)
        if self.find(name) is not None:
            raise SqlError(sqlstates.DUPLICATE_OBJECT, f'function source "{name}" already exists')

    def add(self, source: FunctionSource) -> FunctionSource:
        """``id``, ``oid`` and the moment are replaced by new ones."""
        self.check_new(source.name)
        made = replace(source, id=str(uuid.uuid4()), oid=next_oid(self._connection), created_at=time.time())
        self._connection.write(
            "INSERT INTO function_sources (id, oid, name, file, digest, description, owner, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                made.id, made.oid, made.name, made.file, made.digest, made.description, made.owner, made.created_at,
            ),
        )  # fmt: skip
        return made

    def delete(self, id_: str) -> None:
        self._connection.write("DELETE FROM function_sources WHERE id = ?", (id_,))


def _source(row: Row) -> FunctionSource:
    return FunctionSource(*row)
