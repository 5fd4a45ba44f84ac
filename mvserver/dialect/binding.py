"""Names and types of a query without running it.

DuckDB's ``_bind`` gives names, result types and parameter types of a parsed statement in some 40 µs. It is private, so
it is guarded: where it is missing or has another shape, the types come from a DESCRIBE of the same text, with unknown
parameters bound as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
from sqlglot import exp

from mvserver import interrupts, limits, sqlstates
from mvserver.dialect.duck_text import last_written, written
from mvserver.dialect.errors.duck_errors import translate
from mvserver.dialect.functions.arrays import compared_array
from mvserver.dialect.typing import duck_types
from mvserver.errors import SqlError

UNKNOWN = "UNKNOWN"
_PARAMETER = re.compile(r"\$(\d+)")
_QUOTED_OR_SEMICOLON = re.compile(r"""'[^']*'|"[^"]*"|;""")


@dataclass(frozen=True)
class Bound:
    names: tuple[str, ...]
    types: tuple[str, ...]  # as DuckDB prints them; empty where parameters of unknown type hide them
    parameters: dict[int, str]


def bind(cursor: duckdb.DuckDBPyConnection, sql: str) -> Bound:
    """Raises SqlError for what does not bind."""
    try:
        if len(sql) > limits.STATEMENT_KEPT_CHARACTERS_MAX and _PARAMETER.search(sql) is None:
            _refuse_several(sql)
            return _from_describe(cursor, sql)  # all others wait while extract_statements parses
        statements = cursor.extract_statements(sql)
        if len(statements) != 1:
            raise _several()
        statement = statements[0]
        private = getattr(cursor, "_bind", None)
        if private is not None:
            found = _from_private(private(statement))
            if found is not None:
                return found
        return _from_describe(cursor, sql)
    except duckdb.Error as error:
        raise translate(error) from error


def _refuse_several(sql: str) -> None:
    """DuckDB runs all statements of a text. No text of ours has a semicolon outside of quotes."""
    if any(found[0] == ";" for found in _QUOTED_OR_SEMICOLON.finditer(sql)):
        raise _several()


def _several() -> SqlError:
    return SqlError(sqlstates.INTERNAL_ERROR, "a query became several statements")


def _from_private(answer: object) -> Bound | None:
    """None when the answer has not the shape that this release is known to give."""
    if not isinstance(answer, tuple) or len(answer) < 3:
        return None
    names, types, parameters = answer[:3]
    if not isinstance(names, list) or not isinstance(types, list) or len(names) != len(types):
        return None
    try:
        by_number = {int(name): str(kind) for name, kind in parameters}
    except (TypeError, ValueError):
        return None
    shown = tuple(str(kind) for kind in types)
    if UNKNOWN in by_number.values() or shown == (UNKNOWN,):  # the latter where a macro asks for a parameter's type
        return Bound((), (), by_number)
    return Bound(tuple(str(name) for name in names), shown, by_number)


def bind_with_nulls(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: dict[int, str]) -> Bound:
    """Where DuckDB leaves a parameter's type open although it is cast: NULLs in their place give the types."""
    bound = bind(cursor, without_parameters(sql))
    return Bound(bound.names, bound.types, parameters)


def guessed_types(tree: exp.Expr, numbers: Sequence[int]) -> tuple[dict[int, str], ...]:
    """What parameters of unknown type may be, best guess first: PostgreSQL takes the other operand's type."""
    first = dict.fromkeys(numbers, "VARCHAR")
    for node in interrupts.asking(tree.find_all(exp.Parameter)):
        if not node.name.isdigit() or int(node.name) not in first:
            continue
        parent = node.parent.parent if isinstance(node.parent, exp.Paren) else node.parent
        if isinstance(parent, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.Neg | exp.Between):
            literals = [part for part in parent.iter_expressions() if isinstance(part, exp.Literal)]
            first[int(node.name)] = "DOUBLE" if any("." in literal.name for literal in literals) else "BIGINT"
    return (first, *(dict.fromkeys(numbers, other) for other in ("VARCHAR", "BIGINT", "INTEGER", "DOUBLE")))


