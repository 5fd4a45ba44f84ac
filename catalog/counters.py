"""Numbers that only go up: the next oid and the generation."""

from __future__ import annotations

from catalog.connection import CatalogConnection


def next_oid(connection: CatalogConnection) -> int:
    """Allocated inside the statement's transaction; one that rolls back gives it back."""
    (row,) = connection.read("SELECT value FROM counters WHERE name = 'oid'")
    connection.write("UPDATE counters SET value = value + 1 WHERE name = 'oid'")
    return int(row[0])


def next_oid_pair(connection: CatalogConnection) -> int:
    """An even oid; the odd one after it is given along with it."""
    first = next_oid(connection)
    while first % 2:
        first = next_oid(connection)
    next_oid(connection)
    return first


def generation(connection: CatalogConnection) -> int:
    (row,) = connection.read("SELECT value FROM counters WHERE name = 'generation'")
    return int(row[0])


def raise_generation(connection: CatalogConnection) -> int:
    connection.write("UPDATE counters SET value = value + 1 WHERE name = 'generation'")
    return generation(connection)
