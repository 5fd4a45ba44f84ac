"""API tokens: CREATE API_TOKEN."""

from __future__ import annotations

import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    connection.execute(
        """CREATE TABLE api_tokens (
            name TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, role_oid INTEGER NOT NULL, created_at REAL NOT NULL,
            valid_until REAL) STRICT"""
    )
