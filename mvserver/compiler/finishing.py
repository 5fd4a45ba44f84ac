"""From expressions over a scan to finishing expressions over keys and aggregates.

A sub-expression equal to a GROUP BY expression becomes a reference to that key. What is left must be built from keys,
aggregates, constants and the functions that DuckDB finishes. A part that needs more but rests on keys alone becomes a
further key, computed by Spark: it is the same for all rows of a group, so that the groups stay what they were.
"""

from __future__ import annotations

from collections.abc import Mapping

from mvserver import sqlstates
from mvserver.compiler import lower_duckdb
from mvserver.compiler.capabilities.keys import normalized_key
from mvserver.compiler.expressions import (
    AggregateReference,
    ColumnReference,
    Expression,
    KeyReference,
    children,
    walk,
    with_children,
)
from mvserver.compiler.scope import Scope
from mvserver.errors import SqlError
from mvserver.sql.types import Kind


class Finisher:
    """Rewrites the outputs and HAVING of one aggregation; ``keys`` grows by the keys that outputs need."""

    def __init__(self, group: tuple[Expression, ...], scope: Scope, *, fixed: bool = False) -> None:
        """``fixed``: no further keys, since those that there are may be NULL in a group's grouping set."""
        self._group = list(group)
        self._given = len(group)
        self._scope = scope
        self._fixed = fixed

    @property
    def keys(self) -> tuple[Expression, ...]:
        return tuple(normalized_key(key) for key in self._group)

    @property
    def further(self) -> int:
        """How many of the keys have come, which are the last ones."""
        return len(self._group) - self._given

    def finish(self, node: Expression, positions: Mapping[Expression, int | None]) -> Expression:
        self.check_grouped(node, positions)
        return self._rewrite(node)

    def check_grouped(self, node: Expression, positions: Mapping[Expression, int | None]) -> None:
        """42803 for a column that is neither grouped by nor in an aggregate."""
        self._check_grouped(node, positions, node)

    def _check_grouped(self, node: Expression, positions: Mapping[Expression, int | None], column: Expression) -> None:
        """``column`` is the innermost part around the node that a column of FROM stands for."""
        if node in self._group:
            return
        if self._scope.spelled(node) is not None:
            column = node
        if isinstance(node, ColumnReference):
            raise SqlError(
                sqlstates.GROUPING_ERROR,
                f'column "{self._scope.spelled(column) or node.name}" must appear in the GROUP BY clause or be used in '
                "an aggregate function",
                position=positions.get(column),
            )
        for child in children(node):
            self._check_grouped(child, positions, column)

    def _rewrite(self, node: Expression) -> Expression:
        if node in self._group:
            return KeyReference(node.type, self._group.index(node))
        if lower_duckdb.can_finish_node(node):
            return with_children(node, self._rewrite)
        if self._group and not self._fixed and not any(isinstance(part, AggregateReference) for part in walk(node)):
            if node.type.is_nested or node.type.kind in (Kind.INTERVAL, Kind.NULL):
                raise lower_duckdb.refuse(node)
            self._group.append(node)
            return KeyReference(node.type, len(self._group) - 1)
        raise lower_duckdb.refuse(node)
