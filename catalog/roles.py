"""Roles as rows. What is kept of a password is its verifier; this room does not know how one is made."""

from __future__ import annotations

import time
import uuid

from catalog.connection import CatalogConnection, Row
from catalog.counters import next_oid
from catalog.identifiers import check_role_name
from catalog.model import Role
from mvserver import sqlstates
from mvserver.errors import SqlError

BOOTSTRAP_OID = 10  # the role that every server begins with, as in PostgreSQL

_SELECT = "SELECT id, oid, name, superuser, created_at, can_login, password FROM roles"
_OWNED = (
    "SELECT 'database ' || name, owner FROM databases UNION ALL SELECT 'schema ' || name, owner FROM schemas "
    "UNION ALL SELECT 'store ' || name, owner FROM stores UNION ALL SELECT kind || ' ' || name, owner FROM relations "
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

    def add(self, name: str, *, superuser: bool, can_login: bool, password: str | None) -> Role:
        self.check_new(name)
        role = Role(
            str(uuid.uuid4()), next_oid(self._connection), name, superuser, time.time(), can_login, password=password
        )
        self._connection.write(
            "INSERT INTO roles (id, oid, name, superuser, created_at, can_login, password) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (role.id, role.oid, name, superuser, role.created_at, can_login, password),
        )
        return role

    def update(self, role: Role) -> None:
        """Everything but its name, which other rows refer to."""
        self._connection.write(
            "UPDATE roles SET superuser = ?, can_login = ?, password = ? WHERE id = ?",
            (role.superuser, role.can_login, role.password, role.id),
        )

    def owned_by(self, name: str) -> tuple[str, ...]:
        """What belongs to the role, e.g. ``schema sales``."""
        rows = self._connection.read(f"SELECT * FROM ({_OWNED}) WHERE owner = ? ORDER BY 1", (name,))
        return tuple(str(row[0]) for row in rows)

    def delete(self, id_: str) -> None:
        """Nothing may belong to it."""
        self._connection.write("DELETE FROM roles WHERE id = ?", (id_,))


def _role(row: Row) -> Role:
    return Role(row[0], row[1], row[2], bool(row[3]), row[4], bool(row[5]), password=row[6])