def array_types(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr) -> dict[int, str]:
    """The types of parameters in ``x = ANY($n)`` that the client left open: arrays of what they are compared with.

    DuckDB does not infer them there, but does so for ``list_contains($n, x)``, which takes the same two operands.
    """
    root = exp.Paren(this=tree.copy())
    asked = False
    for node in interrupts.asking(list(root.find_all(exp.Any, exp.All, exp.Anonymous))):
        inner, comparison = compared_array(node), node.parent
        if isinstance(inner, exp.Parameter) and isinstance(comparison, exp.Binary) and comparison.expression is node:
            comparison.replace(exp.Anonymous(this="list_contains", expressions=[inner.copy(), comparison.this.copy()]))
            asked = True
    if not asked:
        return {}
    try:
        found = bind(cursor, last_written(root.this)).parameters
    except SqlError:
        return {}  # the query's own binding says what is wrong, in its own words
    return {number: kind for number, kind in found.items() if kind.endswith("[]")}


def cast_types(tree: exp.Expr) -> dict[int, str]:
    """Types that parameters are cast to in the text itself."""
    return {
        int(node.name): written(node.parent.to)
        for node in tree.find_all(exp.Parameter)
        if node.name.isdigit() and isinstance(node.parent, exp.Cast)
    }


def _from_describe(cursor: duckdb.DuckDBPyConnection, sql: str) -> Bound:
    numbers = sorted({int(number) for number in _PARAMETER.findall(sql)})
    text = _PARAMETER.sub("CAST(NULL AS VARCHAR)", sql)
    rows = cursor.execute(f"DESCRIBE {text}").fetchall()
    return Bound(
        tuple(str(row[0]) for row in rows), tuple(str(row[1]) for row in rows), dict.fromkeys(numbers, "VARCHAR")
    )


def parameter_numbers(tree: exp.Expr) -> list[int]:
    found = {int(node.name) for node in tree.find_all(exp.Parameter) if node.name.isdigit()}
    return sorted(found)


def cast_parameters(tree: exp.Expr, types: dict[int, str]) -> None:
    """``$n`` becomes ``CAST($n AS type)`` in place, except where it is cast to that already."""
    for node in interrupts.asking(list(tree.find_all(exp.Parameter))):
        if not node.name.isdigit():
            continue
        wanted = types.get(int(node.name))
        if wanted is None or isinstance(node.parent, exp.Cast):
            continue
        cast = exp.Cast(to=exp.DataType.build(wanted, dialect="duckdb"))
        node.replace(cast)
        cast.set("this", node)


def client_casts(
    numbers: Sequence[int], oids: Sequence[int], bound: dict[int, str], own_types: Mapping[int, str]
) -> dict[int, str]:
    """Which parameters need a cast to the type that the client declared.

    None where DuckDB infers the same family and the client's is not wider: then a comparison with a column stays one
    that an index answers.
    """
    casts: dict[int, str] = {}
    for number in numbers:
        oid = oids[number - 1] if number <= len(oids) else 0
        wanted = own_types.get(oid) or duck_types.parameter_cast(oid)
        inferred = bound.get(number, UNKNOWN)
        if wanted is None or wanted == inferred:
            continue
        width, other = _INTEGER_WIDTH.get(wanted), _INTEGER_WIDTH.get(inferred)
        if width is not None and other is not None and width <= other:
            continue
        casts[number] = wanted
    return casts


def compared_decimals(tree: exp.Expr, bound: Mapping[int, str]) -> set[int]:
    """The parameters that are compared with decimal columns alone. A value is compared with all its digits there, and
    without a cast the comparison is one that finished rows know."""
    decimals = {number for number, kind in bound.items() if kind.startswith("DECIMAL")}
    if decimals:
        for node in interrupts.asking(tree.find_all(exp.Parameter)):
            compared = isinstance(node.parent, _COMPARISONS) and isinstance(node.parent.this, exp.Column)
            if node.name.isdigit() and not compared:
                decimals.discard(int(node.name))
    return decimals


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
_INTEGER_WIDTH = {"SMALLINT": 2, "INTEGER": 4, "BIGINT": 8, "UINTEGER": 6}


def without_parameters(sql: str) -> str:
    """For EXPLAIN, which has no values to bind: each parameter as a NULL."""
    return _PARAMETER.sub("NULL", sql)
