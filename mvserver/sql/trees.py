"""Trees that are freed as the last name for them goes.

sqlglot's nodes know their parents, so only Python's collector of cycles would free a tree: whole, which holds up every
thread of the server for as long as that takes. A tree that was parsed is therefore kept without its parents; whoever
works on one copies it, since copies have them, and takes the copy apart afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.dialects.dialect import DialectType

from mvserver import interrupts


def without_parents(tree: exp.Expression) -> exp.Expression:
    """The same tree, to be read downwards and to be copied."""
    for _ in _orphaned(tree):
        pass
    return tree


def dismantle(tree: exp.Expr) -> None:
    """Nobody may use the tree, or a part of it, after this."""
    for node in _orphaned(tree):
        node.args.clear()


def written(tree: exp.Expr, dialect: DialectType = "duckdb") -> str:
    """The tree's text; sqlglot changes what it writes, and so is given a copy."""
    return last_written(tree.copy(), dialect)


def last_written(tree: exp.Expr, dialect: DialectType = "duckdb") -> str:
    """The text of a tree that is needed for nothing else."""
    interrupts.check()
    try:
        return tree.sql(dialect=dialect, copy=False)
    finally:
        dismantle(tree)


def _orphaned(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Each node of the tree, when neither it nor those below it are looked at any more."""
    waiting: list[exp.Expr] = [tree]
    while waiting:
        node = waiting.pop()
        node.parent = None
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                waiting.append(value)
            elif type(value) is list:
                waiting.extend(part for part in value if isinstance(part, exp.Expr))
        yield node
