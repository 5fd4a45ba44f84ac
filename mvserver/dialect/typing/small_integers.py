"""Whole constants beside smallint: PostgreSQL's are integers, and so is what is made of both.

DuckDB's take the type of what stands beside them, so that ``coalesce(small, 0) * small`` would overflow. What operators
make of both is in ``operand_types``.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mvserver.dialect.typing.constant_operands import is_text
from mvserver.dialect.typing.mixed_numerics import TypeOf, columns_of_rows, parts_alike

SMALL = ("SMALLINT", "TINYINT")
_NODES = (exp.Coalesce, exp.Greatest, exp.Least, exp.Case, exp.Array, exp.Lag, exp.Lead)
_SMALLEST, _GREATEST = -(2**15), 2**15 - 1  # others have a larger type by themselves


def concerns(node: exp.Expr) -> bool:
    return any(any(map(_is_small_constant, parts)) for parts in _mixed(node))


def widen(node: exp.Expr, type_of: TypeOf) -> bool:
    """Makes an integer of one of the constants, in place, and so of them all; True when there was one."""
    changed = False
    for parts in _mixed(node):
        constants = [part for part in parts if _is_small_constant(part)]
        others = (part for part in parts if not _is_small_constant(part) and not is_text(part))
        kinds = {type_of(part) for part in others} - {'"NULL"'}
        if constants and kinds and kinds.issubset(SMALL):
            of_first = isinstance(node, exp.Lag | exp.Lead)  # their type is that of their first argument
            widened = parts[0] if of_first else constants[0]
            widened.replace(exp.cast(widened.copy(), "INT", dialect="duckdb"))
            changed = True
    return changed


def _mixed(node: exp.Expr) -> Sequence[Sequence[exp.Expr]]:
    """What is to be of one type, where it is not constants alone."""
    found: list[Sequence[exp.Expr]] = []
    if isinstance(node, exp.Values):
        found += columns_of_rows(node)
    elif isinstance(node, _NODES):
        found.append(parts_alike(node))
    return [parts for parts in found if any(whole_constant(part) is None for part in parts)]


def _is_small_constant(part: exp.Expr) -> bool:
    value = whole_constant(part)
    return value is not None and _SMALLEST <= value <= _GREATEST


def whole_constant(part: exp.Expr) -> int | None:
    """Its value, with its signs; None for what is none."""
    sign, bare = 1, part.unnest()
    while isinstance(bare, exp.Neg):
        sign, bare = -sign, bare.this.unnest()
    whole = isinstance(bare, exp.Literal) and not bare.is_string and bare.name.isdigit()
    return sign * int(bare.name) if whole else None
