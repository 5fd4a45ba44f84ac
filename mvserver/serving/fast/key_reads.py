"""Queries that an index of finished rows can answer: plain columns of one view, by comparisons of its key, and of its
other columns besides.

What counts is the tree as DuckDB would run it: where the binder has put a cast around a value or a column, the
comparison is not of the column's own values any more, and the query is none of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.model import Relation
from mvserver import limits
from mvserver.dialect.functions.arrays import compared_array
from mvserver.serving.api import Comparison, Further, KeyRead, Members

_Term = Comparison | Further | Members

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
    known = _Known(tuple(view.key_columns), tuple(column.name for column in view.columns))
    columns, terms = _columns(tree.expressions, known.columns), _terms(where.this, known)
    if columns is None or not terms:
        return None
    comparisons = tuple(term for term in terms if isinstance(term, Comparison))
    members = tuple(term for term in terms if isinstance(term, Members))
    further = tuple(term for term in terms if isinstance(term, Further))
    if not comparisons and not members:
        return None
    return KeyRead(view.id, known.key, columns, comparisons, members, further=further)


@dataclass(frozen=True)
class _Known:
    """The names of the view's columns, and those of its key."""

    key: tuple[str, ...]
    columns: tuple[str, ...]


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


def _terms(node: exp.Expr, known: _Known) -> list[_Term] | None:
    if isinstance(node, exp.Paren):
        return _terms(node.this, known)
    if isinstance(node, exp.And):
        left, right = _terms(node.left, known), _terms(node.right, known)
        return None if left is None or right is None else left + right
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low = _comparison(node.this, ">=", node.args["low"], known)
        high = _comparison(node.this, "<=", node.args["high"], known)
        return None if low is None or high is None else [low, high]
    operator = _OPERATORS.get(type(node))
    if isinstance(node, exp.In) or (isinstance(node, exp.EQ) and compared_array(node.right) is not None):
        members = _members(node, known)
        return None if members is None else [members]
    if operator is None:
        return None
    left, right = node.args["this"], node.args["expression"]
    if isinstance(left, exp.Column):
        found = _comparison(left, operator, right, known)
    else:
        found = _comparison(right, _MIRRORED[operator], left, known)
    return None if found is None else [found]


def _members(node: exp.Expr, known: _Known) -> Members | None:
    """Of ``IN`` with values, and of ``= ANY`` of a parameter."""
    column = node.this
    if not isinstance(column, exp.Column) or column.name not in known.key:
        return None
    at = known.key.index(column.name)
    if isinstance(node, exp.In):
        if not 0 < len(node.expressions) <= limits.FEW_ROWS_MAX:
            return None
        found = [_comparison(column, "=", value, known) for value in node.expressions]
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


def _comparison(column: exp.Expr, operator: str, value: exp.Expr, known: _Known) -> Comparison | Further | None:
    if not isinstance(column, exp.Column) or column.name not in known.columns:
        return None

    def made(constant: int | str | None = None, parameter: int = 0) -> Comparison | Further:
        if column.name not in known.key:
            return Further(column.name, operator, constant, parameter)
        return Comparison(known.key.index(column.name), operator, constant, parameter)

    if isinstance(value, exp.Parameter):
        return made(parameter=int(value.name)) if value.name.isdecimal() else None
    sign, literal = (-1, value.this) if isinstance(value, exp.Neg) else (1, value)
    if not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        return made(literal.name) if sign == 1 else None
    return made(sign * int(literal.name)) if literal.name.isdecimal() else None
