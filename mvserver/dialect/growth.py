"""How much larger rewrites may make a query's tree.

A rewrite that puts an operand into the tree twice doubles it at each level of nesting. What comes of that is bounded
while it is made: the tree is refused before it fills the memory.
"""

from __future__ import annotations

from sqlglot import exp

from mvserver import limits
from mvserver.dialect.duck_text import too_complex


class Growth:
    """Of one tree, in nodes."""

    def __init__(self, tree: exp.Expr) -> None:
        self._left = limits.REWRITTEN_NODES_MIN + limits.REWRITTEN_TIMES_MAX * _nodes(tree)

    def replace(self, node: exp.Expr, replacement: exp.Expr) -> None:
        """Puts the replacement in the node's place. 54001 where the tree becomes too large."""
        before = _nodes(node)  # which may be part of the replacement
        node.replace(replacement)
        self._left -= max(0, _nodes(replacement) - before)
        if self._left < 0:
            raise too_complex()


def _nodes(tree: exp.Expr) -> int:
    return sum(1 for _ in tree.walk())
