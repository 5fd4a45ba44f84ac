"""A POSTGRESQL store without Spark: its tables as entities, their rows and changes as records."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import DeclaredColumn, Entity, EntityRecord, Position
from spark_sinks.postgresql import slots
from spark_sinks.postgresql.changes import ChangeRecords, known_now
from spark_sinks.postgresql.columns import changelog_columns, stream_columns
from spark_sinks.postgresql.connections import Connection, connect, reported
from spark_sinks.postgresql.held_slot import check_usable
from spark_sinks.postgresql.limits import (
    COPY_ROWS,
    COPY_TIMEOUT_S,
    PRINT_POLL_S,
    PRINT_RECORD_BYTES_MAX,
    SLOT_TIMEOUT_S,
)
from spark_sinks.postgresql.options import PostgresOptions
from spark_sinks.postgresql.pgoutput import parse
from spark_sinks.postgresql.records import RowColumn, RowShape
from spark_sinks.postgresql.replication import ReplicationStream
from spark_sinks.postgresql.slot_names import PREFIX
from spark_sinks.postgresql.spool import Spool
from spark_sinks.postgresql.tables import (
    SourceTable,
    bytes_of,
    check_identity,
    check_key,
    find_table,
    list_tables,
    no_entity,
    quoted,
)

_IDENTITIES = {"d": "primary key", "i": "index", "f": "full", "n": "nothing", "m": "differs by partition"}


class PostgresClient:
    """A :class:`spark_sinks.base.StoreClient` over one database. Keeps nothing open between calls."""

    def __init__(self, store: str, options: PostgresOptions, *, timeout_s: float) -> None:
        self._store = store
        self._options = options
        self._timeout_s = timeout_s

    def check(self) -> None:
        """Also whether the server can send changes at all, and would send them to this user."""
        with self._connected() as connection:
            found = connection.execute(
                "SELECT current_setting('wal_level'), pg_is_in_recovery(), "
                "(SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user), "
                "current_setting('server_version_num')::int"
            ).fetchone()
        assert found is not None  # noqa: S101 - one row
        level, standby, may_replicate, version = found
        if version < 140_000:
            raise self._unfit(f"the server of store {self._named} is older than PostgreSQL 14", "Use a newer server.")
        if standby:
            raise self._unfit(f"the server of store {self._named} is a standby", "Name the primary server in 'uris'.")
        if level != "logical":
            raise self._unfit(
                f"the server of store {self._named} does not log changes: wal_level is {level}",
                "Set wal_level = logical in its postgresql.conf, and restart it.",
            )
        if not may_replicate:
            raise SqlError(
                sqlstates.INSUFFICIENT_PRIVILEGE,
                f'user "{self._options.username}" of store {self._named} may not read changes',
                hint=f"ALTER ROLE {quoted(self._options.username)} REPLICATION allows it.",
            )

    @property
    def _named(self) -> str:
        return f'"{self._store}"'

    def _unfit(self, message: str, hint: str) -> SqlError:
        return SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, message, hint=hint)

    def list_entities(self) -> Sequence[Entity]:
        with self._connected() as connection:
            return [
                Entity(f"{schema}.{name}", () if rows < 0 else (("rows", str(rows)),))
                for schema, name, rows in list_tables(connection)
            ]

    def describe_entity(self, name: str) -> Entity:
        with self._connected() as connection:
            table = self._found(connection, name)
            size = bytes_of(connection, table)
            kept = [(f"slot {slot}", words) for slot, words in slots.of_table(connection, table.oid)]
        details = [
            ("kind", "partitioned table" if table.kind == "p" else "table"),
            ("rows", "unknown" if table.rows < 0 else str(table.rows)),
            ("bytes", str(size)),
            ("replica identity", _IDENTITIES.get(table.identity, table.identity)),
            ("key", ", ".join(table.key)),
        ]
        columns = [(f"column {c.name}", c.type + (" NOT NULL" if c.not_null else "")) for c in table.columns]
        return Entity(name, (*details, *columns, *kept))

    def entity_exists(self, name: str) -> bool:
        with self._connected() as connection:
            return find_table(connection, name) is not None

    def columns(self, name: str, *, changelog: bool) -> Sequence[DeclaredColumn]:
        table = self._table(name)
        self._check_readable(table, changelog=changelog)
        return changelog_columns(table) if changelog else stream_columns(table)

    def check_declared(
        self, name: str, fields: Mapping[str, Sequence[str]], primary_key: Sequence[str] | None
    ) -> Sequence[str]:
        table = self._table(name)
        self._check_readable(table, changelog=primary_key is not None)
        if primary_key is not None:
            self._check_fields(table, list(fields))
            if set(primary_key) != set(table.key):
                raise SqlError(
                    sqlstates.INVALID_TABLE_DEFINITION,
                    f'the primary key differs from that of entity "{name}"',
                    detail=f"The table's key is ({', '.join(table.key)}).",
                )
        else:
            for whole in ("before", "after"):
                self._check_fields(table, fields.get(whole, ()))
        return self._warnings(table, changelog=primary_key is not None)

    def _check_readable(self, table: SourceTable, *, changelog: bool) -> None:
        check_identity(self._store, table)
        if changelog:
            check_key(self._store, table)

    def _check_fields(self, table: SourceTable, names: Sequence[str]) -> None:
        known = {column.name.lower(): column for column in table.columns}
        for name in names:
            column = known.get(name.lower())
            if column is None:
                raise SqlError(sqlstates.UNDEFINED_COLUMN, f'entity "{table.entity}" has no column "{name}"')
            if column.generated:
                raise SqlError(
                    sqlstates.FEATURE_NOT_SUPPORTED,
                    f'column "{name}" of entity "{table.entity}" is generated, and its changes are not sent',
                    hint="Leave it out, and compute it in the query.",
                )

    def _warnings(self, table: SourceTable, *, changelog: bool) -> Sequence[str]:
        found: list[str] = []
        if table.identity == "f":
            return found
        large = [column.name for column in table.published if column.may_be_large]
        if large:
            found.append(
                f"large values of {', '.join(large)} that an update leaves as they are come in no record: "
                f"with ALTER TABLE {table.qualified} REPLICA IDENTITY FULL they do, and without it such records are "
                "rejected"
            )
        if not changelog:
            found.append(
                f'"before" has the columns ({", ".join(table.key)}) alone, and is NULL where an update leaves them as '
                f"they are: with ALTER TABLE {table.qualified} REPLICA IDENTITY FULL it is the whole row"
            )
        return found

    def check_reading(self, slot: str, *, is_read: bool) -> None:
        """Whether changes can be read by a slot of this name; one that is not there will be made. ``is_read``: it may
        be active, since it is this server that reads it."""
        with self._connected() as connection:
            state = slots.look(self._store, connection, slot, slot).slot
        if state is not None:
            problem = check_usable(self._store, slot, replace(state, active=state.active and not is_read))
            if problem is not None:
                raise problem

    # --- what such a store does not do ------------------------------------------------------------------------------
    def check_create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        raise self._not_here("creating an entity", "Create the table in its own database.")

    def create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        self.check_create_entity(name, properties)

    def drop_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        raise self._not_here("dropping an entity", "Drop the table in its own database.")

    def insert_record(self, name: str, value: str | None, key: str | None, properties: Mapping[str, Any]) -> None:
        raise self._not_here("inserting a record", "Insert the row in the table's own database.")

    def write_records(self, writes: Sequence[tuple[str, Iterable[bytes]]]) -> None:
        raise self._not_here("writing records", "Insert the rows in the table's own database.")

    def _not_here(self, what: str, hint: str) -> SqlError:
        return SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED, f"{what} in a store of type POSTGRESQL is not supported", hint=hint
        )

    # --- positions --------------------------------------------------------------------------------------------------
    def position(self, name: str, starting: str) -> Position:
        """Where exactly that is, is settled by who reads: a slot must keep what comes behind it."""
        if starting not in ("earliest", "latest"):
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'unrecognized starting position "{starting}"',
                hint="It is earliest or latest.",
            )
        check_identity(self._store, self._table(name))
        return {"start": starting}

    def close(self) -> None:
        """Nothing is open between calls."""

    # --- printing ---------------------------------------------------------------------------------------------------
    def print_entity(
        self, name: str, *, from_beginning: bool, limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        """Rows as they are now, or changes from now on: by a temporary slot, which goes with the connection."""
        table = self._table(name)
        if from_beginning:
            return _until(stopped, self._rows(table, limit, stopped))
        check_identity(self._store, table)
        return _until(stopped, self._changes(table, limit, stopped))

    def _rows(self, table: SourceTable, limit: int | None, stopped: Callable[[], bool]) -> Iterator[EntityRecord]:
        columns = table.published
        shape = RowShape([RowColumn(c.name, c.base_type_oid, c.modifier) for c in columns], table.key)
        selected = ", ".join(quoted(c.name) for c in columns) or "NULL"
        bound = "" if limit is None else f" LIMIT {int(limit)}"
        statement = f"SELECT {selected} FROM {table.rows_of}{bound}"
        with self._connected(stopped) as connection, connection.answering_within(COPY_TIMEOUT_S):
            connection.execute("BEGIN READ ONLY")
            connection.execute("SET LOCAL statement_timeout = 0")
            connection.execute(f"DECLARE mvserver_rows NO SCROLL CURSOR FOR {statement}")
            number = 0
            while not stopped():
                result = connection.execute(f"FETCH {COPY_ROWS} FROM mvserver_rows", prepare=False).pgresult
                if result is None or not result.ntuples:
                    return
                for at in range(result.ntuples):
                    values = [result.get_value(at, place) for place in range(len(columns))]
                    key = shape.key(list(values)) if table.key else None
                    yield EntityRecord(key, shape.row(list(values)), f"row:{number}", None)
                    number += 1

    def _changes(self, table: SourceTable, limit: int | None, stopped: Callable[[], bool]) -> Iterator[EntityRecord]:
        name = f"{PREFIX}print_{uuid.uuid4().hex[:16]}"
        with self._connected() as connection, TemporaryDirectory() as folder:
            slots.make_publication(self._store, connection, name, table)
            try:
                with closing(
                    ReplicationStream(self._store, self._options, timeout_s=self._timeout_s, given_up=stopped)
                ) as stream:
                    with stream.connection.answering_within(SLOT_TIMEOUT_S):
                        start, _ = slots.create_slot(self._store, stream.connection, name, temporary=True, export=False)
                    stream.start(name, name, start)
                    spool = Spool(Path(folder) / "spool", start)
                    records = ChangeRecords(
                        known_now(self._options.database, table),
                        spool,
                        keyed=False,
                        record_bytes_max=PRINT_RECORD_BYTES_MAX,
                    )
                    yield from self._printed(stream, spool, records, limit, stopped)
            finally:
                with reported(self._store):
                    connection.execute(f"DROP PUBLICATION IF EXISTS {quoted(name)}")

    def _printed(
        self,
        stream: ReplicationStream,
        spool: Spool,
        records: ChangeRecords,
        limit: int | None,
        stopped: Callable[[], bool],
    ) -> Iterator[EntityRecord]:
        sent = 0
        while not stopped():
            came = False
            for message in stream.messages():
                came = True
                if isinstance(message, bytes):
                    records.take(parse(message))
                elif not records.in_transaction:
                    spool.received(message.lsn)
            for batch in spool.table(spool.start, spool.end):
                for row in batch.select(["value", "position", "record_time"]).to_pylist():
                    moment = int(row["record_time"].timestamp() * 1000)
                    yield EntityRecord(None, row["value"], row["position"], moment)
                    sent += 1
                    if sent == limit:
                        return
            spool.release(spool.end)
            stream.confirm(spool.end, spool.end)
            if not came:
                stream.wait(PRINT_POLL_S)

    # --- the server -------------------------------------------------------------------------------------------------
    @contextmanager
    def _connected(self, given_up: Callable[[], bool] = lambda: False) -> Iterator[Connection]:
        connection = connect(
            self._store,
            self._options,
            timeout_s=self._timeout_s,
            statement_timeout_s=self._timeout_s,
            given_up=given_up,
        )
        try:
            with reported(self._store):
                yield connection
        finally:
            connection.close()

    def _table(self, name: str) -> SourceTable:
        with self._connected() as connection:
            return self._found(connection, name)

    def _found(self, connection: Connection, name: str) -> SourceTable:
        table = find_table(connection, name)
        if table is None:
            raise no_entity(self._store, name)
        return table


def _until(stopped: Callable[[], bool], records: Iterator[EntityRecord]) -> Iterator[EntityRecord]:
    """Whoever has stopped it knows why it ends."""
    try:
        yield from records
    except SqlError as error:
        if error.sqlstate != sqlstates.QUERY_CANCELED or not stopped():
            raise
