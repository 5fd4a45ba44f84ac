"""Functions of one's own that are aggregates."""

from __future__ import annotations

import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE functions ADD COLUMN aggregate INTEGER NOT NULL DEFAULT 0")
