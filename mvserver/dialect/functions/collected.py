"""Aggregates that collect their rows: arrays, texts and documents of them.

DuckDB's own aggregates of documents are macros, which take no DISTINCT, ORDER BY, FILTER or OVER. So they are arrays
first. DISTINCT finds its values by sorting in PostgreSQL, so they come in order; in DuckDB they come in any.
"""

from __future__ import annotations

from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.functions.periods import whole_call

_DOCUMENTS = ("json_agg", "jsonb_agg")


def rewrite(tree: exp.Expr) -> None:
    """In place, inner ones first; the tree has a root of its own."""
    for node in interrupts.asking(reversed(list(tree.walk(bfs=True)))):
        if isinstance(node, exp.ArrayAgg | exp.GroupConcat):
            node.set("this", _sorted(node.this))
        elif (operand := _of_document(node)) is not None:
            array = exp.ArrayAgg(this=_sorted(operand.copy()))
            node.replace(array)
            whole = whole_call(array)
            document = exp.Anonymous(this="to_json", expressions=[whole.copy()])
            spaced = isinstance(node, exp.JSONArrayAgg) or node.name.lower() == "json_agg"
            whole.replace(exp.Anonymous(this="_json_agg_out", expressions=[document]) if spaced else document)


def _of_document(node: exp.Expr) -> exp.Expr | None:
    """What it collects; None for all other nodes."""
    if isinstance(node, exp.JSONArrayAgg):
        return node.this  # type: ignore[no-any-return]
    if isinstance(node, exp.Anonymous) and node.name.lower() in _DOCUMENTS and len(node.expressions) == 1:
        return node.expressions[0]  # type: ignore[no-any-return]
    return None


def _sorted(operand: exp.Expr) -> exp.Expr:
    """DISTINCT with an order, where it has none."""
    if not isinstance(operand, exp.Distinct) or len(operand.expressions) != 1:
        return operand
    (value,) = operand.expressions
    if isinstance(value, exp.Literal):  # a number would be a place in a list
        return operand
    return exp.Order(this=operand.copy(), expressions=[exp.Ordered(this=value.copy(), nulls_first=False)])
