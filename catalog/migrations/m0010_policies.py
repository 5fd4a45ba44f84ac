"""Row security: policies, which relations have it, and the roles that it does not concern."""

from __future__ import annotations

import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE roles ADD COLUMN bypass_row_security INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE relations ADD COLUMN row_security INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE relations ADD COLUMN row_security_forced INTEGER NOT NULL DEFAULT 0")
    connection.execute(
        """CREATE TABLE policies (
            oid INTEGER PRIMARY KEY, name TEXT NOT NULL, relation_oid INTEGER NOT NULL, restrictive INTEGER NOT NULL,
            command TEXT NOT NULL, roles TEXT NOT NULL, condition TEXT NOT NULL, UNIQUE (relation_oid, name)) STRICT"""
    )
    connection.execute(
        "CREATE TRIGGER policies_of_relation AFTER DELETE ON relations BEGIN "
        "DELETE FROM policies WHERE relation_oid = OLD.oid; END"
    )
