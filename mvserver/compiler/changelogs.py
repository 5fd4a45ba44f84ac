"""The rules for continuous queries over changelogs: all can be taken back when a row is replaced or deleted."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.compiler.expressions import ColumnReference, KeyReference
from mvserver.compiler.plans import TIMED, Aggregation, ChangelogJoin, ContinuousPlan, Derived, Groups, Projection
from mvserver.errors import SqlError

CHANGELOG = "changelog"
CHANGE_KIND = "op"  # the column of a push query that tells what becomes of a row


def over_changelog(plan: ContinuousPlan) -> bool:
    return plan.scan.kind == CHANGELOG


def replaces_rows(plan: ContinuousPlan) -> bool:
    """Whether rows of the result may be replaced or taken back; else they are only added."""
    return over_changelog(plan) if isinstance(plan, Projection) else not plan.emit_final


def check_retraction(plan: ContinuousPlan) -> None:
    """0A000 by name for what cannot be taken back, here or in what the plan reads."""
    for side in () if plan.scan.derived is None else plan.scan.derived.sides:
        check_retraction(side.plan)
    if not over_changelog(plan):
        return
    if not isinstance(plan, Aggregation):
        return
    groups = plan.scan.derived
    for call in plan.aggregates:
        if call.function in TIMED and _is_untimed(groups):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"aggregate {call.function.value} is not supported over groups without an event time",
                detail="The event time of a group is the end of its window.",
                hint="Group by window_start and window_end in the sub-query, or use MIN or MAX.",
            )


def _is_untimed(derived: Derived | None) -> bool:
    if isinstance(derived, ChangelogJoin):  # the later time of the two sides
        return all(_is_untimed(side.scan.derived) for side in derived.sides)
    return isinstance(derived, Groups) and derived.window_end is None


def projected_key(plan: Projection, further: int = 0) -> tuple[str, ...]:
    """The outputs that are the changelog's primary key, in its order, and with UNNEST the number of the element; empty
    where one of these columns is left out. The last ``further`` columns of the primary key are not wanted."""
    names = {
        output.expression.name: output.name
        for output in reversed(plan.outputs)
        if isinstance(output.expression, ColumnReference)
    }
    unnests = plan.scan.unnests
    if any(unnest.outer for unnest in unnests):  # whose ordinality may be NULL
        return ()
    primary = plan.scan.primary_key[: len(plan.scan.primary_key) - further]
    key = (*primary, *(unnest.ordinality for unnest in unnests))
    return tuple(names[column] for column in key) if all(column in names for column in key) else ()


def result_key(plan: ContinuousPlan) -> tuple[str, ...]:
    """The outputs that together tell the rows of the result apart, in the order of the keys; empty where rows are only
    added, or where a key is left out."""
    if isinstance(plan, Projection):
        return projected_key(plan) if over_changelog(plan) else ()
    return _selected_keys(plan, len(plan.keys))


def written_key(plan: ContinuousPlan) -> tuple[str, ...]:
    """As :func:`result_key`, but without keys that are functions of others: those are values of a record."""
    if isinstance(plan, Aggregation):
        return _selected_keys(plan, len(plan.keys) - plan.further)
    groups = plan.scan.derived
    return projected_key(plan, groups.plan.further if isinstance(groups, Groups) else 0) if over_changelog(plan) else ()


def _selected_keys(plan: Aggregation, count: int) -> tuple[str, ...]:
    """The outputs that are the first keys; empty where one of them is left out."""
    if plan.grouping_sets:
        return ()
    names = {o.expression.index: o.name for o in reversed(plan.outputs) if isinstance(o.expression, KeyReference)}
    return tuple(names[i] for i in range(count)) if all(i in names for i in range(count)) else ()
