"""Scans of rows that no store has: the server makes them from other scans and keeps them in a log of its own.

A join is such a scan. Each of its sides says what Spark evaluates of a source's records; DuckDB finds the pairs. The
SELECT around it is an ordinary plan over the joined rows. So are the groups that one query makes and another one
aggregates again: the one side is the first query, and its rows change, as those of a changelog do.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from mvserver.compiler.expressions import (
    AggregateReference,
    ColumnReference,
    Expression,
    by_place,
    walk,
    with_children,
)
from mvserver.compiler.plans import Aggregation, ContinuousPlan, Output, Projection, Scan, ScanColumn
from mvserver.compiler.windows import WINDOW_END
from mvserver.sql import types as t

EVENT_TIME = "rowtime"  # a column of every derived scan beside those of the user, whose names have a dot
ROW_MARK = "rowmark"  # of one under a window or a join: how far a row's own source was just before it, in microseconds


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

    def with_sides(self, sides: Sequence[JoinSide]) -> Self:
        left, right = sides
        return replace(self, left=left, right=right)

    def numbered(self, condition: Expression) -> Expression:
        """A condition over the joined rows as one that DuckDB evaluates: columns by their place."""
        return by_place(condition, (output.name for output in self.outputs))


@dataclass(frozen=True)
class IntervalJoin(_Join):
    """Stream with stream: rows of equal keys whose event times are at most ``within_us`` apart."""

    within_us: int


@dataclass(frozen=True)
class TemporalJoin(_Join):
    """Stream with changelog: each row of the stream, and the version of its key that was valid at its event time."""


@dataclass(frozen=True)
class ChangelogJoin(_Join):
    """Changelog with changelog: the current rows of both. Its rows are a changelog, told apart by the columns ``key``
    of the joined rows."""

    key: tuple[ScanColumn, ...]


@dataclass(frozen=True)
class UnionAll:
    """The rows of all sides, which have no keys and the same columns."""

    sides: tuple[JoinSide, ...]
    residual: Expression | None = None

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.sides[0].outputs

    def with_sides(self, sides: Sequence[JoinSide]) -> UnionAll:
        return replace(self, sides=tuple(sides))


@dataclass(frozen=True)
class GroupsSide:
    """The one input of groups."""

    plan: Aggregation

    @property
    def scan(self) -> Scan:
        return self.plan.scan


@dataclass(frozen=True)
class Groups:
    """The rows of a query that aggregates, each of which changes with the records of its group."""

    plan: Aggregation
    residual: Expression | None = None

    @property
    def sides(self) -> tuple[GroupsSide]:
        return (GroupsSide(self.plan),)

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.plan.outputs

    @property
    def key(self) -> tuple[ScanColumn, ...]:
        """What tells its rows apart, whether the query selects it or not."""
        types = [*(key.type for key in self.plan.keys), *([t.INTEGER] if self.plan.grouping_sets else [])]
        return tuple(ScanColumn(f"key {i}", type_) for i, type_ in enumerate(types))

    @property
    def window_end(self) -> int | None:
        """The key that is the end of the group's window, from which it has its event time; None: it has none."""
        window = self.plan.scan.window
        if window is None or self.plan.forgetting:
            return None
        return next(i for i, k in enumerate(self.plan.keys) if k == ColumnReference(t.TIMESTAMP, WINDOW_END))


Derived = IntervalJoin | TemporalJoin | ChangelogJoin | UnionAll | Groups


def derived_scan(relation: str, derived: Derived, key: tuple[ScanColumn, ...] | None = None) -> Scan:
    """The scan of the rows that ``derived`` makes; its left source says where to start and what a bad record does. With
    a ``key``, which may be columns of them, it is a changelog."""
    columns = (ScanColumn(output.name, output.type) for output in derived.outputs)
    left = derived.sides[0].scan
    return Scan(
        relation_id=relation,
        relation=relation,
        columns=(
            *(key or ()),
            *(each for each in columns if each not in (key or ())),
            ScanColumn(EVENT_TIME, t.TIMESTAMP_LTZ),
        ),
        value_format="rows",
        timestamp=EVENT_TIME,
        timestamp_format="sql",
        starting_position=left.starting_position,
        error_handling=left.error_handling,
        kind="stream" if key is None else "changelog",
        primary_key=() if key is None else tuple(column.name for column in key),
        derived=derived,
    )


def with_marks(scan: Scan) -> Scan:
    """The scan for a window or a further join: each row of a derived stream says by itself whether it comes late."""
    if scan.derived is None or scan.kind != "stream" or has_marks(scan):
        return scan
    return replace(scan, columns=(*scan.columns, ScanColumn(ROW_MARK, t.BIGINT)))


def has_marks(scan: Scan) -> bool:
    return scan.derived is not None and scan.columns[-1].name == ROW_MARK


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
    wanted |= {EVENT_TIME, ROW_MARK, *scan.primary_key}
    given = wanted
    if join.residual is not None:
        given |= _columns_of([join.residual])
    # The log has all that the sides give, but of changes only what is read: others would be told of for nothing.
    kept = tuple(column for column in scan.columns if column.name in (given if scan.kind == "stream" else wanted))
    if isinstance(join, Groups):
        return replace(scan, columns=kept, derived=Groups(_pruned_groups(join.plan, wanted)))
    return replace(scan, columns=kept, derived=join.with_sides([_pruned_side(side, given) for side in join.sides]))


def _pruned_side(side: JoinSide, wanted: frozenset[str]) -> JoinSide:
    outputs = tuple(output for output in side.outputs if output.name in wanted)
    read = _expressions(replace(side, outputs=outputs).plan)
    return replace(side, outputs=outputs, scan=_pruned_scan(side.scan, _columns_of(read)))


def _pruned_groups(plan: Aggregation, wanted: frozenset[str]) -> Aggregation:
    """Without the outputs that nobody reads, and the aggregates that only they are made of."""
    outputs = tuple(output for output in plan.outputs if output.name in wanted)
    roots = [*(output.expression for output in outputs), *([] if plan.having is None else [plan.having])]
    used = sorted({node.index for root in roots for node in walk(root) if isinstance(node, AggregateReference)})

    def renumbered(node: Expression) -> Expression:
        if isinstance(node, AggregateReference):
            return replace(node, index=used.index(node.index))
        return with_children(node, renumbered)

    kept = replace(
        plan,
        aggregates=tuple(plan.aggregates[index] for index in used),
        outputs=tuple(replace(output, expression=renumbered(output.expression)) for output in outputs),
        having=None if plan.having is None else renumbered(plan.having),
    )
    return replace(kept, scan=_pruned_scan(kept.scan, _columns_of(_expressions(kept))))


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
