"""A SNOWFLAKE store without Spark: the tables of an account as entities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Entity, EntityRecord, TableShape
from spark_sinks.snowflake.columns import check_columns, check_names, described, inserted, type_of
from spark_sinks.snowflake.limits import SNOWFLAKE_PRINT_ROWS, SNOWFLAKE_TABLES_LISTED_MAX
from spark_sinks.snowflake.names import PROGRESS, TableName, folded, parsed, quoted, spelled
from spark_sinks.snowflake.options import DATABASE, SCHEMA, SnowflakeOptions
from spark_sinks.snowflake.session import Session, described_table, found_table, no_entity
from spark_sinks.table_rows import object_of
from spark_sinks.written_tables import WrittenTables, printed

_HIDDEN_SCHEMA = "INFORMATION_SCHEMA"


class SnowflakeClient(WrittenTables):
    """A :class:`spark_sinks.base.StoreClient` and :class:`spark_sinks.base.TableClient`. Keeps nothing open."""

    kind = "SNOWFLAKE"

    def __init__(self, store: str, options: SnowflakeOptions, *, timeout_s: float) -> None:
        self._store = store
        self._options = options
        self._timeout_s = timeout_s

    def check(self) -> None:
        with self._opened() as session:
            if self._options.warehouse is not None:
                session.run(f"USE WAREHOUSE {spelled(self._options.warehouse)}")
            session.run("SELECT 1")
            self._tables(session, "LIMIT 1")

    def list_entities(self) -> Sequence[Entity]:
        with self._opened() as session:
            rows = self._tables(session)
        if len(rows) >= SNOWFLAKE_TABLES_LISTED_MAX:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                f'store "{self._store}" has {SNOWFLAKE_TABLES_LISTED_MAX} tables or more, which are not listed',
                hint=f"Give the store '{DATABASE}' and '{SCHEMA}'.",
            )
        names = [TableName(row["database_name"], row["schema_name"], row["name"]) for row in rows]
        shown = [n for n in names if not n.table.endswith(PROGRESS) and n.schema.upper() != _HIDDEN_SCHEMA]
        return [Entity(name) for name in sorted(map(str, shown))]

    def _tables(self, session: Session, more: str = "") -> list[dict[str, Any]]:
        database, schema = self._options.database, self._options.schema
        if database is None:
            place = "ACCOUNT"
        elif schema is None:
            place = f"DATABASE {quoted(database)}"
        else:
            place = f"SCHEMA {quoted(database)}.{quoted(schema)}"
        return session.named(f"SHOW TERSE TABLES IN {place} {more}".rstrip())

    def describe_entity(self, name: str) -> Entity:
        with self._opened() as session:
            table, found = self._found(session, name)
            ((rows,),) = session.run(f"SELECT COUNT(*) FROM {table.sql}")
            details = [("kind", str(found["kind"])), ("rows", str(rows)), ("bytes", str(found["bytes"]))]
            columns = described(described_table(session, table))
            shown = [(f"column {c.name}", c.type + ("" if c.nullable else " NOT NULL")) for c in columns.values()]
            return Entity(name, (*details, *shown, *_writers(session, table)))

    def entity_exists(self, name: str) -> bool:
        table = parsed(name)
        if table is None:
            return False
        with self._opened() as session:
            return found_table(session, table) is not None

    def drop_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        """With the positions of the queries that wrote to it."""
        with self._opened() as session:
            table, _ = self._found(session, name)
            session.run(f"DROP TABLE {table.sql}")
            session.run(f"DROP TABLE IF EXISTS {table.progress.sql}")

    def print_entity(
        self, name: str, *, from_beginning: bool, limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        """The rows as they are now, in either case: a table has no order in which they came."""
        with self._opened() as session:
            table, _ = self._found(session, name)
        return self._printed(table, limit, stopped)

    def _printed(self, table: TableName, limit: int | None, stopped: Callable[[], bool]) -> Iterator[EntityRecord]:
        bound = "" if limit is None else f" LIMIT {limit}"
        with self._opened() as session:
            pages = session.pages(f"SELECT * FROM {table.sql}{bound}", SNOWFLAKE_PRINT_ROWS)
            yield from printed((_Page(rows) for rows in pages), limit, stopped)

    def insert_record(self, name: str, value: str | None, key: str | None, properties: Mapping[str, Any]) -> None:
        given = object_of(name, value, key, properties)
        with self._opened() as session:
            table, _ = self._found(session, name)
            names, values, parts = inserted(name, given, described(described_table(session, table)))
            columns = ", ".join(map(quoted, names))
            session.changed(f"INSERT INTO {table.sql} ({columns}) SELECT {', '.join(parts)}", *values)

    # --- what queries write to --------------------------------------------------------------------------------------
    def check_table(self, name: str, shape: TableShape, properties: Mapping[str, str]) -> bool:
        table = self._parsed(name)
        with self._opened() as session:
            if found_table(session, table) is None:
                check_names(shape)
                return False
            check_columns(described(described_table(session, table)), shape, name)
            return True

    def create_table(self, name: str, shape: TableShape, properties: Mapping[str, str]) -> None:
        """Database and schema have to be there."""
        check_names(shape)
        columns = [
            f"{quoted(folded(field.name))} {type_of(field.type)}{'' if field.nullable else ' NOT NULL'}"
            for field in shape.schema
        ]
        with self._opened() as session:
            session.run(f"CREATE TABLE {self._parsed(name).sql} ({', '.join(columns)})")

    def close(self) -> None:
        """Nothing is open between calls."""

    def _found(self, session: Session, name: str) -> tuple[TableName, dict[str, Any]]:
        table = self._parsed(name)
        found = found_table(session, table)
        if found is None:
            raise no_entity(self._store, name)
        return table, found

    def _parsed(self, name: str) -> TableName:
        table = parsed(name)
        if table is None:
            raise no_entity(self._store, name)
        return table

    @contextmanager
    def _opened(self) -> Iterator[Session]:
        session = Session(self._store, self._options, timeout_s=self._timeout_s)
        try:
            yield session
        finally:
            session.close()


@dataclass(frozen=True)
class _Page:
    """Rows, as a batch of Arrow gives them."""

    rows: list[dict[str, Any]]

    def to_pylist(self, **_: Any) -> list[dict[str, Any]]:
        return self.rows


def _writers(session: Session, table: TableName) -> list[tuple[str, str]]:
    try:
        rows = session.run(f"SELECT QUERY_ID, POSITION FROM {table.progress.sql} ORDER BY QUERY_ID")
    except SqlError as error:
        if error.sqlstate == sqlstates.UNDEFINED_OBJECT:
            return []
        raise
    return [(f"query {query}", str(position)) for query, position in rows if position is not None]
