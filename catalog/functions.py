"""Functions of users as rows. Several may have one name: their signatures, the types of arguments, tell them apart."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from catalog import records
from catalog.acl import ObjectKind
from catalog.connection import CatalogConnection, Row
from catalog.counters import next_oid
from catalog.default_privileges import DefaultPrivileges
from catalog.identifiers import check_identifier
from catalog.model import Function
from mvserver import sqlstates
from mvserver.errors import SqlError

_COLUMNS = (
    "id, oid, schema_id, name, signature, parameters, result, language, body, strict, timeout_ms, memory_bytes, "
    "confined, owner, created_at, updated_at, acl, aggregate, source_id, method"
)
_SELECT = f"SELECT {_COLUMNS} FROM functions"


class Functions:
    def __init__(self, connection: CatalogConnection, default_privileges: DefaultPrivileges) -> None:
        self._connection = connection
        self._default_privileges = default_privileges

    def all(self) -> tuple[Function, ...]:
        return tuple(map(_function, self._connection.read(f"{_SELECT} ORDER BY oid")))

    def of_schema(self, schema_id: str) -> tuple[Function, ...]:
        rows = self._connection.read(f"{_SELECT} WHERE schema_id = ? ORDER BY name, signature", (schema_id,))
        return tuple(map(_function, rows))

    def by_id(self, id_: str) -> Function | None:
        rows = self._connection.read(f"{_SELECT} WHERE id = ?", (id_,))
        return _function(rows[0]) if rows else None

    def of_source(self, source_id: str) -> tuple[Function, ...]:
        rows = self._connection.read(f"{_SELECT} WHERE source_id = ? ORDER BY name, signature", (source_id,))
        return tuple(map(_function, rows))

    def named(self, schema_id: str, name: str) -> tuple[Function, ...]:
        rows = self._connection.read(
            f"{_SELECT} WHERE schema_id = ? AND name = ? ORDER BY signature", (schema_id, name)
        )
        return tuple(map(_function, rows))

    def find(self, schema_id: str, name: str, signature: str) -> Function | None:
        return next((each for each in self.named(schema_id, name) if each.signature == signature), None)

    def add(self, function: Function) -> Function:
        """``id``, ``oid`` and the moments are replaced by new ones."""
        check_identifier(function.name)
        if self.find(function.schema_id, function.name, function.signature) is not None:
            word = "AGGREGATE" if function.aggregate else "FUNCTION"
            raise SqlError(
                sqlstates.DUPLICATE_FUNCTION,
                f'function "{function.name}" already exists with same argument types',
                hint=f"Use CREATE OR REPLACE {word} to give it another text.",
            )
        now = time.time()
        acl = self._default_privileges.of_new(ObjectKind.FUNCTION, function.owner, function.schema_id)
        made = replace(
            function, id=str(uuid.uuid4()), oid=next_oid(self._connection), created_at=now, updated_at=now, acl=acl
        )
        self._connection.write(
            f"INSERT INTO functions ({_COLUMNS}) VALUES ({', '.join('?' * 20)})",
            (
                made.id, made.oid, made.schema_id, made.name, made.signature, records.pairs_text(made.parameters),
                made.result, made.language, made.body, made.strict, made.timeout_ms, made.memory_bytes,
                made.confined, made.owner, made.created_at, made.updated_at, records.acl_text(made.acl),
                made.aggregate, made.source_id, made.method,
            ),
        )  # fmt: skip
        return made

    def replace(self, old: Function, new: Function) -> None:
        """Another text, under the same name, owner and privileges."""
        self._connection.write(
            "UPDATE functions SET parameters = ?, body = ?, strict = ?, timeout_ms = ?, memory_bytes = ?, "
            "confined = ?, updated_at = ?, source_id = ?, method = ?, language = ? WHERE id = ?",
            (
                records.pairs_text(new.parameters), new.body, new.strict, new.timeout_ms, new.memory_bytes,
                new.confined, time.time(), new.source_id, new.method, new.language, old.id,
            ),
        )  # fmt: skip

    def delete(self, id_: str) -> None:
        self._connection.write("DELETE FROM functions WHERE id = ?", (id_,))


def _function(row: Row) -> Function:
    return Function(
        id=row[0],
        oid=row[1],
        schema_id=row[2],
        name=row[3],
        signature=row[4],
        parameters=records.pairs(row[5]),
        result=row[6],
        language=row[7],
        body=row[8],
        strict=bool(row[9]),
        timeout_ms=row[10],
        memory_bytes=row[11],
        confined=bool(row[12]),
        owner=row[13],
        created_at=row[14],
        updated_at=row[15],
        acl=records.acl(row[16]),
        aggregate=bool(row[17]),
        source_id=row[18],
        method=row[19],
    )
