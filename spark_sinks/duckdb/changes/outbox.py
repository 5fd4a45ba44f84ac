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

from mvserver.quoting import quoted
from spark_sinks.duckdb.changes.capture import AFTER, BEFORE, CHANGED_KEYS
from spark_sinks.duckdb.changes.changelog import Register
from spark_sinks.duckdb.changes.logs import same_values
from spark_sinks.duckdb.names import qualified, qualified_view
from spark_sinks.duckdb.state.state import OUTBOX


@dataclass(frozen=True)
class Outbox:
    """Of a query whose rows are shown by the DuckDB view ``view_id``. ``columns`` are (name, DuckDB type). The last
    ``ordinals`` of the key number the rows of a source row, all of which a batch touches together."""

    query_id: str
    view_id: str
    state_table: str
    key: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    ordinals: int = 0

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

    @property
    def others(self) -> tuple[()]:
        return ()

    def shown(self, *, changed_only: bool) -> str:
        """A row with a NULL in its key has no key to be sent under."""
        view = qualified_view(self.view_id)
        if not changed_only:
            known = " AND ".join(f"v.{quoted(key)} IS NOT NULL" for key in self.key)
            return f"SELECT v.* FROM {view} AS v WHERE {known}"
        touched = self.key[: len(self.key) - self.ordinals]
        same = " AND ".join(f"v.{quoted(key)} = g.g{i}" for i, key in enumerate(touched))
        return f"SELECT v.* FROM {view} AS v WHERE EXISTS (SELECT 1 FROM {CHANGED_KEYS} AS g WHERE {same})"

    def keep(self, cursor: duckdb.DuckDBPyConnection, register: Register, newest: dt.datetime | None) -> None:
        names, keys = [quoted(name) for name, _ in self.columns], [quoted(key) for key in self.key]
        columns = ", ".join(names)
        changes = (
            f"SELECT false, {columns} FROM {AFTER} AS a ANTI JOIN {BEFORE} AS b ON {same_values('a', 'b', names)} "
            f"UNION ALL "
            f"SELECT true, {columns} FROM {BEFORE} AS b ANTI JOIN {AFTER} AS a ON {same_values('a', 'b', keys)}"
        )
        for statement in self.append_statements(changes):
            cursor.execute(statement)

    def append_statements(self, query: str, *, selected: str = "*", order: str = "") -> tuple[str, ...]:
        """Appends the rows of ``query`` and numbers them, in this order where there is one; ``selected`` of them is
        whether a row is gone, and then the columns."""
        known, table = f"\"_ledger\".outboxes WHERE query_id = '{self.query_id}'", qualified(self.table)
        over = f"ORDER BY {order}" if order else ""
        return (
            f"INSERT INTO {table} SELECT (SELECT last FROM {known}) + row_number() OVER ({over}), {selected} "
            f"FROM ({query})",
            f'UPDATE "_ledger".outboxes SET last = greatest(last, coalesce((SELECT max("_seq") FROM {table}), last)) '
            f"WHERE query_id = '{self.query_id}'",
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
