"""Constants in the clauses of windows and aggregates, which DuckDB refuses or takes for something else."""

from __future__ import annotations

import re

from sqlglot import exp

from mvserver import interrupts

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_SORTED_WHOLE = (exp.Query, exp.Window, exp.WithinGroup)
"""What has an ORDER BY that is none of an aggregate's arguments."""


def adapt(tree: exp.Expr) -> None:
    """In place; the tree has a root of its own."""
    for node in interrupts.asking(list(tree.find_all(exp.Ordered, exp.WindowSpec))):
        if isinstance(node, exp.WindowSpec):
            _give_lengths(node)
        elif (of := _aggregate_of(node)) is not None:
            _give_type(node, of)
        elif node.parent is not None and not isinstance(node.parent.parent, _SORTED_WHOLE):
            _forget_order(node)


def is_value(key: exp.Expr) -> bool:
    """Whether it is what an aggregate is of, ``percentile_disc(0.5) WITHIN GROUP (ORDER BY key)``."""
    return _aggregate_of(key) is not None


def _aggregate_of(key: exp.Expr) -> exp.Expr | None:
    within = key.parent.parent if key.parent is not None else None
    return within.this if isinstance(within, exp.WithinGroup) else None


def _give_type(key: exp.Expr, of: exp.Expr) -> None:
    """``percentile_disc(0.5) WITHIN GROUP (ORDER BY 1.5)``: the constant is the value, and no place. A text of no type
    and a NULL are numbers where ``of`` is percentile_cont."""
    bare = key.this.unnest()
    if isinstance(bare, exp.Boolean):
        kind = "BOOLEAN"
    elif isinstance(of, exp.PercentileCont) and isinstance(bare, exp.Null | exp.Literal) and not bare.is_number:
        kind = "DOUBLE"
    elif isinstance(bare, exp.Literal) and not bare.is_string and _PLAIN.fullmatch(bare.name):
        whole, _, digits = bare.name.partition(".")
        kind = "INT" if int(whole or 0) <= _INTEGER_MAX else "BIGINT"
        if digits:
            kind = f"DECIMAL({len(whole + digits)}, {len(digits)})"
    else:
        return
    key.set("this", exp.Cast(this=bare.copy(), to=exp.DataType.build(kind, dialect="duckdb")))


_PLAIN = re.compile(r"\d{1,18}|\d{0,19}\.\d{1,19}")
_INTEGER_MAX = 2**31 - 1


def _forget_order(key: exp.Expr) -> None:
    """``string_agg(x, ',' ORDER BY 'constant')``: all rows are equal in it, whatever its type."""
    bare = key.this.unnest()
    is_place = isinstance(bare, exp.Literal) and not bare.is_string and bare.name.isdigit()
    if isinstance(bare, exp.Literal | exp.Boolean | exp.Null) and not is_place:
        key.set("this", exp.cast(exp.Literal.string(""), "TEXT", dialect="duckdb"))


def _give_lengths(frame: exp.WindowSpec) -> None:
    """``RANGE '1 month' PRECEDING``: a text that is no number is an interval."""
    if str(frame.args.get("kind") or "").upper() != "RANGE":
        return
    for key in ("start", "end"):
        bound = frame.args.get(key)
        if isinstance(bound, exp.Literal) and bound.is_string and not _NUMBER.fullmatch(bound.name):
            bound.replace(exp.cast(bound.copy(), "INTERVAL", dialect="postgres"))
