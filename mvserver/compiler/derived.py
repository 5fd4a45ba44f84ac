"""Scans of rows that no store has: the server makes them from other scans and keeps them in a log of its own.

A join is such a scan. Each of its sides says what Spark evaluates of a source's records; DuckDB finds the pairs. The
SELECT around it is an ordinary plan over the joined rows. So are the groups that one query makes and another one
aggregates again: the one side is the first query, and its rows change, as those of a changelog do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mvserver.compiler.capabilities.keys import normalized_key
from mvserver.compiler.expressions import (
    AggregateReference,
    Case,
    ColumnReference,
    Expression,
    Literal,
    walk,
    with_children,
)
from mvserver.compiler.plans import (
    AggregateCall,
    Aggregation,
    ContinuousPlan,
    Derived,
    GroupJoin,
    Groups,
    JoinSide,
    Output,
    Scan,
    ScanColumn,
)
from mvserver.sql import types as t

EVENT_TIME = "rowtime"  # a column of every derived scan beside those of the user, whose names have a dot
ROW_MARK = "rowmark"  # of one under a window or a join: how far a row's own source was just before it, in microseconds


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
    if isinstance(join, GroupJoin):
        groups = _pruned_groups(join.groups, given)
        sides = replace(join, left=_pruned_side(join.left, given), right=contributions(groups), groups=groups)
        return replace(scan, columns=kept, derived=sides)
    return replace(scan, columns=kept, derived=join.with_sides([_pruned_side(side, given) for side in join.sides]))


def _pruned_side(side: JoinSide, wanted: frozenset[str]) -> JoinSide:
    outputs = tuple(output for output in side.outputs if output.name in wanted)
    read = _expressions(replace(side, outputs=outputs).plan)
    return replace(side, outputs=outputs, scan=_pruned_scan(side.scan, _columns_of(read)))


def contributions(groups: Aggregation) -> JoinSide:
    """What each record gives to the groups: their keys, the arguments of the aggregates, and keys that are functions of
    others."""
    count = len(groups.keys) - groups.further
    found = dict.fromkeys(each for call in groups.aggregates if (each := contribution(call)) is not None)
    named = [(f"argument {i}", each) for i, each in enumerate(found)]
    named += [(f"further key {i}", normalized_key(each)) for i, each in enumerate(groups.keys[count:])]
    outputs = tuple(Output(name, each.type, each) for name, each in named)
    keys = tuple(normalized_key(key) for key in groups.keys[:count])
    return JoinSide(groups.scan, groups.where, keys, outputs)


def contribution(call: AggregateCall) -> Expression | None:
    """What an aggregate takes of a record; None where it only counts them."""
    if call.filter is None:
        return call.argument
    argument = Literal(t.INTEGER, 1) if call.argument is None else call.argument
    return Case(argument.type, ((call.filter, argument),), None)


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
