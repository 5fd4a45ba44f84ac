"""Roles as rows."""

from __future__ import annotations

from catalog.connection import CatalogConnection, Row
from catalog.model import Role

_SELECT = "SELECT id, oid, name, superuser, created_at FROM roles"


class Roles:
    def __init__(self, connection: CatalogConnection) -> None:
        self._connection = connection

    def all(self) -> tuple[Role, ...]:
        return tuple(map(_role, self._connection.read(f"{_SELECT} ORDER BY name")))

    def find(self, name: str) -> Role | None:
        rows = self._connection.read(f"{_SELECT} WHERE name = ?", (name,))
        return _role(rows[0]) if rows else None


def _role(row: Row) -> Role:
    return Role(row[0], row[1], row[2], bool(row[3]), row[4])
