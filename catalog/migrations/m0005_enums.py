"""Types of one's own: CREATE TYPE … AS ENUM."""

from __future__ import annotations

import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    connection.execute(
        """CREATE TABLE enum_types (
            id TEXT PRIMARY KEY, oid INTEGER NOT NULL UNIQUE,
            schema_id TEXT NOT NULL REFERENCES schemas (id) ON DELETE CASCADE, name TEXT NOT NULL,
            labels TEXT NOT NULL, owner TEXT NOT NULL REFERENCES roles (name), created_at REAL NOT NULL, acl TEXT,
            UNIQUE (schema_id, name)) STRICT"""
    )
    connection.execute(
        "CREATE TRIGGER type_comments AFTER DELETE ON enum_types BEGIN "
        "DELETE FROM comments WHERE kind = 'type' AND oid = OLD.oid; END"
    )
