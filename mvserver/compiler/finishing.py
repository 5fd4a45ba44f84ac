"""From expressions over a scan to finishing expressions over keys and aggregates.

A sub-expression equal to a GROUP BY expression becomes a reference to that key. What is left must be built from keys,
aggregates, constants and the functions that DuckDB finishes. A part that needs more but rests on keys alone becomes a
further key, computed by Spark: it is the same for all rows of a group, so that the groups stay what they were.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from mvserver import sqlstates
from mvserver.compiler import lower_duckdb
from mvserver.compiler.capabilities.keys import normalized_key
from mvserver.compiler.expressions import (
    AggregateReference,
    Call,
    Case,
    Cast,
    ColumnReference,
    Expression,
    FieldAccess,
    KeyReference,
    children,
    walk,
)
from mvserver.errors import SqlError
from mvserver.sql.types import Kind


class Finisher:
    """Rewrites the outputs and HAVING of one aggregation; ``keys`` grows by the keys that outputs need."""

    def __init__(self, group: tuple[Expression, ...], table: str) -> None:
        self._group = list(group)
        self._table = table

    @property
    def keys(self) -> tuple[Expression, ...]:
        return tuple(normalized_key(key) for key in self._group)

    def finish(self, node: Expression, positions: Mapping[str, int | None]) -> Expression:
        self._check_grouped(node, positions)
        return self._rewrite(node)

    def _check_grouped(self, node: Expression, positions: Mapping[str, int | None]) -> None:
        if node in self._group:
            return
        if isinstance(node, ColumnReference):
            raise SqlError(
                sqlstates.GROUPING_ERROR,
                f'column "{self._table}.{node.name}" must appear in the GROUP BY clause or be used in an aggregate '
                "function",
                position=positions.get(node.name),
            )
        for child in children(node):
            self._check_grouped(child, positions)

    def _rewrite(self, node: Expression) -> Expression:
        if node in self._group:
            return KeyReference(node.type, self._group.index(node))
        if lower_duckdb.can_finish_node(node):
            return self._with_children(node)
        if self._group and not any(isinstance(part, AggregateReference) for part in walk(node)):
            if node.type.is_nested or node.type.kind in (Kind.INTERVAL, Kind.NULL):
                raise lower_duckdb.refuse(node)
            self._group.append(node)
            return KeyReference(node.type, len(self._group) - 1)
        raise lower_duckdb.refuse(node)

    def _with_children(self, node: Expression) -> Expression:
        if isinstance(node, Call):
            return dataclasses.replace(node, arguments=tuple(self._rewrite(each) for each in node.arguments))
        if isinstance(node, (Cast, FieldAccess)):
            return dataclasses.replace(node, operand=self._rewrite(node.operand))
        if isinstance(node, Case):
            return dataclasses.replace(
                node,
                branches=tuple((self._rewrite(test), self._rewrite(value)) for test, value in node.branches),
                otherwise=self._rewrite(node.otherwise) if node.otherwise is not None else None,
            )
        return node
