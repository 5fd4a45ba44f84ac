"""The system catalog itself: tables in the in-memory database beside the views, filled from the catalog's snapshot.

The tables live in an attached in-memory DuckDB database, so nothing of them is ever in the views' file, and a query may
join them with views. They are built at the first use and refreshed when the catalog's generation has changed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog import information_schema, rows, static_data
from mvserver.pgcatalog.common_work import CommonWork
from mvserver.pgcatalog.macros import STATEMENTS
from mvserver.pgcatalog.snapshot import CatalogSnapshot, CatalogSource
from mvserver.pgcatalog.static_data import INFORMATION_SCHEMA, PG_CATALOG, StaticColumn
from mvserver.pgcatalog.visibility import HIDDEN_COLUMNS, SEEN, Viewer

LIVE_SCHEMA = "mv_catalog"
LiveRelations = Mapping[str, Callable[[], pa.Table]]

_NEUTRAL: dict[str, Any] = {
    "UINTEGER": 0, "BOOLEAN": False, "SMALLINT": 0, "INTEGER": 0, "BIGINT": 0, "FLOAT": 0.0, "DOUBLE": 0.0,
    "VARCHAR": "",
}  # fmt: skip


_INTERNAL: dict[str, tuple[StaticColumn, ...]] = {
    "_definitions": (StaticColumn("oid", "oid", True), StaticColumn("definition", "text", True)),
    "_states": (StaticColumn("oid", "oid", True), StaticColumn("id", "text", True)),
    "_grants": (
        StaticColumn("object", "oid", True), StaticColumn("grantee", "oid", True),
        StaticColumn("privilege", "text", True),
    ),
    "_powers": (StaticColumn("member", "oid", True), StaticColumn("role", "oid", True)),
}  # fmt: skip
"""Tables that functions look into and no query."""


class Cursors(Protocol):
    def cursor(self) -> duckdb.DuckDBPyConnection: ...


class SystemCatalog:
    """Owner of the attached database ``name``; ``functions_path`` is what goes on a session's DuckDB search path."""

    def __init__(self, database: Cursors, name: str, source: CatalogSource, live: LiveRelations) -> None:
        self._database = database
        self._name = name
        self._source = source
        self._live = live
        self._work = CommonWork("system-catalog")
        self._schemas: dict[str, pa.Schema] = {}
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._generation: int | None = None
        self._started = dt.datetime.now(dt.UTC)
        self.functions_path = f"{name}.fn"
        cursor = database.cursor()
        try:
            cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {name}.fn")
        finally:
            cursor.close()

    def build(self, stopped: Callable[[], bool]) -> None:
        """Make tables and functions if they are not there yet: what a query needs to be bound."""
        self._work.until(lambda: self._cursor is not None, self._build, stopped)

    def refresh(self, stopped: Callable[[], bool]) -> None:
        """Bring the rows to the catalog's present generation: what a query needs to be run."""
        wanted = self._source.generation()
        self._work.until(lambda: self._generation is not None and self._generation >= wanted, self._refresh, stopped)

    def learn(self, names: Iterable[str], stopped: Callable[[], bool]) -> None:
        """The columns of those that are live relations: what a query needs to be read."""
        unknown = [name for name in names if name in self._live and name not in self._schemas]
        if unknown:
            self._work.until(
                lambda: all(name in self._schemas for name in unknown), partial(self._learn, unknown), stopped
            )

    def close(self) -> None:
        self._work.close()
        if self._cursor is not None:
            self._cursor.close()

    # --- names ------------------------------------------------------------------------------------------------------
    def has(self, schema: str, name: str) -> bool:
        if schema == LIVE_SCHEMA:
            return self.is_live(schema, name)
        return static_data.relation(schema, name) is not None

    def is_live(self, schema: str, name: str) -> bool:
        """Whether its rows are made anew for each statement: those of mv_catalog, and of pg_catalog what was given
        under the name of one of its relations (pg_stat_activity)."""
        own = static_data.relation(PG_CATALOG, name) is not None
        return name in self._live and schema == (PG_CATALOG if own else LIVE_SCHEMA)

    def relation_query(
        self, schema: str, name: str, database_oid: int, *, tableoid: bool = False, viewer: Viewer | None = None
    ) -> str:
        """A DuckDB SELECT that yields the relation as the session's database and role see it; with ``tableoid`` also
        the hidden column of that name, which would spoil a ``*``."""
        if schema == LIVE_SCHEMA:
            columns = self._live_columns(name)
            hidden = [column for column in columns if column in HIDDEN_COLUMNS]
            shown = f"* EXCLUDE ({', '.join(hidden)})" if hidden else "*"
            if viewer is not None and SEEN in columns:
                shown += viewer.untold(columns)
            condition = None if viewer is None else viewer.condition(columns) or "false"
            return f'SELECT {shown} FROM "{self.live_name(name)}"' + _where(condition)
        place = "cat" if schema == PG_CATALOG else "info"
        item = static_data.relation(schema, name)
        if item is not None and self.is_live(schema, name):
            typed = ", ".join(
                f"CAST({viewer.column(name, c.name) if viewer else c.quoted} AS {c.duck_type}) AS {c.quoted}"
                for c in item.columns
            )
            return f'SELECT {typed} FROM "{self.live_name(name)}"'
        hidden_oid = f", CAST({item.oid} AS UINTEGER) AS tableoid" if tableoid and item else ""
        source = f'SELECT * EXCLUDE (_db, _o){hidden_oid} FROM {self._name}.{place}."{name}"'
        if name not in (rows.LIVING if schema == PG_CATALOG else information_schema.LIVING):
            return source
        return source + _where(f"_db IN (0, {database_oid})", None if viewer is None else viewer.condition((SEEN,)))

    @staticmethod
    def live_name(name: str) -> str:
        """The name under which a live relation's rows are registered with a cursor before a statement runs."""
        return f"_live_{name}"

    def live_rows(self, name: str) -> pa.Table:
        return self._live[name]()

    def live_schema(self, name: str) -> pa.Schema:
        """The columns of a live relation, with those that are not shown; its rows are made once to learn them."""
        found = self._schemas.get(name)
        if found is None:
            found = self._schemas[name] = self.live_rows(name).schema
        return found

    def _live_columns(self, name: str) -> list[str]:
        return list(self.live_schema(name).names)

    # --- building, by one thread ------------------------------------------------------------------------------------
    def _refresh(self) -> None:
        if self._cursor is None:
            self._build()
        assert self._cursor is not None  # noqa: S101 - just made
        snapshot = self._source.snapshot()
        if self._generation != snapshot.generation:
            self._fill_living(self._cursor, snapshot)
            self._generation = snapshot.generation

    def _learn(self, names: Iterable[str]) -> None:
        for name in names:
            self.live_schema(name)

    def _build(self) -> None:
        cursor = self._database.cursor()
        try:
            cursor.execute("BEGIN")
            for schema in ("cat", "info"):
                cursor.execute(f"CREATE SCHEMA {self._name}.{schema}")
            for item in static_data.relations():
                place = "cat" if item.schema == PG_CATALOG else "info"
                columns = ", ".join(f'"{column.name}" {column.duck_type}' for column in item.columns)
                hidden = "_db UINTEGER, _o UINTEGER DEFAULT 0"
                cursor.execute(f'CREATE TABLE {self._name}.{place}."{item.name}" ({hidden}, {columns})')
            for name, own in _INTERNAL.items():
                columns = ", ".join(f'"{column.name}" {column.duck_type}' for column in own)
                cursor.execute(f"CREATE TABLE {self._name}.cat.{name} (_db UINTEGER, _o UINTEGER, {columns})")
            for name in static_data.ROW_FILES:
                self._fill_static(cursor, name)
            for name, build in rows.CONSTANT.items():
                self._insert(cursor, "cat", name, build())
            started = f"TIMESTAMPTZ '{self._started.isoformat()}'"
            for macro in STATEMENTS:
                cursor.execute(macro.replace("{system}", self._name).replace("{started}", started))
            cursor.execute("COMMIT")
        except BaseException:  # also of the files that are read: what is begun would be in the way of the next attempt
            cursor.close()
            raise
        self._cursor = cursor

    def _fill_living(self, cursor: duckdb.DuckDBPyConnection, snapshot: CatalogSnapshot) -> None:
        classes, attributes = rows.live_rows(
            {name: _shown(self.live_schema(name)) for name in self._live if self.is_live(LIVE_SCHEMA, name)}
        )
        live = {"pg_class": classes, "pg_attribute": attributes}
        cursor.execute("BEGIN")
        try:
            for name, build in rows.LIVING.items():
                constant = name in rows.CONSTANT or name in static_data.ROW_FILES
                own = "WHERE _db <> 0" if constant else ""
                cursor.execute(f'DELETE FROM {self._name}.cat."{name}" {own}')
                self._insert(cursor, "cat", name, build(snapshot))
            if self._generation is None:
                for name, values in live.items():
                    self._insert(cursor, "cat", name, values)
            for name, build in information_schema.LIVING.items():
                cursor.execute(f'DELETE FROM {self._name}.info."{name}"')
                self._insert(cursor, "info", name, build(snapshot))
            cursor.execute("COMMIT")
        except BaseException:
            cursor.execute("ROLLBACK")
            raise

    def _insert(
        self, cursor: duckdb.DuckDBPyConnection, place: str, name: str, values: Iterable[Mapping[str, Any]]
    ) -> None:
        found = list(values)
        if not found:
            return
        columns = _columns(PG_CATALOG if place == "cat" else INFORMATION_SCHEMA, name)
        names = ["_db", "_o", *(column.name for column in columns)]
        data: dict[str, list[Any]] = {name: [row.get(name, 0) for row in found] for name in ("_db", "_o")}
        for column in columns:
            neutral = _NEUTRAL.get(column.duck_type) if column.not_null else None
            data[column.name] = [row.get(column.name, neutral) for row in found]
        table = pa.table(data)
        cursor.register("_mv_rows", table)
        try:
            quoted = ", ".join(f'"{column}"' for column in names)
            cursor.execute(f'INSERT INTO {self._name}.{place}."{name}" ({quoted}) SELECT {quoted} FROM _mv_rows')
        finally:
            cursor.unregister("_mv_rows")

    def _fill_static(self, cursor: duckdb.DuckDBPyConnection, name: str) -> None:
        header, lines = static_data.rows_of(name)
        known = {column.name: column for column in _columns(PG_CATALOG, name)}
        procedures = static_data.procedure_names()
        data: dict[str, list[str | None]] = {}
        for at, column in enumerate(header):
            cells = [line[at] for line in lines]
            declared = known[column]
            if declared.pg_type == "regproc":
                cells = [cell if cell and cell.isdigit() else str(procedures.get(cell or "", 0)) for cell in cells]
            elif declared.duck_type.endswith("[]"):
                cells = [_list_text(cell) for cell in cells]
            data[column] = cells
        table = pa.table({column: pa.array(cells, pa.string()) for column, cells in data.items()})
        cursor.register("_mv_rows", table)
        try:
            quoted = ", ".join(f'"{column}"' for column in header)
            typed = ", ".join(f'CAST("{column}" AS {known[column].duck_type})' for column in header)
            cursor.execute(f'INSERT INTO {self._name}.cat."{name}" (_db, {quoted}) SELECT 0, {typed} FROM _mv_rows')
        finally:
            cursor.unregister("_mv_rows")


def _where(*conditions: str | None) -> str:
    given = [condition for condition in conditions if condition]
    return " WHERE " + " AND ".join(given) if given else ""


def _shown(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in HIDDEN_COLUMNS])


def _columns(schema: str, name: str) -> tuple[StaticColumn, ...]:
    if name in _INTERNAL:
        return _INTERNAL[name]
    item = static_data.relation(schema, name)
    if item is None:
        raise SqlError(sqlstates.INTERNAL_ERROR, f'system relation "{name}" has no recorded columns')
    return item.columns


def _list_text(cell: str | None) -> str | None:
    """PostgreSQL's ``{a,b}`` and ``1 2`` (vectors) as DuckDB's list text."""
    if cell is None:
        return None
    inner = cell[1:-1] if cell.startswith("{") else cell.replace(" ", ",")
    return f"[{inner}]"
