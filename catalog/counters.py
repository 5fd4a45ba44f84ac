"""Numbers that only go up: the next oid and the generation."""

from __future__ import annotations

from catalog.connection import CatalogConnection


def next_oid(connection: CatalogConnection) -> int:
    """Allocated inside the statement's transaction; one that rolls back gives it back."""
    (row,) = connection.read("SELECT value FROM counters WHERE name = 'oid'")
    connection.write("UPDATE counters SET value = value + 1 WHERE name = 'oid'")
    return int(row[0])


def generation(connection: CatalogConnection) -> int:
    (row,) = connection.read("SELECT value FROM counters WHERE name = 'generation'")
    return int(row[0])


def raise_generation(connection: CatalogConnection) -> int:
    connection.write("UPDATE counters SET value = value + 1 WHERE name = 'generation'")
    return generation(connection)
