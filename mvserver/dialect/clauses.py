"""Constants in LIMIT, OFFSET, ORDER BY and GROUP BY that are wrong by themselves, in PostgreSQL's words.

DuckDB finds them too, but says neither which clause it was nor which number.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.errors.type_texts import WHOLE_NUMBER, bad_text
from mvserver.dialect.typing.operators import span
from mvserver.errors import SqlError
from mvserver.sql.trees import last_written


def check_count(clause: exp.Limit | exp.Offset | exp.Fetch) -> None:
    """How many rows is the same for all rows, and no others that are equal to the last of them come along."""
    options = clause.args.get("limit_options")
    if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "WITH TIES is not supported",
            hint="Number the rows by rank() OVER (ORDER BY ...) in a sub-query, and choose by that.",
        )
    own = (found for found in clause.find_all(exp.Column) if found.find_ancestor(exp.Query) is clause.parent)
    column = next(own, None)
    if column is not None:
        raise SqlError(
            sqlstates.INVALID_COLUMN_REFERENCE,
            f"argument of {'OFFSET' if isinstance(clause, exp.Offset) else 'LIMIT'} must not contain variables",
            position=_position(column),
        )
    count = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.expression
    if isinstance(count, exp.Literal) and count.is_string and not WHOLE_NUMBER.fullmatch(count.name):
        error = bad_text("INT64", count.name)
        error.position = _position(count)
        raise error


def check_distinct(select: exp.Select) -> None:
    """What DISTINCT sorts by must be among what it keeps; the tree is as it was written."""
    distinct, order = select.args.get("distinct"), select.args.get("order")
    if distinct is None or order is None:
        return
    on = distinct.args.get("on")
    if on is not None:
        _check_distinct_on(select, on.expressions if isinstance(on, exp.Tuple) else [on], order)
        return
    if any(item.is_star for item in select.expressions):
        return
    kept = {_plain(item.unalias()) for item in select.expressions} | {item.alias_or_name for item in select.expressions}
    for key in order.expressions:
        wanted = key.this if isinstance(key, exp.Ordered) else key
        if wanted.find(exp.Column) is None or _plain(wanted) in kept:
            continue
        raise SqlError(
            sqlstates.INVALID_COLUMN_REFERENCE,
            "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
            position=_position(wanted),
        )


def _check_distinct_on(select: exp.Select, on: Sequence[exp.Expr], order: exp.Order) -> None:
    """The rows that it keeps are the first of an order that begins with what it compares."""
    compared = [_meant(item, select) for item in on]
    sorted_by = [_meant(key.this if isinstance(key, exp.Ordered) else key, select) for key in order.expressions]
    others = [number for number, key in enumerate(sorted_by) if key not in compared]
    before = sorted_by[: others[0]] if others else sorted_by
    for item, key in zip(on, compared, strict=True):
        if others and key not in before:
            raise SqlError(
                sqlstates.INVALID_COLUMN_REFERENCE,
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                position=_position(item),
            )


def _meant(item: exp.Expr, select: exp.Select) -> str:
    """The item of the select list that a number or the name of an output column stands for, or the expression."""
    bare = item.unnest()
    if isinstance(bare, exp.Literal) and not bare.is_string and bare.name.isdigit():
        number = int(bare.name)
        if number <= len(select.expressions) and not any(part.is_star for part in select.expressions[:number]):
            return _plain(select.expressions[number - 1].unalias())
    if isinstance(bare, exp.Column) and not bare.table:
        named = [part for part in select.expressions if isinstance(part, exp.Alias) and part.alias == bare.name]
        if named:
            return _plain(named[0].this)
    return _plain(bare)


def _position(node: exp.Expr) -> int | None:
    found = span(node)
    return None if found is None else found[0] + 1


def _plain(node: exp.Expr) -> str:
    """Its text without the names of tables, quotes and cases: what may be the same is taken for it."""
    bare = exp.Paren(this=node.copy())
    for column in bare.find_all(exp.Column):
        for part in ("table", "db", "catalog"):
            column.set(part, None)
    return last_written(bare.this, "postgres").replace('"', "").lower()


def check_clause(node: exp.Limit | exp.Offset | exp.Select) -> None:
    if isinstance(node, exp.Select):
        _check_positions(node)
    elif isinstance(node.expression, exp.Neg) and isinstance(node.expression.this, exp.Literal):
        if isinstance(node, exp.Limit):
            raise SqlError(sqlstates.INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "LIMIT must not be negative")
        raise SqlError(sqlstates.INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE, "OFFSET must not be negative")


def _check_positions(select: exp.Select) -> None:
    """``ORDER BY 9`` of a shorter list; one with a star is left to DuckDB, which knows its length."""
    if any(item.is_star for item in select.expressions):
        return
    order, group = select.args.get("order"), select.args.get("group")
    keys = [("ORDER BY", key.this) for key in order.expressions if isinstance(key, exp.Ordered)] if order else []
    keys += [("GROUP BY", key) for key in group.expressions] if group else []
    for clause, key in keys:
        if isinstance(key, exp.Literal) and clause == "GROUP BY" and (key.is_string or not key.name.isdigit()):
            raise SqlError(sqlstates.SYNTAX_ERROR, "non-integer constant in GROUP BY", position=_position(key))
        negative = isinstance(key, exp.Neg)
        number = key.this if negative else key
        if not (isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit()):
            continue
        position = -int(number.name) if negative else int(number.name)
        if not 1 <= position <= len(select.expressions):
            raise SqlError(sqlstates.INVALID_COLUMN_REFERENCE, f"{clause} position {position} is not in select list")
