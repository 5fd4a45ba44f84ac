"""PostgreSQL's functions of bytea, which DuckDB's BLOB has not: ``length``, ``substring``, ``position`` and their like.

They are computed over the hexadecimal digits of the bytes by macros (``pgcatalog.binary_macros``). Which function is
meant is told by the operand's type, so this is asked where a query does not bind as it is.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.derived_columns import inner_first
from mvserver.dialect.functions.periods import whole_call
from mvserver.sql.pull_parser import CALLED

TypeOf = Callable[[exp.Expr], str]

_BYTES = "BLOB"


def add_missing(tree: exp.Expr, type_of: TypeOf) -> bool:
    """In place, inner calls first; True where there was one."""
    changed = False
    for node in interrupts.asking(reversed(list(tree.walk(bfs=True)))):
        made = _made(node, type_of)
        if made is not None:
            node.replace(made)
            changed = True
    return changed


def present(tree: exp.Expr) -> bool:
    """Whether there is a function that DuckDB would do to the text of bytes."""
    return any(_is_trimming(node) for node in interrupts.asking(tree.walk()))


def trim(tree: exp.Expr, type_of: TypeOf) -> bool:
    """``btrim(bytea, bytea)`` and its like, in place, before the types of all around them are asked for."""
    changed = False
    for node in interrupts.asking(inner_first(tree)):
        if _is_trimming(node) and (made := _made(node, type_of)) is not None:
            node.replace(made)
            changed = True
    return changed


def _is_trimming(node: exp.Expr) -> bool:
    called = _call_of(node) if isinstance(node, exp.Trim | exp.Anonymous) else None
    return called is not None and called[0] in _TRIMMED.values()


def _made(node: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    call = _call_of(node)
    if call is None:
        return None
    name, arguments = call
    if type_of(arguments[0]) != _BYTES:
        return None
    if name == "string_agg":
        return _joined(node)
    others = [_bytes(part) if name in _OF_BYTES and at == 1 else part.copy() for at, part in enumerate(arguments)]
    return exp.Anonymous(this=f"_bytes_{name}", expressions=others)


_OF_BYTES = frozenset({"strpos", "overlay", "btrim", "ltrim", "rtrim"})
"""Their second argument is bytes too; a text constant is read as them."""
_MADE = {"_substring": "substring", "_overlay": "overlay", "_overlay_all": "overlay"}
"""By the macros of texts that stand for them already."""
_TRIMMED = {"": "btrim", "BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def _call_of(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """By PostgreSQL's name, with the arguments in the order of the macro."""
    if isinstance(node, exp.Length) and node.meta.get(CALLED, ("length",))[0] == "length":
        return "length", [node.this]
    if isinstance(node, exp.BitLength):
        return "bit_length", [node.this]
    if isinstance(node, exp.Substring):
        return "substring", _present(node.this, node.args.get("start"), node.args.get("length"))
    if isinstance(node, exp.StrPosition):
        return "strpos", [node.this, node.args["substr"]]
    if isinstance(node, exp.Trim) and node.expression is not None:
        return _TRIMMED[(node.args.get("position") or "").upper()], [node.this, node.expression]
    if isinstance(node, exp.GroupConcat):
        return "string_agg", [_first(node)]
    if isinstance(node, exp.Anonymous):
        if node.name in _MADE:
            return _MADE[node.name], list(node.expressions)
        if node.name in ("btrim", "ltrim", "rtrim") and len(node.expressions) == 2:
            return node.name, list(node.expressions)
        if node.name == "bit_length" and len(node.expressions) == 1:
            return "bit_length", list(node.expressions)
    return None


def _present(*parts: exp.Expr | None) -> list[exp.Expr]:
    return [part for part in parts if part is not None]


def _bytes(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Literal) and node.is_string:
        return exp.Anonymous(this="_bytea_in", expressions=[node.copy()])
    return exp.cast(node.copy(), "BLOB", dialect="duckdb") if isinstance(node, exp.Parameter) else node.copy()


def joined(node: exp.GroupConcat, type_of: TypeOf) -> exp.Expr | None:
    """``string_agg`` of bytes, which DuckDB would join as texts; None for one of texts."""
    return _joined(node) if type_of(_first(node)) == _BYTES else None


def _first(node: exp.Expr) -> exp.Expr:
    """What is joined, without its ORDER BY and DISTINCT."""
    found: exp.Expr = node.this
    while isinstance(found, exp.Order | exp.Distinct):
        found = found.expressions[0] if isinstance(found, exp.Distinct) else found.this
    return found


def _joined(node: exp.Expr) -> exp.Expr:
    """``string_agg(bytea, bytea)``: the digits are joined, in the call's own order, by a separator that is constant.
    What is around the call, as its window, is a part of what is read as digits."""
    first, separator = _first(node), node.args.get("separator")
    first.replace(_hex(first))
    if separator is not None:
        literals = list(separator.find_all(exp.Literal, exp.Parameter))
        digits = _digits(literals[0].name) if len(literals) == 1 and isinstance(literals[0], exp.Literal) else None
        separator.replace(exp.Literal.string(digits) if digits is not None else _hex(separator))
    whole = whole_call(node)
    made = exp.Anonymous(this="unhex", expressions=[whole.copy()])
    if whole is node:
        return made
    whole.replace(made)
    return node


def _hex(value: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="hex", expressions=[exp.cast(value.copy(), "BLOB", dialect="duckdb")])


def _digits(text: str) -> str:
    return text[2:].upper() if text.startswith("\\x") else text.encode("utf-8", "surrogatepass").hex().upper()
