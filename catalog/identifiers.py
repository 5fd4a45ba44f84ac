"""The rules for names of objects, whatever kind they are."""

from __future__ import annotations

from mvserver import limits, sqlstates
from mvserver.errors import SqlError

RESERVED_SCHEMAS = frozenset({"pg_catalog", "information_schema", "mv_catalog"})


def check_identifier(name: str) -> None:
    if not name or "\0" in name:
        raise SqlError(sqlstates.INVALID_NAME, "zero-length delimited identifier" if not name else "invalid identifier")
    if len(name.encode()) > limits.IDENTIFIER_BYTES_MAX:
        raise SqlError(
            sqlstates.INVALID_NAME,
            f'identifier "{name[:80]}" is too long',
            detail=f"A name has at most {limits.IDENTIFIER_BYTES_MAX} bytes.",
        )


def check_role_name(name: str) -> None:
    check_identifier(name)
    if name in ("public", "none"):
        raise SqlError(sqlstates.RESERVED_NAME, f'role name "{name}" is reserved')
    if name.startswith("pg_"):
        raise SqlError(
            sqlstates.RESERVED_NAME,
            f'role name "{name}" is reserved',
            detail='Role names starting with "pg_" are reserved.',
        )


def check_schema_name(name: str) -> None:
    check_identifier(name)
    if name in RESERVED_SCHEMAS:
        raise SqlError(sqlstates.DUPLICATE_SCHEMA, f'schema "{name}" already exists')
    if name.startswith("pg_"):
        raise SqlError(
            sqlstates.RESERVED_NAME,
            f'unacceptable schema name "{name}"',
            detail='The prefix "pg_" is reserved for system schemas.',
        )
