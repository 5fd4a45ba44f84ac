"""Division of exact numbers: numeric in PostgreSQL, double in DuckDB.

Where both operands are exact and one of them is a decimal, the quotient is a decimal with ten digits after the point,
so that ``round(sum(a) * 1.0 / count(*), 2)`` is numeric and prints as PostgreSQL prints it.
"""

from __future__ import annotations

import duckdb
from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect import binding
from mvserver.dialect.duck_text import last_written
from mvserver.dialect.functions.aggregates import with_sources
from mvserver.dialect.functions.quotients import is_exact, quotient
from mvserver.errors import SqlError

_SCALE = 10


def type_divisions(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr) -> bool:
    """Replace such divisions, in place, inner ones first; True when there was one."""
    outer = tree.args.get("with_")
    changed = False
    for division in interrupts.asking(reversed(list(tree.find_all(exp.Div)))):
        select = division.find_ancestor(exp.Select)
        if select is None or isinstance(division.parent, exp.Cast):
            continue
        types = [_type(cursor, select, operand, outer) for operand in (division.left, division.right)]
        if all(map(is_exact, types)) and any(kind.startswith("DECIMAL") for kind in types):
            division.replace(quotient(division.left, division.right, (types[0], types[1]), _SCALE))
            changed = True
    return changed


def _type(cursor: duckdb.DuckDBPyConnection, select: exp.Select, operand: exp.Expr, outer: exp.Expr | None) -> str:
    probe = with_sources([operand.copy()], select, outer)
    try:
        types = binding.bind(cursor, last_written(probe)).types
    except SqlError:
        return ""  # a name of the select list or of an outer query: DuckDB's type stays
    return types[0] if types else ""
