"""Expressions of constants as one constant, where a rewriting of the query needs to know it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

FOLDED = (
    exp.Paren, exp.Cast, exp.DPipe, exp.Concat, exp.Lower, exp.Upper, exp.Trim, exp.Coalesce, exp.Add, exp.Sub, exp.Mul,
    exp.Neg,
)  # fmt: skip
"""What is computed here."""
_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR)


def folded(node: exp.Expr) -> exp.Expr | None:
    """The literal or NULL that the expression is, the node itself where it is one; None for what is not computed."""
    if isinstance(node, exp.Literal | exp.Null):
        return node
    if not isinstance(node, FOLDED):
        return None
    if isinstance(node, exp.Neg):
        return _negative(node)
    parts = [folded(part) for part in _operands(node)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not known:
        return None
    if isinstance(node, exp.Paren):
        return known[0]
    if isinstance(node, exp.Coalesce):
        return next((part for part in known if not isinstance(part, exp.Null)), known[0])
    if any(isinstance(part, exp.Null) for part in known) and not isinstance(node, exp.Concat):
        return exp.Null()
    if isinstance(node, exp.Cast):
        return _cast(node, known[0])
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return _number(node, known)
    return _text(node, known)


def _operands(node: exp.Expr) -> Sequence[exp.Expr]:
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    if isinstance(node, exp.Concat):
        return list(node.expressions)
    if isinstance(node, exp.Binary):
        return [node.left, node.right]
    return [node.this] if node.args.get("expression") is None else []


def _negative(node: exp.Neg) -> exp.Expr | None:
    """A number with its sign is a constant as it is written."""
    value = folded(node.this)
    if isinstance(value, exp.Null):
        return value
    return node if isinstance(node.this, exp.Literal) and not node.this.is_string else None


def _cast(node: exp.Cast, value: exp.Expr) -> exp.Expr | None:
    """To text, and of numbers to a type that holds them."""
    if not isinstance(node.to, exp.DataType) or not isinstance(value, exp.Literal) or node.to.expressions:
        return None
    if value.is_string:
        return value if node.to.this in _TEXTS else None
    if node.to.is_type(*exp.DataType.INTEGER_TYPES):
        return value if value.name.isdigit() else None
    return value if node.to.is_type(*exp.DataType.NUMERIC_TYPES) else None


def _number(node: exp.Expr, parts: Sequence[exp.Expr]) -> exp.Expr | None:
    if not all(isinstance(part, exp.Literal) and not part.is_string and part.name.isdigit() for part in parts):
        return None
    left, right = (int(part.name) for part in parts)
    value = left + right if isinstance(node, exp.Add) else left - right if isinstance(node, exp.Sub) else left * right
    return exp.Literal.number(value)


def _text(node: exp.Expr, parts: Sequence[exp.Expr]) -> exp.Expr | None:
    if not all(isinstance(part, exp.Null) or (isinstance(part, exp.Literal) and part.is_string) for part in parts):
        return None
    texts = ["" if isinstance(part, exp.Null) else part.name for part in parts]
    if isinstance(node, exp.DPipe | exp.Concat):
        return exp.Literal.string("".join(texts))
    if isinstance(node, exp.Trim):
        return None if node.args.get("position") else exp.Literal.string(texts[0].strip(" "))
    lower = isinstance(node, exp.Lower)
    return exp.Literal.string(texts[0].lower() if lower else texts[0].upper())
