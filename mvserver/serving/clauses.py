"""Constants in LIMIT, OFFSET, ORDER BY and GROUP BY that are wrong by themselves, in PostgreSQL's words.

DuckDB finds them too, but says neither which clause it was nor which number.
"""

from __future__ import annotations

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError


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
        negative = isinstance(key, exp.Neg)
        number = key.this if negative else key
        if not (isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit()):
            continue
        position = -int(number.name) if negative else int(number.name)
        if not 1 <= position <= len(select.expressions):
            raise SqlError(sqlstates.INVALID_COLUMN_REFERENCE, f"{clause} position {position} is not in select list")
