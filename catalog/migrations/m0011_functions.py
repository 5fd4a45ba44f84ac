"""Functions of one's own, the queries that call them, and the roles that may make them."""

from __future__ import annotations

import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE roles ADD COLUMN create_function INTEGER NOT NULL DEFAULT 0")
    connection.execute(
        """CREATE TABLE functions (
            id TEXT PRIMARY KEY, oid INTEGER NOT NULL UNIQUE,
            schema_id TEXT NOT NULL REFERENCES schemas (id) ON DELETE CASCADE, name TEXT NOT NULL,
            signature TEXT NOT NULL, parameters TEXT NOT NULL, result TEXT NOT NULL, language TEXT NOT NULL,
            body TEXT NOT NULL, strict INTEGER NOT NULL, timeout_ms INTEGER NOT NULL, memory_bytes INTEGER NOT NULL,
            confined INTEGER NOT NULL,
            owner TEXT NOT NULL REFERENCES roles (name), created_at REAL NOT NULL, updated_at REAL NOT NULL, acl TEXT,
            UNIQUE (schema_id, name, signature)) STRICT"""
    )
    connection.execute(
        """CREATE TABLE query_functions (
            query_id TEXT NOT NULL REFERENCES queries (id) ON DELETE CASCADE,
            function_id TEXT NOT NULL REFERENCES functions (id), PRIMARY KEY (query_id, function_id)) STRICT"""
    )
