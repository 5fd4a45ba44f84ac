"""Statements that come again with each batch, parsed once: parsing is a tenth of what a merge costs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

_KEPT_MAX = 2_000  # a view has one or two for each shape of a batch
_SLOTS_MAX = 200

# A relation (``cursor.sql``) has its query bound twice, which costs a small one more than the copy of its rows does.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)


def table_of(cursor: duckdb.DuckDBPyConnection, query: str | duckdb.Statement) -> pa.Table:
    """The rows of a query, of which there are few: they are copied once more than by a relation."""
    return cursor.execute(query).to_arrow_table()


class HandedRows:
    """What a registered name stands for: DuckDB reads it, whenever a statement does, through Arrow's C stream
    interface, and gets the rows that are there at that moment."""

    def __init__(self, schema: pa.Schema) -> None:
        self._none: pa.Table = schema.empty_table()
        self._rows = self._none

    @property
    def schema(self) -> pa.Schema:
        return self._none.schema

    def put(self, rows: pa.Table) -> None:
        self._rows = rows

    def clear(self) -> None:
        self._rows = self._none

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


class Statements:
    """Those of one cursor. Whoever rolls back says so."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self.cursor = cursor
        self._parsed: dict[str, duckdb.Statement] = {}
        self._slots: dict[pa.Schema, tuple[str, HandedRows]] = {}

    def execute(self, text: str, parameters: Sequence[Any] = ()) -> duckdb.DuckDBPyConnection:
        return self.cursor.execute(self._statement(text), list(parameters))

    def table(self, query: str) -> pa.Table:
        return table_of(self.cursor, self._statement(query))

    @contextmanager
    def named(self, rows: pa.Table) -> Iterator[str]:
        """The name that the rows have meanwhile. Tables of equal columns have one name after the other, and it stays
        registered: to register one and take it back costs as much as a small statement."""
        found = self._slots.get(rows.schema)
        if found is None:
            if len(self._slots) >= _SLOTS_MAX:
                self.forget_names()
            found = f"mv_rows_{len(self._slots)}", HandedRows(rows.schema)
            self.cursor.register(*found)
            self._slots[rows.schema] = found
        name, slot = found
        slot.put(rows)
        try:
            yield name
        finally:
            slot.clear()

    def forget_names(self) -> None:
        """A transaction is rolled back, and with it what was registered in it. The names are given again, to others."""
        self._slots.clear()

    def _statement(self, text: str) -> duckdb.Statement:
        statement = self._parsed.get(text)
        if statement is None:
            if len(self._parsed) >= _KEPT_MAX:
                self._parsed.clear()
            (statement,) = self.cursor.extract_statements(text)
            self._parsed[text] = statement
        return statement
