"""Access control lists of objects, members of roles, and what a role's sessions begin with."""

from __future__ import annotations

import json
import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    for table in ("databases", "schemas", "stores", "relations"):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN acl TEXT")
    connection.execute("ALTER TABLE roles ADD COLUMN create_database INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE roles ADD COLUMN create_store INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE roles ADD COLUMN connection_limit INTEGER NOT NULL DEFAULT -1")
    connection.execute("ALTER TABLE roles ADD COLUMN valid_until REAL")
    connection.execute("ALTER TABLE roles ADD COLUMN settings TEXT NOT NULL DEFAULT '[]'")
    connection.execute(
        """CREATE TABLE role_members (
            role_oid INTEGER NOT NULL REFERENCES roles (oid), member_oid INTEGER NOT NULL REFERENCES roles (oid),
            grantor_oid INTEGER NOT NULL, admin INTEGER NOT NULL, PRIMARY KEY (role_oid, member_oid)) STRICT"""
    )
    connection.execute(
        """CREATE TABLE default_privileges (
            role_oid INTEGER NOT NULL REFERENCES roles (oid), schema_id TEXT REFERENCES schemas (id) ON DELETE CASCADE,
            kind TEXT NOT NULL, acl TEXT NOT NULL) STRICT"""
    )
    connection.execute(
        "CREATE UNIQUE INDEX default_privileges_key ON default_privileges (role_oid, kind, coalesce(schema_id, ''))"
    )
    for schema_id, owner in connection.execute(
        "SELECT s.id, r.oid FROM schemas s JOIN roles r ON r.name = s.owner WHERE s.name = 'public'"
    ).fetchall():
        acl = json.dumps([[owner, owner, "UC", ""], [0, owner, "U", ""]])  # all may look into it
        connection.execute("UPDATE schemas SET acl = ? WHERE id = ?", (acl, schema_id))
