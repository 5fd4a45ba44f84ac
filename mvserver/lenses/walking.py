"""The parts of expressions."""

from __future__ import annotations

from collections.abc import Iterator

from mvserver.lenses.program import Binary, Call, Case, CastTo, Chain, Expression, InList, IsNull, Unary


def children(node: Expression) -> tuple[Expression, ...]:
    if isinstance(node, Call):
        return node.arguments
    if isinstance(node, Chain):
        return node.operands
    if isinstance(node, Binary):
        return (node.left, node.right)
    if isinstance(node, CastTo | Unary | IsNull):
        return (node.operand,)
    if isinstance(node, InList):
        return (node.operand, *node.items)
    if isinstance(node, Case):
        parts = [part for branch in node.branches for part in branch]
        return tuple(part for part in (node.operand, *parts, node.otherwise) if part is not None)
    return ()


def nodes(node: Expression) -> Iterator[Expression]:
    """It, and all that it is made of."""
    yield node
    for child in children(node):
        yield from nodes(child)
