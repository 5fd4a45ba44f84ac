"""Texts beside an operator: PostgreSQL reads a constant of unknown type as the other operand's, ``total * '1.5'``.

DuckDB takes it for a text, and refuses it or turns both into floating-point numbers. Beside bytes it reads the text
in a form of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.functions.bytea_texts import hexadecimal
from mvserver.dialect.functions.casts import check_integer, constant_of

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_INTEGERS = {"SMALLINT": "smallint", "INTEGER": "integer", "BIGINT": "bigint"}
_NUMBERS = ("DECIMAL", "DOUBLE", "FLOAT")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")


def present(tree: exp.Expr) -> bool:
    return any(_constants(node) for node in interrupts.asking(tree.walk()))


def give_types(tree: exp.Expr, type_of: Callable[[exp.Expr], str]) -> bool:
    """In place, inner operations first; True when a constant was given a type. 22P02 for one that is no integer.

    ``type_of`` gives DuckDB's type of an operand, and nothing where it is not known.
    """
    changed = False
    for node in interrupts.asking(reversed(list(tree.walk(bfs=True)))):
        for constant, other in _constants(node):
            made = _typed(node, constant.unnest(), type_of(other))
            if made is not None:
                constant.replace(made)
                changed = True
    return changed


def _constants(node: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """Texts, each with the operand by whose type it is read."""
    if isinstance(node, exp.In):
        parts = [(item, node.this) for item in node.expressions]
    elif isinstance(node, exp.Between):
        parts = [(node.args["low"], node.this), (node.args["high"], node.this)]
    elif isinstance(node, (*_ARITHMETIC, *_COMPARISONS)):
        parts = [(node.left, node.right), (node.right, node.left)]
    else:
        return []
    wanted = _is_text if isinstance(node, _ARITHMETIC) else _may_be_bytes
    return [(constant, other) for constant, other in parts if wanted(constant) and not _is_text(other)]


def _is_text(node: exp.Expr) -> bool:
    bare = node.unnest()
    return isinstance(bare, exp.Literal) and bool(bare.is_string)


def _may_be_bytes(node: exp.Expr) -> bool:
    """All other texts are the same bytes in DuckDB."""
    return _is_text(node) and ("\\" in node.unnest().name or not node.unnest().name.isascii())


def _typed(node: exp.Expr, constant: exp.Expr, kind: str) -> exp.Expr | None:
    """None where the operators of the other type say something else, as those of documents and intervals."""
    assert isinstance(constant, exp.Literal)  # noqa: S101 - chosen by type
    if not isinstance(node, _ARITHMETIC):
        return _bytes(constant) if kind == "BLOB" else None
    if kind in _INTEGERS:
        check_integer(constant.name, _INTEGERS[kind])
        return exp.cast(constant.copy(), kind, dialect="duckdb")
    if kind.startswith(_NUMBERS) and not kind.endswith("]"):
        return constant_of(constant, kind)
    if kind in _TIMES and isinstance(node, exp.Sub):  # the days, or the time, between two of the same type
        return constant_of(constant, kind)
    return None


def _bytes(constant: exp.Literal) -> exp.Expr:
    return exp.Anonymous(this="_bytea_in", expressions=[exp.Literal.string(hexadecimal(constant.name))])
