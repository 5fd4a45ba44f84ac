"""Statements that come again with each batch, parsed once: parsing is a tenth of what a merge costs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import duckdb
import pyarrow as pa

_KEPT_MAX = 2_000  # a view has one or two for each shape of a batch
_SLOTS_MAX = 200
_PARAMETER = re.compile(r"\$(\d+)")

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
        self._slots: dict[tuple[pa.Schema, int], tuple[str, HandedRows]] = {}
        self._in_use = 0

    def execute(self, text: str, parameters: Sequence[Any] = ()) -> duckdb.DuckDBPyConnection:
        return self.cursor.execute(self._statement(text), list(parameters))

    def table(self, query: str) -> pa.Table:
        return table_of(self.cursor, self._statement(query))

    @contextmanager
    def named(self, rows: pa.Table, beside: int = 0) -> Iterator[str]:
        """The name that the rows have meanwhile, ``beside`` so many other tables of equal columns. Such tables have one
        name after the other, and it stays registered: to register one and take it back costs as much as a small
        statement."""
        found = self._slots.get((rows.schema, beside))
        if found is None:
            if len(self._slots) >= _SLOTS_MAX and not self._in_use:
                self.forget_names()
            found = f"mv_rows_{len(self._slots)}", HandedRows(rows.schema)
            self.cursor.register(*found)
            self._slots[rows.schema, beside] = found
        name, slot = found
        slot.put(rows)
        self._in_use += 1
        try:
            yield name
        finally:
            self._in_use -= 1
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


class Together:
    """Statements that write, each to another table, gathered to be executed as one: to begin a statement is a third to
    two thirds of what a small one costs. DuckDB carries them out in their order."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._texts: list[str] = []
        self._parameters: list[Any] = []
        self._schemas: list[pa.Schema] = []  # of the tables that have names
        self._named = ExitStack()

    def add(self, text: str, parameters: Sequence[Any]) -> None:
        """``parameters`` are $1, $2 ... of the text, which has no such name or constant."""
        before = len(self._parameters)
        self._texts.append(_PARAMETER.sub(lambda found: f"${before + int(found[1])}", text))
        self._parameters += parameters

    def name(self, rows: pa.Table) -> str:
        """The name that the rows have until it is executed."""
        beside = self._schemas.count(rows.schema)
        self._schemas.append(rows.schema)
        return self._named.enter_context(self._statements.named(rows, beside))

    def execute(self) -> None:
        try:
            if self._texts:
                *others, last = self._texts
                before = ", ".join(f"w{i} AS ({text})" for i, text in enumerate(others))
                self._statements.execute(f"WITH {before} {last}" if others else last, self._parameters)
        finally:
            self.forget()

    def forget(self) -> None:
        """What was gathered."""
        self._texts, self._parameters, self._schemas = [], [], []
        self._named.close()
