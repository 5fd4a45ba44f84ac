"""Roles with a password, of which only a verifier is kept, and roles that may not log in."""

from __future__ import annotations

import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE roles ADD COLUMN can_login INTEGER NOT NULL DEFAULT 1")
    connection.execute("ALTER TABLE roles ADD COLUMN password TEXT")
