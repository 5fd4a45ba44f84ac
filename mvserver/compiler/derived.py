"""Scans of rows that no store has: the server makes them from other scans and keeps them in a log of its own.

A join is such a scan. Each of its sides says what Spark evaluates of a source's records; DuckDB finds the pairs. The
SELECT around it is an ordinary plan over the joined rows.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mvserver.compiler.expressions import ColumnReference, Expression, KeyReference, walk, with_children
from mvserver.compiler.plans import Aggregation, ContinuousPlan, Output, Projection, Scan, ScanColumn
from mvserver.sql import types as t

EVENT_TIME = "rowtime"  # a column of every derived scan beside those of the user, whose names have a dot


class JoinKind(enum.Enum):
    INNER = "INNER"
    LEFT = "LEFT"
    FULL = "FULL"


@dataclass(frozen=True)
class JoinSide:
    """One input of a join. ``keys`` are compared, ``outputs`` become columns of the joined rows under their names."""

    scan: Scan
    where: Expression | None
    keys: tuple[Expression, ...]
    outputs: tuple[Output, ...]

    @property
    def plan(self) -> Projection:
        """What is evaluated of each record: the keys first, then the columns."""
        keys = tuple(Output(f"key {i}", key.type, key) for i, key in enumerate(self.keys))
        return Projection(self.scan, self.where, (*keys, *self.outputs))


@dataclass(frozen=True)
class _Join:
    """``residual`` is over the columns of the joined rows and decides what matches; only an outer join has one here,
    since for an inner join it is a condition on the joined rows."""

    kind: JoinKind
    left: JoinSide
    right: JoinSide
    residual: Expression | None

    @property
    def sides(self) -> tuple[JoinSide, JoinSide]:
        return self.left, self.right

    @property
    def outputs(self) -> tuple[Output, ...]:
        return (*self.left.outputs, *self.right.outputs)

    def numbered(self, condition: Expression) -> Expression:
        """A condition over the joined rows as one that DuckDB evaluates: columns by their place."""
        places = {output.name: index for index, output in enumerate(self.outputs)}

        def change(node: Expression) -> Expression:
            if isinstance(node, ColumnReference):
                return KeyReference(node.type, places[node.name])
            return with_children(node, change)

        return change(condition)


@dataclass(frozen=True)
class IntervalJoin(_Join):
    """Stream with stream: rows of equal keys whose event times are at most ``within_us`` apart."""

    within_us: int


@dataclass(frozen=True)
class TemporalJoin(_Join):
    """Stream with changelog: each row of the stream, and the version of its key that was valid at its event time."""


@dataclass(frozen=True)
class UnionAll:
    """The rows of both sides, which have no keys and the same columns."""

    left: JoinSide
    right: JoinSide
    residual: Expression | None = None

    @property
    def sides(self) -> tuple[JoinSide, JoinSide]:
        return self.left, self.right

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.left.outputs


Derived = IntervalJoin | TemporalJoin | UnionAll


def derived_scan(relation: str, derived: Derived) -> Scan:
    """The scan of the rows that ``derived`` makes; its left source says where to start and what a bad record does."""
    columns = tuple(ScanColumn(output.name, output.type) for output in derived.outputs)
    return Scan(
        relation_id=relation,
        relation=relation,
        columns=(*columns, ScanColumn(EVENT_TIME, t.TIMESTAMP_LTZ)),
        value_format="rows",
        timestamp=EVENT_TIME,
        timestamp_format="sql",
        starting_position=derived.left.scan.starting_position,
        error_handling=derived.left.scan.error_handling,
        derived=derived,
    )


def scans(scan: Scan) -> Iterator[Scan]:
    """The scans of stored relations that this one is made from, left to right; itself where it is one."""
    if scan.derived is None:
        yield scan
        return
    for side in scan.derived.sides:
        yield from scans(side.scan)


def views(scan: Scan) -> Iterator[Scan]:
    """The scan and those below it that views led to."""
    if scan.views:
        yield scan
    for side in () if scan.derived is None else scan.derived.sides:
        yield from views(side.scan)


def pruned(plan: ContinuousPlan) -> ContinuousPlan:
    """The plan over a derived scan that has only the columns which the plan reads."""
    if plan.scan.derived is None:
        return plan
    return replace(plan, scan=_pruned_scan(plan.scan, _columns_of(_expressions(plan))))


def _pruned_scan(scan: Scan, wanted: frozenset[str]) -> Scan:
    join = scan.derived
    if join is None:
        return scan
    if join.residual is not None:
        wanted |= _columns_of([join.residual])
    left, right = (_pruned_side(side, wanted) for side in join.sides)
    kept = tuple(column for column in scan.columns if column.name in wanted | {EVENT_TIME, *scan.primary_key})
    return replace(scan, columns=kept, derived=replace(join, left=left, right=right))


def _pruned_side(side: JoinSide, wanted: frozenset[str]) -> JoinSide:
    outputs = tuple(output for output in side.outputs if output.name in wanted)
    read = _expressions(replace(side, outputs=outputs).plan)
    return replace(side, outputs=outputs, scan=_pruned_scan(side.scan, _columns_of(read)))


def _expressions(plan: ContinuousPlan) -> list[Expression]:
    found = [array for unnest in plan.scan.unnests for array in unnest.arrays]
    if plan.where is not None:
        found.append(plan.where)
    if isinstance(plan, Aggregation):
        found.extend(plan.keys)
        for call in plan.aggregates:
            found.extend(part for part in (call.argument, call.filter) if part is not None)
    else:
        found.extend(output.expression for output in plan.outputs)
    return found


def _columns_of(expressions: list[Expression]) -> frozenset[str]:
    return frozenset(
        node.name for expression in expressions for node in walk(expression) if isinstance(node, ColumnReference)
    )
