"""Queries that an index of finished rows can answer: plain columns of one view, by comparisons of its key alone.

What counts is the tree as DuckDB would run it: where the binder has put a cast around a value or a column, the
comparison is not of the column's own values any more, and the query is none of these.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from catalog.model import Relation
from mvserver import limits
from mvserver.dialect.functions.arrays import compared_array
from mvserver.serving.api import Comparison, KeyRead, Members

_Term = Comparison | Members

_OPERATORS: dict[type[exp.Expr], str] = {exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CLAUSES = frozenset({"kind", "expressions", "from_", "where"})


def key_read(tree: exp.Expr, view: Relation) -> KeyRead | None:
    """Of a bound query over the view alone; None where it asks for more."""
    if not isinstance(tree, exp.Select) or any(value for key, value in tree.args.items() if key not in _CLAUSES):
        return None
    source, where = tree.args.get("from_"), tree.args.get("where")
    if source is None or where is None or not isinstance(source.this, exp.Table):
        return None
    alias = source.this.args.get("alias")
    if alias is None or alias.args.get("columns") or source.this.args.get("joins") or source.this.args.get("sample"):
        return None
    columns = _columns(tree.expressions, [column.name for column in view.columns])
    terms = _terms(where.this, view.key_columns)
    if columns is None or not terms:
        return None
    comparisons = tuple(term for term in terms if isinstance(term, Comparison))
    members = tuple(term for term in terms if isinstance(term, Members))
    return KeyRead(view.id, tuple(view.key_columns), columns, comparisons, members)


def _columns(items: Sequence[exp.Expr], known: Sequence[str]) -> tuple[str, ...] | None:
    found: list[str] = []
    for item in items:
        node = item.unalias()
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            star = node if isinstance(node, exp.Star) else node.this
            if any(star.args.values()):
                return None  # all but some, or some of them replaced
            found += known
        elif isinstance(node, exp.Column) and node.name in known:
            found.append(node.name)
        else:
            return None
    return tuple(found)


def _terms(node: exp.Expr, key: Sequence[str]) -> list[_Term] | None:
    if isinstance(node, exp.Paren):
        return _terms(node.this, key)
    if isinstance(node, exp.And):
        left, right = _terms(node.left, key), _terms(node.right, key)
        return None if left is None or right is None else left + right
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low = _comparison(node.this, ">=", node.args["low"], key)
        high = _comparison(node.this, "<=", node.args["high"], key)
        return None if low is None or high is None else [low, high]
    operator = _OPERATORS.get(type(node))
    if isinstance(node, exp.In) or (isinstance(node, exp.EQ) and compared_array(node.right) is not None):
        members = _members(node, key)
        return None if members is None else [members]
    if operator is None:
        return None
    left, right = node.args["this"], node.args["expression"]
    if isinstance(left, exp.Column):
        found = _comparison(left, operator, right, key)
    else:
        found = _comparison(right, _MIRRORED[operator], left, key)
    return None if found is None else [found]


def _members(node: exp.Expr, key: Sequence[str]) -> Members | None:
    """Of ``IN`` with values, and of ``= ANY`` of a parameter."""
    column = node.this
    if not isinstance(column, exp.Column) or column.name not in key:
        return None
    at = list(key).index(column.name)
    if isinstance(node, exp.In):
        if not 0 < len(node.expressions) <= limits.FEW_ROWS_MAX:
            return None
        found = [_comparison(column, "=", value, key) for value in node.expressions]
        values = [value for value in found if value is not None]
        if len(values) < len(found):
            return None
        return Members(
            at,
            tuple(value.constant for value in values if value.constant is not None),
            tuple(value.parameter for value in values if value.parameter),
        )
    array = node.args["expression"]
    if not isinstance(node, exp.EQ) or not isinstance(array, exp.Any):
        return None
    given = array.this.unnest()
    given = given.this if isinstance(given, exp.Cast) and given.to.is_type(exp.DType.ARRAY, exp.DType.LIST) else given
    return Members(at, array=int(given.name)) if isinstance(given, exp.Parameter) and given.name.isdecimal() else None


def _comparison(column: exp.Expr, operator: str, value: exp.Expr, key: Sequence[str]) -> Comparison | None:
    if not isinstance(column, exp.Column) or column.name not in key:
        return None
    at = list(key).index(column.name)
    if isinstance(value, exp.Parameter):
        return Comparison(at, operator, parameter=int(value.name)) if value.name.isdecimal() else None
    sign, literal = (-1, value.this) if isinstance(value, exp.Neg) else (1, value)
    if not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        return Comparison(at, operator, literal.name) if sign == 1 else None
    return Comparison(at, operator, sign * int(literal.name)) if literal.name.isdecimal() else None
