"""Statements that come again with each batch, parsed once: parsing is a tenth of what a merge costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

_KEPT_MAX = 2_000  # a view has one or two for each shape of a batch


class Statements:
    """Those of one cursor."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self._parsed: dict[str, duckdb.Statement] = {}

    def execute(self, text: str, parameters: Sequence[Any] = ()) -> duckdb.DuckDBPyConnection:
        statement = self._parsed.get(text)
        if statement is None:
            if len(self._parsed) >= _KEPT_MAX:
                self._parsed.clear()
            (statement,) = self._cursor.extract_statements(text)
            self._parsed[text] = statement
        return self._cursor.execute(statement, list(parameters))
