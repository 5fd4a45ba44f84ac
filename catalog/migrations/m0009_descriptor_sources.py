"""Schemas from files: CREATE DESCRIPTOR_SOURCE."""

from __future__ import annotations

import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    connection.execute(
        """CREATE TABLE descriptor_sources (
            id TEXT PRIMARY KEY, oid INTEGER NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE, type TEXT NOT NULL,
            properties TEXT NOT NULL, owner TEXT NOT NULL REFERENCES roles (name),
            created_at REAL NOT NULL, updated_at REAL NOT NULL, acl TEXT) STRICT"""
    )
