"""The outbox: what a query has to write elsewhere, kept in the transaction that changed its rows.

A view's rows before and after a batch tell which of them are new, changed or gone. They are numbered without a gap, so
that whoever sends them on can say how far it has come. ``incarnation`` tells the outbox of a state that was lost and
built again from its successor: their numbers do not go together.
"""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from spark_sinks.duckdb.capture import AFTER, BEFORE, CHANGED_KEYS
from spark_sinks.duckdb.changelog import Register
from spark_sinks.duckdb.names import qualified, quoted
from spark_sinks.duckdb.state import OUTBOX


@dataclass(frozen=True)
class Outbox:
    """Of a query whose rows are shown by the DuckDB view ``view_id``. ``columns`` are (name, DuckDB type)."""

    query_id: str
    view_id: str
    state_table: str
    key: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]

    @property
    def table(self) -> str:
        return f"{self.state_table}{OUTBOX}"

    def create_statements(self) -> list[str]:
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in self.columns)
        return [
            f"DROP TABLE IF EXISTS {qualified(self.table)}",
            f'CREATE TABLE {qualified(self.table)} ("_seq" BIGINT NOT NULL, "_deleted" BOOLEAN NOT NULL, {columns})',
            f"INSERT OR REPLACE INTO \"_ledger\".outboxes VALUES ('{self.query_id}', '{uuid.uuid4()}', 0)",
        ]

    def shown(self, *, changed_only: bool) -> str:
        """A row with a NULL in its key has no key to be sent under."""
        view = f'"_views"."{self.view_id}"'
        if not changed_only:
            known = " AND ".join(f"v.{quoted(key)} IS NOT NULL" for key in self.key)
            return f"SELECT v.* FROM {view} AS v WHERE {known}"
        same = " AND ".join(f"v.{quoted(key)} = g.g{i}" for i, key in enumerate(self.key))
        return f"SELECT v.* FROM {view} AS v WHERE EXISTS (SELECT 1 FROM {CHANGED_KEYS} AS g WHERE {same})"

    def keep(self, cursor: duckdb.DuckDBPyConnection, register: Register, newest: dt.datetime | None) -> None:
        names = [quoted(name) for name, _ in self.columns]
        columns = ", ".join(names)
        same_key = " AND ".join(f"a.{quoted(key)} = b.{quoted(key)}" for key in self.key)
        equal = " AND ".join(f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in names)
        cursor.execute(
            f'INSERT INTO {qualified(self.table)} SELECT (SELECT last FROM "_ledger".outboxes WHERE query_id = $1) '
            f"+ row_number() OVER (), deleted, {columns} FROM ("
            f"SELECT false AS deleted, a.* FROM {AFTER} AS a "
            f"WHERE NOT EXISTS (SELECT 1 FROM {BEFORE} AS b WHERE {same_key} AND {equal}) UNION ALL "
            f"SELECT true, b.* FROM {BEFORE} AS b WHERE NOT EXISTS (SELECT 1 FROM {AFTER} AS a WHERE {same_key}))",
            [self.query_id],
        )
        cursor.execute(
            f'UPDATE "_ledger".outboxes SET last = coalesce((SELECT max("_seq") FROM {qualified(self.table)}), last) '
            "WHERE query_id = $1",
            [self.query_id],
        )


@dataclass(frozen=True)
class Pending:
    """Rows that wait to be sent, in their order; ``last`` is the number of the last of them."""

    last: int
    deleted: tuple[bool, ...]
    rows: pa.Table


def incarnation(cursor: duckdb.DuckDBPyConnection, outbox: Outbox) -> str:
    ((found,),) = cursor.execute(
        'SELECT incarnation FROM "_ledger".outboxes WHERE query_id = $1', [outbox.query_id]
    ).fetchall()
    return str(found)


def pending(cursor: duckdb.DuckDBPyConnection, outbox: Outbox, after: int, limit: int) -> Pending | None:
    """The next rows behind the number ``after``; None where there are none."""
    table = cursor.sql(
        f'SELECT * FROM {qualified(outbox.table)} WHERE "_seq" > {after} ORDER BY "_seq" LIMIT {limit}'
    ).to_arrow_table()
    if table.num_rows == 0:
        return None
    numbers = table.column("_seq")
    rows = table.drop_columns(["_seq", "_deleted"])
    return Pending(int(numbers[-1].as_py()), tuple(table.column("_deleted").to_pylist()), rows)


def forget_statement(outbox: Outbox, until: int) -> str:
    """They are where they were to go."""
    return f'DELETE FROM {qualified(outbox.table)} WHERE "_seq" <= {until}'


def last_number(cursor: duckdb.DuckDBPyConnection, outbox: Outbox) -> int:
    """That of the last row that was ever kept."""
    rows = cursor.execute('SELECT last FROM "_ledger".outboxes WHERE query_id = $1', [outbox.query_id]).fetchall()
    return int(rows[0][0]) if rows else 0


def length(cursor: duckdb.DuckDBPyConnection, outbox: Outbox) -> int:
    ((rows,),) = cursor.execute(f"SELECT count(*) FROM {qualified(outbox.table)}").fetchall()
    return int(rows)
