"""Rows written to a table, each once: one transaction has them, and how far their query has come.

A position stands in a table beside the written one, in a row of its query's. The transaction begins with that row. So
two servers that write for one query wait for each other, and the second finds another version of the row than the one
it has read: it writes nothing. That holds, too, for a transaction whose end was not told, and may still be going on.

The service ends a transaction that stands still, and takes what follows in the session as statements of their own. So
does it with a statement that had no answer, and comes to it behind the client's ROLLBACK. Therefore the first of them
asks for the transaction that was begun, the others for the mark that it has set, and the mark is looked for once more
behind the commit.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.snowflake.columns import Found, cast, check_columns, described
from spark_sinks.snowflake.names import TableName, folded, parsed, quoted
from spark_sinks.snowflake.options import SnowflakeOptions
from spark_sinks.snowflake.session import Session, described_table, found_table, no_entity
from spark_sinks.snowflake.staging import GONE, ROWS, Staging, column
from spark_sinks.store_kind import TableTarget
from spark_sinks.table_writes import another_writer

_PROGRESS = (
    "QUERY_ID VARCHAR NOT NULL, VERSION NUMBER(19,0) NOT NULL, POSITION VARCHAR, ATTEMPT VARCHAR, "
    "TABLE_CREATED VARCHAR, WRITTEN_AT TIMESTAMP_LTZ"
)


@dataclass(frozen=True)
class _Mark:
    """The query's row as it was read."""

    version: int
    position: Position | None


