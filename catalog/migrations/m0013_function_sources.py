"""Jars that functions of one's own are in."""

from __future__ import annotations

import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    connection.execute(
        """CREATE TABLE function_sources (
            id TEXT PRIMARY KEY, oid INTEGER NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE, file TEXT NOT NULL,
            digest TEXT NOT NULL, description TEXT, owner TEXT NOT NULL REFERENCES roles (name),
            created_at REAL NOT NULL) STRICT"""
    )
    connection.execute("ALTER TABLE functions ADD COLUMN source_id TEXT REFERENCES function_sources (id)")
    connection.execute("ALTER TABLE functions ADD COLUMN method TEXT")
