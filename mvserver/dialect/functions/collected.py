"""Aggregates that collect their rows: arrays, texts and documents of them.

DuckDB's own aggregates of documents are macros, which take no DISTINCT, ORDER BY, FILTER or OVER. So they are arrays
first. DISTINCT finds its values by sorting in PostgreSQL, so they come in order; in DuckDB they come in any.
"""

from __future__ import annotations

from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.functions.periods import whole_call

_DOCUMENTS = ("json_agg", "jsonb_agg")
_OBJECTS = (exp.JSONObjectAgg, exp.JSONBObjectAgg)


def rewrite(tree: exp.Expr) -> None:
    """In place, inner ones first; the tree has a root of its own."""
    for node in interrupts.asking(reversed(list(tree.walk(bfs=True)))):
        if isinstance(node, exp.ArrayAgg | exp.GroupConcat):
            node.set("this", _sorted(node.this))
        elif isinstance(node, _OBJECTS):
            _object(node)
        elif (operand := _of_document(node)) is not None:
            array = exp.ArrayAgg(this=_sorted(operand.copy()))
            node.replace(array)
            whole = whole_call(array)
            spaced = isinstance(node, exp.JSONArrayAgg) or node.name.lower() == "json_agg"
            name = "_json_collected" if spaced else "to_json"
            whole.replace(exp.Anonymous(this=name, expressions=[whole.copy()]))


def _object(node: exp.Expr) -> None:
    """An array of the members; in json they stand between blanks."""
    spaced = isinstance(node, exp.JSONObjectAgg)
    key, value = node.expressions if spaced else (node.this, node.expression)
    order = value if isinstance(value, exp.Order) else None
    value = value.this if order is not None else value
    name = exp.cast(key.copy(), "TEXT", dialect="duckdb")
    member = exp.Anonymous(
        this="_json_member", expressions=[name, exp.Anonymous(this="to_json", expressions=[value.copy()])]
    )
    collected: exp.Expr = member
    if order is not None:
        collected = exp.Order(this=member, expressions=[each.copy() for each in order.expressions])
    array = exp.ArrayAgg(this=collected)
    node.replace(array)
    whole = whole_call(array)
    name_of = "_json_object_agg_out" if spaced else "_json_object_of"
    whole.replace(exp.Anonymous(this=name_of, expressions=[whole.copy()]))


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
