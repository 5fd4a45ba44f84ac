"""Taking a large tree apart when it is not needed any more.

The nodes of a tree know their parents, so only Python's collector of cycles would free it: all at once, which holds up
every thread of the server for as long as that takes. Taken apart, each node is freed as the last name for it goes.
"""

from __future__ import annotations

from sqlglot import exp


def dismantle(tree: exp.Expr) -> None:
    """Nobody may use the tree, or a part of it, after this."""
    waiting: list[exp.Expr] = [tree]
    while waiting:
        node = waiting.pop()
        node.parent = None
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                waiting.append(value)
            elif type(value) is list:
                waiting.extend(part for part in value if isinstance(part, exp.Expr))
        node.args.clear()
