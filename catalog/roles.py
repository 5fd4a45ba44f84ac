"""Roles as rows. What is kept of a password is its verifier; this room does not know how one is made."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from catalog import records
from catalog.connection import CatalogConnection, Row
from catalog.counters import next_oid
from catalog.identifiers import check_role_name
from catalog.model import Role
from mvserver import sqlstates
from mvserver.errors import SqlError

BOOTSTRAP_OID = 10  # the role that every server begins with, as in PostgreSQL

_SELECT = (
    "SELECT id, oid, name, superuser, created_at, can_login, password, create_database, create_store, "
    "connection_limit, valid_until, settings, bypass_row_security, create_function FROM roles"
)
_OWNING = ("databases", "schemas", "stores", "relations", "enum_types", "functions", "function_sources", "queries")
_OWNED = (
    "SELECT 'database ' || name, owner FROM databases UNION ALL SELECT 'schema ' || name, owner FROM schemas "
    "UNION ALL SELECT 'store ' || name, owner FROM stores UNION ALL SELECT kind || ' ' || name, owner FROM relations "
    "UNION ALL SELECT 'type ' || name, owner FROM enum_types "
    "UNION ALL SELECT 'function ' || name, owner FROM functions "
    "UNION ALL SELECT 'function source ' || name, owner FROM function_sources "
    "UNION ALL SELECT 'query ' || id, owner FROM queries"
)


class Roles:
    def __init__(self, connection: CatalogConnection) -> None:
        self._connection = connection

    def all(self) -> tuple[Role, ...]:
        return tuple(map(_role, self._connection.read(f"{_SELECT} ORDER BY name")))

    def find(self, name: str) -> Role | None:
        rows = self._connection.read(f"{_SELECT} WHERE name = ?", (name,))
        return _role(rows[0]) if rows else None

    def find_in_constant_time(self, name: str) -> Role | None:
        """For log-ins: a row is read and made a role whether the name is one or not, so that no time tells."""
        (row,) = self._connection.read(
            f"{_SELECT} WHERE name = ? OR oid = ? ORDER BY name = ? DESC LIMIT 1", (name, BOOTSTRAP_OID, name)
        )
        role = _role(row)
        return role if role.name == name else None

    def get(self, name: str) -> Role:
        found = self.find(name)
        if found is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'role "{name}" does not exist')
        return found

    def bootstrap(self) -> Role:
        """The role that a server begins with; it is always a superuser."""
        (row,) = self._connection.read(f"{_SELECT} WHERE oid = ?", (BOOTSTRAP_OID,))
        return _role(row)

    def check_new(self, name: str) -> None:
        check_role_name(name)
        if self.find(name) is not None:
            raise SqlError(sqlstates.DUPLICATE_OBJECT, f'role "{name}" already exists')

    def by_oid(self, oid: int) -> Role | None:
        rows = self._connection.read(f"{_SELECT} WHERE oid = ?", (oid,))
        return _role(rows[0]) if rows else None

    def add(self, role: Role) -> Role:
        """``id``, ``oid`` and ``created_at`` are replaced by new ones."""
        self.check_new(role.name)
        made = replace(role, id=str(uuid.uuid4()), oid=next_oid(self._connection), created_at=time.time())
        self._connection.write(
            "INSERT INTO roles (id, oid, name, superuser, created_at) VALUES (?, ?, ?, ?, ?)",
            (made.id, made.oid, made.name, made.superuser, made.created_at),
        )
        self.update(made)
        return made

    def update(self, role: Role) -> None:
        """Everything but its name, which other rows refer to."""
        self._connection.write(
            "UPDATE roles SET superuser = ?, can_login = ?, password = ?, create_database = ?, create_store = ?, "
            "connection_limit = ?, valid_until = ?, settings = ?, bypass_row_security = ?, "
            "create_function = ? WHERE id = ?",
            (
                role.superuser,
                role.can_login,
                role.password,
                role.create_database,
                role.create_store,
                role.connection_limit,
                role.valid_until,
                records.pairs_text(role.settings),
                role.bypass_row_security,
                role.create_function,
                role.id,
            ),
        )

    def rename(self, role: Role, name: str) -> None:
        """Everywhere at once: owners are kept by name."""
        self.check_new(name)
        self._connection.write("PRAGMA defer_foreign_keys = ON")  # until the commit, when all rows have the new name
        self._connection.write("UPDATE roles SET name = ? WHERE id = ?", (name, role.id))
        for table in _OWNING:
            self._connection.write(f"UPDATE {table} SET owner = ? WHERE owner = ?", (name, role.name))

    def owned_by(self, name: str) -> tuple[str, ...]:
        """What belongs to the role, e.g. ``schema sales``."""
        rows = self._connection.read(f"SELECT * FROM ({_OWNED}) WHERE owner = ? ORDER BY 1", (name,))
        return tuple(str(row[0]) for row in rows)

    def delete(self, id_: str) -> None:
        """Nothing may belong to it."""
        self._connection.write("DELETE FROM roles WHERE id = ?", (id_,))


def _role(row: Row) -> Role:
    return Role(
        id=row[0],
        oid=row[1],
        name=row[2],
        superuser=bool(row[3]),
        created_at=row[4],
        can_login=bool(row[5]),
        password=row[6],
        create_database=bool(row[7]),
        create_store=bool(row[8]),
        connection_limit=row[9],
        valid_until=row[10],
        settings=records.pairs(row[11]),
        bypass_row_security=bool(row[12]),
        create_function=bool(row[13]),
    )
