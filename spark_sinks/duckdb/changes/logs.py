"""Logs: rows that the server makes for its own queries to read, in the order in which they were committed.

A log is a table of numbered rows beside the state of the view that reads it. Rows are appended in the transaction of
the batch that they come from, and removed when every reader has committed what it made of them.

The rows of a *change log* are not new ones: each says of a key that its row is now this one, or that it is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.record_columns import DELETED

NEVER = -4_000_000_000_000_000_000  # microseconds: before every event time, with room for delays

SCHEMA = """
CREATE TABLE IF NOT EXISTS "_ledger".logs (
    log VARCHAR PRIMARY KEY, first_seq BIGINT NOT NULL, next_seq BIGINT NOT NULL);
"""


@dataclass(frozen=True)
class Log:
    """``table`` is its bare name and its identity; ``types`` are DuckDB types of c0, c1 ...; ``reader`` is the id of
    the pipeline that reads it. In a change log the first ``key_columns`` columns tell rows apart, NULL being a value
    like others; None: rows are only added. A log has a ``low`` watermark where a window is over its rows: a table of
    how far its sources had come when its rows up to a number were there."""

    table: str
    types: tuple[str, ...]
    reader: str
    key_columns: int | None = None
    marked: bool = False

    @property
    def low(self) -> str:
        return low_table(self.table)

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table, *([self.low] if self.marked else []))

    @property
    def qualified(self) -> str:
        return qualified(self.table)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"c{i}" for i in range(len(self.types)))

    @property
    def changes(self) -> bool:
        return self.key_columns is not None


def low_table(log_table: str) -> str:
    return f"{log_table}_low"


def create_statements(log: Log) -> list[str]:
    columns = ["seq BIGINT", "record_time TIMESTAMPTZ", *(["deleted BOOLEAN"] if log.changes else [])]
    columns += [f"{name} {kind}" for name, kind in zip(log.columns, log.types, strict=True)]
    return [
        f"CREATE TABLE {log.qualified} ({', '.join(columns)})",
        *([f"CREATE TABLE {qualified(log.low)} (seq BIGINT, mark BIGINT)"] if log.marked else []),
        f"INSERT OR REPLACE INTO \"_ledger\".logs VALUES ('{log.table}', 0, 0)",
    ]


def forget_statement() -> str:
    """Of the logs whose tables are dropped."""
    return (
        'DELETE FROM "_ledger".logs WHERE log NOT IN (SELECT table_name FROM duckdb_tables() '
        "WHERE schema_name = '_state' AND database_name = current_database())"
    )


def append_statements(log: Log, selected: Sequence[str]) -> list[str]:
    """``selected`` are queries with record_time, of a change log whether the row is gone, and then the log's columns,
    unnamed. The log is said to begin where its readers are, too: that costs no statement of its own."""
    if not selected:
        return []
    known = f"\"_ledger\".logs WHERE log = '{log.table}'"
    rows = " UNION ALL ".join(f"({query})" for query in selected)
    return [
        f"INSERT INTO {log.qualified} SELECT (SELECT next_seq FROM {known}) + row_number() OVER () - 1, * "
        f"FROM ({rows})",
        f'UPDATE "_ledger".logs SET next_seq = greatest(next_seq, (SELECT max(seq) + 1 FROM {log.qualified})), '
        f"first_seq = greatest(first_seq, {_read_by_all(log)}) WHERE log = '{log.table}'",
    ]


def append_changes(log: Log, before: str, after: str) -> list[str]:
    """Appends what differs between two relations, the rows of the same keys before and after a batch: those that are
    new or changed, and the keys that are gone. Both have the time of the change, ``r``, and the log's columns under
    their names, and each key at most once."""
    return append_statements(log, [differences(log, before, after)])


def differences(log: Log, before: str, after: str) -> str:
    """Query of what :func:`append_changes` appends: r, deleted, c0 ..."""
    keys = log.columns[: log.key_columns]
    gone = (*keys, *(f"CAST(NULL AS {kind})" for kind in log.types[len(keys) :]))
    return (
        f"SELECT r, false AS deleted, {', '.join(log.columns)} FROM {after} AS a ANTI JOIN {before} AS b "
        f"ON {same_values('a', 'b', log.columns)} UNION ALL "
        f"SELECT r, true, {', '.join(gone)} FROM {before} AS b ANTI JOIN {after} AS a ON {same_values('a', 'b', keys)}"
    )


def same_values(one: str, other: str, columns: Sequence[str]) -> str:
    """Whether rows of two relations have equal values, NULLs being equal."""
    return " AND ".join(f"{one}.{column} IS NOT DISTINCT FROM {other}.{column}" for column in columns) or "true"


def low_statements(log: Log, mark: str) -> list[str]:
    """``mark``, an expression that may be NULL, is the log's low watermark for all rows that come after those that are
    there: none of them belongs to a window that ended before it, unless the row is late by itself."""
    if not log.marked:
        return []
    low = qualified(log.low)
    following = f"SELECT next_seq, ({mark}) AS mark FROM \"_ledger\".logs WHERE log = '{log.table}'"
    return [
        f"INSERT INTO {low} SELECT * FROM ({following}) WHERE mark > coalesce((SELECT max(mark) FROM {low}), {NEVER})",
        f"DELETE FROM {low} AS a WHERE EXISTS (SELECT 1 FROM {low} AS b WHERE b.seq = a.seq AND b.mark > a.mark)",
    ]


def low_query(low: str, seq: str = "$1") -> str:
    """The low watermark, kept in the table ``low``, of who has read the rows before number ``seq``; NULL where there is
    none yet."""
    return f"SELECT max(mark) FROM {qualified(low)} WHERE seq <= {seq}"


def _read_by_all(log: Log) -> str:
    """The number of the first row that a reader may still want; NULL where nobody reads the log yet."""
    return (
        "(SELECT min((position::JSON->>'seq')::BIGINT) FROM \"_ledger\".subscribers "
        f"WHERE pipeline_id = '{log.reader}')"
    )


def trim_statements(log: Log) -> list[str]:
    """Behind :func:`append_statements`: removes what all readers have committed. Nothing while nobody reads the log."""
    kept, low = f"(SELECT first_seq FROM \"_ledger\".logs WHERE log = '{log.table}')", qualified(log.low)
    return [
        *([f"DELETE FROM {low} WHERE mark < (SELECT max(mark) FROM {low} WHERE seq <= {kept})"] if log.marked else []),
        f"DELETE FROM {log.qualified} WHERE seq < {kept}",
    ]


def rows_text(log: Log) -> str:
    """The rows from $1 to before $2, for FROM; a change log's deletions have the column that tells them."""
    if not log.changes:
        return f"(FROM {log.qualified} WHERE seq >= $1 AND seq < $2)"
    return f"(SELECT * RENAME (deleted AS {DELETED}) FROM {log.qualified} WHERE seq >= $1 AND seq < $2)"


def read_query(log: Log, names: Sequence[str]) -> str:
    """The rows from $1 to before $2 with their number as text and their columns under ``names``."""
    columns = [f"deleted AS {DELETED}"] if log.changes else []
    columns += [f"{column} AS {name}" for column, name in zip(log.columns, names, strict=True)]
    return (
        f"SELECT {', '.join(['seq::VARCHAR AS position', 'record_time', *columns])} FROM {log.qualified} "
        "WHERE seq >= $1 AND seq < $2 ORDER BY seq"
    )


def bounds_query(log: Log) -> str:
    """The first row that is still there, and the number that the next row will have."""
    return f"SELECT first_seq, next_seq FROM \"_ledger\".logs WHERE log = '{log.table}'"