class SnowflakeSink:
    """For one thread at a time."""

    def __init__(self, target: TableTarget[SnowflakeOptions], *, timeout_s: float) -> None:
        self._target = target
        self._name = _name(target)
        self._session = Session(
            target.store,
            target.options,
            timeout_s=timeout_s,
            tag=f"mvserver query {target.query_id}",
        )
        try:
            self._created = self._created_at()
            self._columns = self._checked_columns()
            columns = len(target.shape.schema)
            self._staging = Staging(self._session, target.store, columns, target.table.file_bytes_max)
        except BaseException:
            self._session.close()
            raise
        self._mark: _Mark | None = None

    def committed_position(self, *, expected: bool = False) -> Position | None:
        self._mark = self._read_mark()
        if expected and (self._mark is None or self._mark.position is None):
            raise SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                f'entity "{self._target.entity}" in store "{self._target.store}" no longer says what was written to it',
                detail="The table was made anew, or the table of its queries' positions.",
                hint="TERMINATE and RESTART the query, and it writes from its beginning.",
            )
        if self._mark is None:
            self._mark = self._made_mark()
        return self._mark.position

    def renew(self, position: Position) -> None:
        """A table forgets nothing."""

    def write(self, rows: pa.Table, gone: pa.Table, position: Position) -> None:
        mark = self._mark
        if mark is None:
            raise another_writer()
        if rows.num_rows or gone.num_rows:
            self._staging.fill(rows, gone)
        attempt = uuid.uuid4().hex
        with self._transaction() as transaction:
            self._advance(mark, position, attempt, transaction)
            if self._target.shape.key and (rows.num_rows or gone.num_rows):
                self._session.changed(self._deletion(), attempt)
            if rows.num_rows:
                self._insert(attempt, rows.num_rows)
        self._confirm(attempt)
        self._mark = _Mark(mark.version + 1, position)

    def close(self) -> None:
        self._session.close()

    # --- the query's row ----------------------------------------------------------------------------------------------
    def _read_mark(self) -> _Mark | None:
        """None where there is no row for the table as it is now."""
        try:
            rows = self._session.run(
                f"SELECT VERSION, POSITION, TABLE_CREATED FROM {self._name.progress.sql} WHERE QUERY_ID = ?",
                self._target.query_id,
            )
        except SqlError as error:
            if error.sqlstate == sqlstates.UNDEFINED_OBJECT:
                return None
            raise
        if len(rows) != 1:
            return None
        ((version, position, created),) = rows
        if created != self._created:
            return None
        return _Mark(int(version), None if position is None else json.loads(position))

    def _made_mark(self) -> _Mark:
        """A row of version 0, without a position. One for a table that was there before under this name goes."""
        progress = self._name.progress.sql
        self._session.run(f"CREATE TABLE IF NOT EXISTS {progress} ({_PROGRESS})")
        self._session.changed(f"DELETE FROM {progress} WHERE QUERY_ID = ?", self._target.query_id)
        self._session.changed(
            f"INSERT INTO {progress} (QUERY_ID, VERSION, TABLE_CREATED) VALUES (?, 0, ?)",
            self._target.query_id,
            self._created,
        )
        return _Mark(0, None)

    def _advance(self, mark: _Mark, position: Position, attempt: str, transaction: str) -> None:
        changed = self._session.changed(
            f"UPDATE {self._name.progress.sql} SET VERSION = VERSION + 1, POSITION = ?, ATTEMPT = ?, "
            "WRITTEN_AT = CURRENT_TIMESTAMP() WHERE QUERY_ID = ? AND VERSION = ? AND TABLE_CREATED = ? "
            "AND CURRENT_TRANSACTION() = ?",
            json.dumps(position, sort_keys=True),
            attempt,
            self._target.query_id,
            mark.version,
            self._created,
            transaction,
        )
        if changed != 1:
            raise another_writer()

    def _confirm(self, attempt: str) -> None:
        ((found,),) = self._session.run(f"SELECT COUNT(*) FROM {self._name.progress.sql} WHERE ATTEMPT = ?", attempt)
        if found != 1:
            raise self._rolled_back()

    def _rolled_back(self) -> SqlError:
        return SqlError(sqlstates.SERIALIZATION_FAILURE, f'store "{self._target.store}" has rolled back a transaction')

    # --- the table ----------------------------------------------------------------------------------------------------
    def _created_at(self) -> str:
        found = found_table(self._session, self._name)
        if found is None:
            raise no_entity(self._target.store, self._target.entity)
        moment: dt.datetime = found["created_on"]
        return moment.astimezone(dt.UTC).isoformat()

    def _checked_columns(self) -> dict[str, Found]:
        columns = described(described_table(self._session, self._name))
        check_columns(columns, self._target.shape, self._target.entity)
        return columns

    def _deletion(self) -> str:
        key = [at for at, field in enumerate(self._target.shape.schema) if field.name in self._target.shape.key]
        table = quoted(self._name.table)
        keys = ", ".join(f"{self._value(at)} AS K{at}" for at in key)
        same = " AND ".join(f"{table}.{self._column(at)} = STAGED.K{at}" for at in key)
        return f"DELETE FROM {table} USING (SELECT {keys} FROM {self._staged()}) AS STAGED WHERE {same}"

    def _insert(self, attempt: str, rows: int) -> None:
        places = range(len(self._target.shape.schema))
        inserted = self._session.changed(
            f"INSERT INTO {self._name.sql} ({', '.join(map(self._column, places))}) "
            f"SELECT {', '.join(map(self._value, places))} FROM {self._staged()} WHERE {GONE} = 'false'",
            attempt,
        )
        if inserted != rows:
            raise SqlError(
                sqlstates.SERIALIZATION_FAILURE,
                f'store "{self._target.store}" has inserted {inserted} of {rows} rows of a transaction',
            )

    def _staged(self) -> str:
        """The rows, where the transaction's mark is set; its parameter is the attempt."""
        return f"{ROWS} CROSS JOIN (SELECT VERSION FROM {self._name.progress.sql} WHERE ATTEMPT = ?) AS MARK"

    def _column(self, at: int) -> str:
        return quoted(folded(self._target.shape.schema.field(at).name))

    def _value(self, at: int) -> str:
        field = self._target.shape.schema.field(at)
        return cast(column(at), field.type, self._columns[folded(field.name)])

    @contextmanager
    def _transaction(self) -> Iterator[str]:
        """Its name."""
        self._session.run("BEGIN")
        try:
            ((transaction,),) = self._session.run("SELECT CURRENT_TRANSACTION()")
            if transaction is None:
                raise self._rolled_back()
            yield str(transaction)
            self._session.run("COMMIT")
        except BaseException:
            with suppress(SqlError):  # where the line is broken, the service ends the transaction itself
                self._session.run("ROLLBACK")
            raise


def _name(target: TableTarget[Any]) -> TableName:
    name = parsed(target.entity)
    if name is None:
        raise no_entity(target.store, target.entity)
    return name
