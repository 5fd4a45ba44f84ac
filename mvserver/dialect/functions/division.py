"""Division of exact numbers: numeric in PostgreSQL, double in DuckDB.

Where both operands are exact and one of them is a decimal, the quotient is a decimal, so that
``round(sum(a) * 1.0 / count(*), 2)`` is numeric and prints as PostgreSQL prints it. It has ten digits after the point
inside an expression. Of two constants it has PostgreSQL's, and as a column of the result (``typing.exact_columns``).
"""

from __future__ import annotations

from decimal import Decimal

import duckdb
from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.functions.quotients import is_exact, quotient
from mvserver.dialect.probes import types_in
from mvserver.types.numeric import quotient as numeric_quotient

_SCALE = 10
_DIGITS_MAX = 38


def type_divisions(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr) -> bool:
    """Replace such divisions, in place, inner ones first; True when there was one."""
    outer = tree.args.get("with_")
    changed = False
    for division in interrupts.asking(reversed(list(tree.find_all(exp.Div)))):
        select = division.find_ancestor(exp.Select)
        if select is None or isinstance(division.parent, exp.Cast) or _is_of_doubles(division):
            continue
        if (known := _known(division)) is not None:
            division.replace(known)
            changed = True
            continue
        types = [_type(cursor, select, operand, outer) for operand in (division.left, division.right)]
        if all(map(is_exact, types)) and any(kind.startswith("DECIMAL") for kind in types):
            division.replace(quotient(division.left, division.right, (types[0], types[1]), _SCALE))
            changed = True
    return changed


def _is_of_doubles(division: exp.Expr) -> bool:
    """Whether it is cast to a float at once: DuckDB's own division has all digits of that."""
    around = division.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    return isinstance(around, exp.Cast) and around.to.is_type(exp.DType.DOUBLE, exp.DType.FLOAT)


def _known(division: exp.Div) -> exp.Expr | None:
    """The quotient of two constants; None of others, of integers, and by zero. Inside an expression it has ten digits
    that are not zero, since products have the digits of both factors, and there are 38."""
    texts = [_digits(part) for part in (division.left, division.right)]
    if None in texts or not any("." in (text or "") for text in texts) or not Decimal(texts[1] or 0):
        return None
    found = numeric_quotient(Decimal(texts[0] or 0), Decimal(texts[1] or 0))
    if not _is_column(division):
        digits = max(_SCALE, _SCALE - 1 - found.adjusted()) if found else _SCALE
        found = round(found, min(digits, -int(found.as_tuple().exponent)))
    shown = f"{found:f}"
    whole, _, fraction = shown.lstrip("-").partition(".")
    width = len(whole.lstrip("0")) + len(fraction)
    if width > _DIGITS_MAX:
        return None
    return exp.cast(exp.Literal.string(shown), f"DECIMAL({max(width, 1)}, {len(fraction)})", dialect="duckdb")


def _is_column(division: exp.Expr) -> bool:
    """Whether it is an item of a select list as it is."""
    around = division.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    return isinstance(around, exp.Alias | exp.Select)


def _digits(node: exp.Expr) -> str | None:
    bare = node.unnest()
    sign = "-" if isinstance(bare, exp.Neg) else ""
    bare = bare.this.unnest() if sign else bare
    if isinstance(bare, exp.Literal) and not bare.is_string and "e" not in bare.name.lower():
        return sign + bare.name
    return None


def _type(cursor: duckdb.DuckDBPyConnection, select: exp.Select, operand: exp.Expr, outer: exp.Expr | None) -> str:
    types = types_in(cursor, [operand], select, outer)
    return types[0] if types else ""  # a name of the select list, for instance: DuckDB's type stays
