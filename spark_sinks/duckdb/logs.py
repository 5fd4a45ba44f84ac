"""Logs: rows that the server makes for its own queries to read, in the order in which they were committed.

A log is a table of numbered rows beside the state of the view that reads it. Rows are appended in the transaction of
the batch that they come from, and removed when every reader has committed what it made of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SCHEMA = """
CREATE TABLE IF NOT EXISTS "_ledger".logs (
    log VARCHAR PRIMARY KEY, first_seq BIGINT NOT NULL, next_seq BIGINT NOT NULL);
"""


@dataclass(frozen=True)
class Log:
    """``table`` is its bare name and its identity; ``types`` are DuckDB types of c0, c1 ...; ``reader`` is the id of
    the pipeline that reads it."""

    table: str
    types: tuple[str, ...]
    reader: str

    @property
    def qualified(self) -> str:
        return f'"_state"."{self.table}"'

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"c{i}" for i in range(len(self.types)))


def create_statements(log: Log) -> list[str]:
    columns = [f"{name} {kind}" for name, kind in zip(log.columns, log.types, strict=True)]
    return [
        f"CREATE TABLE {log.qualified} ({', '.join(['seq BIGINT', 'record_time TIMESTAMPTZ', *columns])})",
        f"INSERT OR REPLACE INTO \"_ledger\".logs VALUES ('{log.table}', 0, 0)",
    ]


def forget_statement() -> str:
    """Of the logs whose tables are dropped."""
    return (
        'DELETE FROM "_ledger".logs WHERE log NOT IN (SELECT table_name FROM duckdb_tables() '
        "WHERE schema_name = '_state' AND database_name = current_database())"
    )


def append_statements(log: Log, selected: Sequence[str]) -> list[str]:
    """``selected`` are queries with record_time and then the log's columns, unnamed."""
    known = f"\"_ledger\".logs WHERE log = '{log.table}'"
    statements = []
    for query in selected:
        statements += [
            f"INSERT INTO {log.qualified} SELECT (SELECT next_seq FROM {known}) + row_number() OVER () - 1, * "
            f"FROM ({query})",
            f'UPDATE "_ledger".logs SET next_seq = greatest(next_seq, (SELECT max(seq) + 1 FROM {log.qualified})) '
            f"WHERE log = '{log.table}'",
        ]
    return statements


def trim_statements(log: Log) -> list[str]:
    """Removes what all readers have committed; a log that nobody reads yet is kept."""
    kept = (
        "(SELECT min((position::JSON->>'seq')::BIGINT) FROM \"_ledger\".subscribers "
        f"WHERE pipeline_id = '{log.reader}')"
    )
    return [
        f"DELETE FROM {log.qualified} WHERE seq < {kept}",
        f"UPDATE \"_ledger\".logs SET first_seq = greatest(first_seq, {kept}) WHERE log = '{log.table}'",
    ]


def read_query(log: Log, names: Sequence[str]) -> str:
    """The rows from $1 to before $2 with their number as text and their columns under ``names``."""
    columns = [f"{column} AS {name}" for column, name in zip(log.columns, names, strict=True)]
    return (
        f"SELECT {', '.join(['seq::VARCHAR AS position', 'record_time', *columns])} FROM {log.qualified} "
        "WHERE seq >= $1 AND seq < $2 ORDER BY seq"
    )


def bounds_query(log: Log) -> str:
    """The first row that is still there, and the number that the next row will have."""
    return f"SELECT first_seq, next_seq FROM \"_ledger\".logs WHERE log = '{log.table}'"
