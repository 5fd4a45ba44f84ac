"""The first tables, and what a fresh server has: database postgres, schema public, role postgres."""

from __future__ import annotations

import sqlite3
import time
import uuid

_TABLES = (
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT",
    """CREATE TABLE roles (
        id TEXT PRIMARY KEY, oid INTEGER NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE,
        superuser INTEGER NOT NULL, created_at REAL NOT NULL) STRICT""",
    """CREATE TABLE databases (
        id TEXT PRIMARY KEY, oid INTEGER NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE,
        owner TEXT NOT NULL REFERENCES roles (name), created_at REAL NOT NULL) STRICT""",
    """CREATE TABLE schemas (
        id TEXT PRIMARY KEY, oid INTEGER NOT NULL UNIQUE,
        database_id TEXT NOT NULL REFERENCES databases (id), name TEXT NOT NULL,
        owner TEXT NOT NULL REFERENCES roles (name), created_at REAL NOT NULL, UNIQUE (database_id, name)) STRICT""",
    """CREATE TABLE stores (
        id TEXT PRIMARY KEY, oid INTEGER NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE, type TEXT NOT NULL,
        properties TEXT NOT NULL, owner TEXT NOT NULL REFERENCES roles (name),
        created_at REAL NOT NULL, updated_at REAL NOT NULL) STRICT""",
    """CREATE TABLE relations (
        id TEXT PRIMARY KEY, oid INTEGER NOT NULL UNIQUE, row_type_oid INTEGER NOT NULL UNIQUE,
        schema_id TEXT NOT NULL REFERENCES schemas (id), name TEXT NOT NULL, kind TEXT NOT NULL,
        columns TEXT NOT NULL, properties TEXT NOT NULL, definition TEXT NOT NULL,
        owner TEXT NOT NULL REFERENCES roles (name), created_at REAL NOT NULL,
        store_id TEXT REFERENCES stores (id), entity TEXT, key_columns TEXT NOT NULL,
        UNIQUE (schema_id, name)) STRICT""",
    """CREATE TABLE queries (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, select_text TEXT NOT NULL,
        search_database TEXT NOT NULL, search_schema TEXT NOT NULL,
        sink_id TEXT NOT NULL REFERENCES relations (id), owner TEXT NOT NULL REFERENCES roles (name),
        created_at REAL NOT NULL, start_position TEXT NOT NULL, desired_state TEXT NOT NULL,
        definition_version INTEGER NOT NULL, time_zone TEXT NOT NULL, properties TEXT NOT NULL) STRICT""",
    """CREATE TABLE query_sources (
        query_id TEXT NOT NULL REFERENCES queries (id) ON DELETE CASCADE, ordinal INTEGER NOT NULL,
        relation_id TEXT NOT NULL REFERENCES relations (id), PRIMARY KEY (query_id, ordinal)) STRICT""",
    "CREATE INDEX query_sources_relation ON query_sources (relation_id)",
    "CREATE INDEX queries_sink ON queries (sink_id)",
    "CREATE INDEX relations_store ON relations (store_id)",
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
)

_OID_FIRST = 16384  # PostgreSQL's first for what users make


def apply(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)
    now = time.time()
    connection.execute(
        "INSERT INTO roles VALUES (?, ?, 'postgres', 1, ?)", (str(uuid.uuid4()), 10, now)
    )  # PostgreSQL's bootstrap role has oid 10
    database = str(uuid.uuid4())
    connection.execute("INSERT INTO databases VALUES (?, ?, 'postgres', 'postgres', ?)", (database, _OID_FIRST, now))
    connection.execute(
        "INSERT INTO schemas VALUES (?, ?, ?, 'public', 'postgres', ?)",
        (str(uuid.uuid4()), _OID_FIRST + 1, database, now),
    )
    connection.execute("INSERT INTO counters VALUES ('oid', ?)", (_OID_FIRST + 2,))
    connection.execute("INSERT INTO counters VALUES ('generation', 1)")
