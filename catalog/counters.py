"""Numbers that only go up: the next oid and the generation."""

from __future__ import annotations

from catalog.connection import CatalogConnection

GENERATION = "SELECT value FROM counters WHERE name = 'generation'"
_FIRST_FREE = 16386  # behind what a fresh catalog has


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


def is_unused(connection: CatalogConnection) -> bool:
    """Whether no oid has ever been given: nobody has made anything."""
    ((value,),) = connection.read("SELECT value FROM counters WHERE name = 'oid'")
    return int(value) <= _FIRST_FREE


def generation(connection: CatalogConnection) -> int:
    (row,) = connection.read(GENERATION)
    return int(row[0])


def raise_generation(connection: CatalogConnection) -> int:
    connection.write("UPDATE counters SET value = value + 1 WHERE name = 'generation'")
    return generation(connection)
