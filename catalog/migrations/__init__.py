"""Numbered steps from an empty file to today's tables; the file's ``user_version`` is the last step it has seen.

A step, once released, never changes: a new one is added. Each step, its number and the digest of what it leaves are
one transaction, so a kill between two steps leaves the file at a whole version.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from catalog import integrity
from catalog.migrations import (
    m0001_initial,
    m0002_role_passwords,
    m0003_privileges,
    m0004_comments,
    m0005_enums,
    m0006_views,
    m0007_schema_registries,
    m0008_api_tokens,
    m0009_descriptor_sources,
    m0010_policies,
    m0011_functions,
    m0012_aggregates,
    m0013_function_sources,
)
from mvserver import sqlstates
from mvserver.errors import SqlError

APPLICATION_ID = 0x6D767376  # marks the file as this server's; "mvsv"

STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    m0001_initial.apply,
    m0002_role_passwords.apply,
    m0003_privileges.apply,
    m0004_comments.apply,
    m0005_enums.apply,
    m0006_views.apply,
    m0007_schema_registries.apply,
    m0008_api_tokens.apply,
    m0009_descriptor_sources.apply,
    m0010_policies.apply,
    m0011_functions.apply,
    m0012_aggregates.apply,
    m0013_function_sources.apply,
)

VERSION = len(STEPS)


def migrate(connection: sqlite3.Connection, file: str) -> None:
    """Brings the file to VERSION; refuses a file of a newer server or of another program."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if (tables or found) and owner != APPLICATION_ID:
        raise SqlError(sqlstates.CONFIG_FILE_ERROR, f"{file} is not a catalog of this server")
    if found > VERSION:
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR,
            f"the catalog is of a newer version ({found}) than this server knows ({VERSION})",
            detail=f"The file is {file}.",
            hint="Start the newer server, or put back the copy made before the upgrade.",
        )
    for number in range(found + 1, VERSION + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            STEPS[number - 1](connection)
            integrity.seal(connection.execute, lambda sql: connection.execute(sql).fetchall())
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
