"""Constants of a pull query are read when it is planned, as in PostgreSQL: ``'x'::date`` is an error at once.

DuckDB would read them when the query runs, where nothing of the query's text is known any more, and not at all where
no row asks for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.duck_text import written
from mvserver.dialect.errors.duck_errors import translate


def check(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr) -> None:
    """The error of the first literal that cannot be cast to the type that the query says."""
    casts = [written(node) for node in interrupts.asking(tree.find_all(exp.Cast, bfs=False)) if _is_constant(node)]
    if casts and not _readable(cursor, casts):
        for cast in interrupts.asking(casts):
            try:
                cursor.execute(f"SELECT {cast}").fetchall()
            except duckdb.Error as error:
                raise translate(error) from error


def _is_constant(node: exp.Expr) -> bool:
    operand = node.this
    return type(node) is exp.Cast and isinstance(operand, exp.Literal) and operand.is_string


def _readable(cursor: duckdb.DuckDBPyConnection, casts: Sequence[str]) -> bool:
    try:
        cursor.execute(f"SELECT {', '.join(casts)}").fetchall()
    except duckdb.Error:
        return False
    return True
