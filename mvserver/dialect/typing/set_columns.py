"""Columns of UNION, INTERSECT and EXCEPT, of which one side is a constant of no type yet: it takes the other side's.

DuckDB makes texts of both. As in PostgreSQL two sides are looked at at a time, and where both are such constants, the
column is text.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.duck_text import written
from mvserver.dialect.errors.duck_errors import translate
from mvserver.dialect.functions.casts import constant_of
from mvserver.dialect.probes import bound_in
from mvserver.dialect.typing.operand_rules import first_select, is_certain
from mvserver.dialect.typing.operators import span
from mvserver.errors import SqlError

_OWN_READING = ("VARCHAR", '"NULL"', "STRUCT", "MAP")
"""Of types beside which a text stays one, or is read by other rules."""
_LISTS_OF_TEXTS = ("VARCHAR[]", '"NULL"[]')


def unify(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr, *, inner: bool = False) -> bool:
    """In place, inner ones first; True when a constant was given a type. ``inner``: only those of sub-queries, on whose
    types the query around them depends, and of types that are not still to be changed."""
    changed = False
    for operation in interrupts.asking(reversed(list(tree.find_all(exp.SetOperation)))):
        if inner and not _is_settled(operation, tree):
            continue
        sides = (operation.left, operation.right)
        columns = [_columns(side) for side in sides]
        for side, own, others in ((sides[1], columns[0], columns[1]), (sides[0], columns[1], columns[0])):
            wanted = {number: item for number, item in enumerate(own) if _is_unknown(item)}
            if not wanted or (others and all(_is_unknown(others[n]) for n in wanted if n < len(others))):
                continue
            kinds = _types(cursor, side, tree)
            for number, item in wanted.items():
                if number < len(kinds) and not (others and _is_unknown(others[number])):
                    changed |= _give(cursor, item, kinds[number])
    return changed


def _is_settled(operation: exp.SetOperation, tree: exp.Expr) -> bool:
    top: exp.Expr = operation
    while isinstance(top.parent, exp.SetOperation | exp.Paren) or (
        isinstance(top.parent, exp.Subquery) and isinstance(top.parent.parent, exp.SetOperation)
    ):
        top = top.parent
    if top.find_ancestor(exp.Query) is None:
        return False
    within = [cte for cte in tree.find_all(exp.CTE) if operation.find_ancestor(exp.CTE) is not cte]
    if any(part.find(*_CHANGED) is not None for part in (operation, *within)):
        return False
    first = first_select(operation)
    return first is not None and all(is_certain(item.unalias()) for item in first.expressions)


_CHANGED = (exp.Sum, exp.Avg, exp.Div)
"""Of what DuckDB and PostgreSQL make different types."""


def _columns(side: exp.Expr) -> Sequence[exp.Expr]:
    """Of a plain SELECT; none where they are of an inner operation, or cannot be counted."""
    bare = side.unnest()
    if not isinstance(bare, exp.Select) or any(item.is_star for item in bare.expressions):
        return ()
    return [item.unalias() for item in bare.expressions]


def _is_unknown(item: exp.Expr) -> bool:
    bare = item.unnest()
    return isinstance(bare, exp.Literal) and bool(bare.is_string)


def _give(cursor: duckdb.DuckDBPyConnection, item: exp.Expr, kind: str) -> bool:
    if kind.startswith(_OWN_READING) and kind not in _LISTS_OF_TEXTS:
        return False
    found = span(item)
    try:
        made = constant_of(item.unnest(), kind)  # type: ignore[arg-type]
        cursor.execute(f"SELECT {written(made)}").fetchall()
    except duckdb.Error as error:
        raise translate(error).at(None if found is None else found[0] + 1) from error
    except SqlError as error:
        error.position = None if found is None else found[0] + 1
        raise
    item.replace(made)
    return True


def _types(cursor: duckdb.DuckDBPyConnection, side: exp.Expr, tree: exp.Expr) -> Sequence[str]:
    """Empty where it does not bind."""
    found = bound_in(cursor, side, tree.args.get("with_"))
    return () if found is None else found.types
