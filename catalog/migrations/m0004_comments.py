"""Comments of users on objects: COMMENT ON."""

from __future__ import annotations

import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    connection.execute(
        """CREATE TABLE comments (
            kind TEXT NOT NULL, oid INTEGER NOT NULL, column_number INTEGER NOT NULL, text TEXT NOT NULL,
            PRIMARY KEY (kind, oid, column_number)) STRICT"""
    )
    for table in ("databases", "schemas", "stores", "relations", "roles"):
        kind = table.removesuffix("s")
        connection.execute(
            f"CREATE TRIGGER {kind}_comments AFTER DELETE ON {table} BEGIN "
            f"DELETE FROM comments WHERE kind = '{kind}' AND oid = OLD.oid; END"
        )
