"""Durable values by name that belong to no object: for rooms that must remember a word over restarts."""

from __future__ import annotations

from catalog import integrity
from catalog.connection import CatalogConnection


class CatalogSettings:
    def __init__(self, connection: CatalogConnection) -> None:
        self._connection = connection

    def all(self) -> dict[str, str]:
        rows = self._connection.read("SELECT name, value FROM settings WHERE name <> ?", (integrity.SETTING,))
        return {str(name): str(value) for name, value in rows}

    def get(self, name: str, default: str | None = None) -> str | None:
        rows = self._connection.read("SELECT value FROM settings WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else default

    def set(self, name: str, value: str) -> None:
        self._connection.write(
            "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
        )

    def delete(self, name: str) -> None:
        self._connection.write("DELETE FROM settings WHERE name = ?", (name,))
