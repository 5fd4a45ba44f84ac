"""Texts beside an operator: PostgreSQL reads a constant of unknown type as the other operand's, ``total * '1.5'``.

DuckDB takes it for a text, and refuses it or turns both into floating-point numbers. Beside bytes and arrays it reads
the text in a form of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.functions.arrays import compared_array
from mvserver.dialect.functions.bytea_texts import hexadecimal
from mvserver.dialect.functions.casts import array_of, check_integer, constant_of
from mvserver.dialect.marks import UNTYPED

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_NO_OPERANDS = (exp.Null, exp.Any, exp.All)
"""Of ``x = ANY (...)`` each element is one."""
_CALLS = (exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif)
_INTEGERS = {"SMALLINT": "smallint", "INTEGER": "integer", "BIGINT": "bigint"}
_NUMBERS = ("DECIMAL", "DOUBLE", "FLOAT")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")


def present(tree: exp.Expr) -> bool:
    return any(_constants(node) or _compared_array(node) for node in interrupts.asking(tree.walk()))


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
        array = _compared_array(node)
        kind = "" if array is None else type_of(node.this)
        if array is not None and kind not in ("", "VARCHAR"):
            array.replace(array_of(array.copy(), f"{kind}[]"))
            changed = True
    return changed


def _compared_array(node: exp.Expr) -> exp.Expr | None:
    """That of ``x = ANY('{1,2}')``, while nothing has given it a type."""
    each = node.args.get("expression") if isinstance(node, _COMPARISONS) else None
    array = compared_array(each) if each is not None else None
    return array if array is not None and array.meta.get(UNTYPED) else None


def _constants(node: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """Texts, each with the operand by whose type it is read."""
    if isinstance(node, _ARITHMETIC):
        return [pair for pair in _pairs((node.left, node.right)) if not is_text(pair[1])]
    return [
        pair
        for operands in _alike(node)
        for pair in _pairs(operands)
        if _has_own_form(pair[0]) and not is_text(pair[1])
    ]


def _alike(node: exp.Expr) -> Sequence[Sequence[exp.Expr | None]]:
    """Operands of one type."""
    if isinstance(node, exp.In):
        return [(node.this, *node.expressions)]
    if isinstance(node, exp.Between):
        return [(node.this, node.args["low"], node.args["high"])]
    if isinstance(node, (*_COMPARISONS, *_CALLS)):
        return [(node.this, *(node.expressions or [node.args.get("expression")]))]
    if isinstance(node, exp.Values):
        rows = [row.expressions for row in node.expressions if isinstance(row, exp.Tuple)]
        return list(zip(*rows, strict=False))
    if isinstance(node, exp.ExplodingGenerateSeries):
        return [(node.args["start"], node.args["end"])]
    if isinstance(node, exp.Anonymous) and node.name in ("_array_cat", "_contains_all"):
        return [node.expressions]
    if isinstance(node, exp.ArrayOverlaps):
        return [(node.this, node.expression)]
    if isinstance(node, exp.Case):
        branches = node.args["ifs"]
        tested = [(node.this, *(branch.this for branch in branches))] if node.this is not None else []
        return [*tested, (*(branch.args["true"] for branch in branches), node.args.get("default"))]
    return []


def _pairs(operands: Sequence[exp.Expr | None]) -> list[tuple[exp.Expr, exp.Expr]]:
    """Each text with the first operand that is none, or with the next one."""
    given = [operand for operand in operands if operand is not None and not isinstance(operand.unnest(), _NO_OPERANDS)]
    found = []
    for place, constant in enumerate(given):
        others = [*given[:place], *given[place + 1 :]]
        typed = next((other for other in others if not is_text(other)), None)
        if is_text(constant) and typed is not None:
            found.append((constant, typed))
    return found


def is_text(node: exp.Expr) -> bool:
    """Whether it is a constant text, also in brackets."""
    bare = node.unnest()
    return isinstance(bare, exp.Literal) and bool(bare.is_string)


def _has_own_form(constant: exp.Expr) -> bool:
    """As bytes, as an array, or as a time before Christ. All other texts are the same bytes in DuckDB."""
    text = constant.unnest().name
    return text.upper().endswith(" BC") or "\\" in text or not text.isascii() or text.lstrip().startswith(("{", "["))


def _typed(node: exp.Expr, constant: exp.Expr, kind: str) -> exp.Expr | None:
    """None where the operators of the other type say something else, as those of documents and intervals."""
    assert isinstance(constant, exp.Literal)  # noqa: S101 - chosen by type
    if not isinstance(node, _ARITHMETIC):
        if kind.endswith("[]"):
            return constant_of(constant, kind)
        if kind in _TIMES and constant.name.upper().endswith(" BC"):
            return constant_of(constant, kind)
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
