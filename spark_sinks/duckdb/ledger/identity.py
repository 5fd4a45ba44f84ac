"""The identity of the catalog that the views' file belongs to.

A data directory has an identity, which is kept in the catalog and in the views' file. So the rows of one directory are
never swept away because they stand beside the catalog of another one, or beside one that was lost and made anew.
"""

from __future__ import annotations

import duckdb

_SCHEMA = """
CREATE SCHEMA IF NOT EXISTS "_ledger";
CREATE TABLE IF NOT EXISTS "_ledger".data_identity (identity VARCHAR NOT NULL);
"""


def read(cursor: duckdb.DuckDBPyConnection) -> str | None:
    """None in a file that has not been given one."""
    cursor.execute(_SCHEMA)
    rows = cursor.execute('SELECT identity FROM "_ledger".data_identity').fetchall()
    return rows[0][0] if rows else None


def write(cursor: duckdb.DuckDBPyConnection, identity: str) -> None:
    cursor.execute("BEGIN TRANSACTION")
    try:
        cursor.execute('DELETE FROM "_ledger".data_identity')
        cursor.execute('INSERT INTO "_ledger".data_identity VALUES ($1)', [identity])
        cursor.execute("COMMIT")
    except BaseException:
        cursor.execute("ROLLBACK")
        raise


def kept_queries(cursor: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The ids of the queries whose rows and positions are in the file; to be called before anything is swept."""
    found = cursor.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = '_ledger' "
        "AND table_name = 'subscribers'"
    ).fetchall()
    if found == [(0,)]:
        return frozenset()
    return frozenset(row[0] for row in cursor.execute('SELECT query_id FROM "_ledger".subscribers').fetchall())
