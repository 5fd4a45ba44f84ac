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
        elif node.parent is not None and isinstance(node.parent.parent, exp.WithinGroup):
            _give_type(node)
        elif node.parent is not None and not isinstance(node.parent.parent, _SORTED_WHOLE):
            _forget_order(node)


def _give_type(key: exp.Expr) -> None:
    """``percentile_disc(0.5) WITHIN GROUP (ORDER BY 1.5)``: the constant is the value, and no place."""
    bare = key.this.unnest()
    if isinstance(bare, exp.Boolean):
        kind = "BOOLEAN"
    elif isinstance(bare, exp.Literal) and not bare.is_string and _PLAIN.fullmatch(bare.name):
        whole, _, digits = bare.name.partition(".")
        kind = "INT" if len(whole) < _INT_DIGITS else "BIGINT"
        if digits:
            kind = f"DECIMAL({len(whole + digits)}, {len(digits)})"
    else:
        return
    key.set("this", exp.Cast(this=bare.copy(), to=exp.DataType.build(kind, dialect="duckdb")))


_PLAIN = re.compile(r"\d{1,18}|\d{0,19}\.\d{1,19}")
_INT_DIGITS = 10  # from which a number may be too large for an integer


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
