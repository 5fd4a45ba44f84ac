"""The kind of read of a query: a look-up by a view's whole key, a range of it, a sleep, or anything else."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from catalog.model import Relation
from mvserver import limits
from mvserver.dialect.functions.arrays import compared_array
from mvserver.dialect.guard import TABLE_FUNCTIONS, function_name

POINT, RANGE, OTHER, SLEEP = "point", "range", "other", "sleep"


def kind_of(tree: exp.Expr, views: dict[str, Relation]) -> str:
    """``tree`` as the user wrote it, ``views`` what its names resolved to."""
    if not _is_simple(tree) or len(views) != 1:
        return OTHER
    assert isinstance(tree, exp.Select)  # noqa: S101 - _is_simple
    (view,) = views.values()
    where = tree.args.get("where")
    if not view.key_columns or where is None:
        return OTHER
    equal: set[str] = set()
    ranged: set[str] = set()
    for term in _terms(where.this):
        ranged |= _one_of_some(term)
        column = _compared_column(term)
        if column is None:
            continue
        if isinstance(term, exp.EQ):
            equal.add(column)
        elif isinstance(term, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Between):
            ranged.add(column)
    if equal >= set(view.key_columns):
        return POINT
    return RANGE if (equal | ranged) & set(view.key_columns) else OTHER


def key_terms(condition: exp.Expr, view: Relation) -> Iterator[exp.Expr]:
    """The terms of the condition that compare a key column with what is known before the query runs."""
    for term in _terms(condition):
        column = _compared_column(term)
        if (_one_of_some(term) if column is None else {column}) & set(view.key_columns):
            yield term


def _is_simple(tree: exp.Expr) -> bool:
    if not isinstance(tree, exp.Select):
        return False
    extra = ("joins", "group", "having", "distinct", "with_", "windows", "laterals", "qualify")
    source = tree.args.get("from_")
    return (
        source is not None
        and isinstance(source.this, exp.Table)
        and isinstance(source.this.this, exp.Identifier)
        and not any(tree.args.get(key) for key in extra)
        and not any(tree.find_all(exp.AggFunc, exp.Subquery, exp.Window, exp.UDTF))
        and not any(function_name(call) in TABLE_FUNCTIONS for call in tree.find_all(exp.Func))
    )


def _terms(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Paren):
        yield from _terms(node.this)
    elif isinstance(node, exp.And):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


def _one_of_some(term: exp.Expr) -> set[str]:
    """The column that the term says to be one of a few values known before the query runs."""
    if isinstance(term, exp.In) and not term.args.get("query") and not term.args.get("unnest"):
        values = term.expressions
        few = 0 < len(values) <= limits.FEW_ROWS_MAX
    elif isinstance(term, exp.EQ) and isinstance(term.right, exp.Any):
        values = [term.right.this]
        few = True
    else:
        return set()
    if not few or not isinstance(term.this, exp.Column) or any(v.find(exp.Column, exp.Subquery) for v in values):
        return set()
    return {column_name(term.this)}


def _compared_column(term: exp.Expr) -> str | None:
    """The column that the term compares with a value known before the query runs."""
    if isinstance(term, exp.Between):
        values = [term.args["low"], term.args["high"]]
        left = term.this
    elif isinstance(term, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        left, right = term.left, term.right
        if not isinstance(left, exp.Column):
            left, right = right, left
        values = [right]
    else:
        return None
    if not isinstance(left, exp.Column):
        return None
    if any(compared_array(value) is not None for value in values):
        return None  # not one value, but as many as the array has
    if any(value.find(exp.Column, exp.Subquery) for value in values):
        return None
    return column_name(left)


def column_name(column: exp.Column) -> str:
    """As the catalog has it."""
    name = column.this
    return str(name.this) if name.quoted else str(name.this).lower()


def sleep_argument(tree: exp.Expr) -> exp.Expr | None:
    """The argument of a query that is only ``SELECT pg_sleep(x)``."""
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or tree.args.get("from_"):
        return None
    item = tree.expressions[0].unalias()
    if isinstance(item, exp.Dot) and isinstance(item.expression, exp.Func):
        item = item.expression
    if isinstance(item, exp.Anonymous) and function_name(item) == "pg_sleep" and len(item.expressions) == 1:
        return item.expressions[0]  # type: ignore[no-any-return]
    return None
