"""Views and indexes: a stored SELECT, and the indexes of a materialized view, among what is kept of a relation."""

from __future__ import annotations

import sqlite3


def apply(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE relations ADD COLUMN stored_select TEXT")
    connection.execute("ALTER TABLE relations ADD COLUMN indexes TEXT NOT NULL DEFAULT '[]'")
