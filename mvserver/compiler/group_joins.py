"""FROM stream JOIN groups: each row of the stream meets its group as it was at its event time.

A group has its rows as of a time by what its source's records gave to it until then. So the aggregates are those that
can be added up, in the order of time, and over a changelog those that can be taken back, too.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from mvserver import sqlstates
from mvserver.compiler.capabilities.lookup import call_operator
from mvserver.compiler.changelog_joins import narrow
from mvserver.compiler.changelogs import CHANGELOG
from mvserver.compiler.derived import contributions, derived_scan, with_marks
from mvserver.compiler.expressions import Case, Cast, ColumnReference, Expression, KeyReference, both, renamed
from mvserver.compiler.join_conditions import conditions, free_name, over_side, without_equality, words
from mvserver.compiler.plans import (
    PLAIN,
    TIMED,
    Aggregate,
    AggregateCall,
    Aggregation,
    GroupJoin,
    Groups,
    JoinKind,
    JoinSide,
    Output,
)
from mvserver.compiler.refusals import refused
from mvserver.compiler.scope import Scope, ScopeColumn, ScopeTable, Source
from mvserver.errors import SqlError
from mvserver.sql.nodes import position_of

_MOMENTS = {Aggregate.VAR_POP, Aggregate.VAR_SAMP, Aggregate.STDDEV_POP, Aggregate.STDDEV_SAMP}
_ADDED = (PLAIN | TIMED) - _MOMENTS
_TAKEN_BACK = {Aggregate.COUNT_ROWS, Aggregate.COUNT, Aggregate.SUM, Aggregate.AVG}
_HINT = "Write them to a topic, and join the stream with the changelog over that."
_ONE_TYPE = "Both sides must have one type: cast the stream's column in ON, or what they are grouped by in GROUP BY."


def joined_with_groups(
    kind: JoinKind,
    left: Source,
    right: Source,
    names: tuple[tuple[ScopeTable, ...], tuple[Output, ...]],
    tree: exp.Join,
) -> Source:
    """``names`` are the tables of the left side over the joined rows, and the columns that it gives them."""
    tables, given = names
    groups, of_groups = _groups(right, {output.name for output in given})
    _check(groups, tree)
    scope = Scope((*tables, *(over_names(table, of_groups) for table in right.scope.tables)))
    count = len(groups.keys) - groups.further
    primary = {
        output.name: str(output.expression.index)
        for output in groups.outputs
        if isinstance(output.expression, KeyReference) and output.expression.index < count
    }
    pairs, rest = conditions(tree.args["on"], scope, {output.name for output in given}, primary)
    if not pairs:
        raise without_equality(tree.args["on"])
    by_key = {primary.get(_name(theirs) or ""): mine for mine, theirs in pairs}
    if len(pairs) != count or set(by_key) != set(primary.values()):
        cast = any(isinstance(theirs, Cast) and _name(theirs.operand) in primary for _, theirs in pairs)
        hint = _ONE_TYPE if cast else f"Compare all that they are grouped by. {_HINT}"
        raise refused("a join of a stream with groups by anything but their keys", tree, hint)
    keys = tuple(over_side(by_key[str(index)], given) for index in range(count))
    side = JoinSide(with_marks(left.scan), left.where, keys, given)
    where = None if right.where is None else renamed(right.where, of_groups)
    residual = None if kind is JoinKind.INNER else rest
    join = GroupJoin(kind, side, contributions(groups), residual, True, groups)
    scan = derived_scan(f"{left.scan.relation} {words(kind)} {right.scan.relation}", join)
    if kind is JoinKind.INNER:
        return Source(scope, scan, both(where, rest))
    return Source(seen_where_met(scope, len(tables), (_key_of(groups, primary),), where), scan)


def _key_of(groups: Aggregation, primary: Mapping[str, str]) -> Expression:
    """A column that no group has as NULL which a row can meet."""
    return next(ColumnReference(each.type, each.name) for each in groups.outputs if each.name in primary)


def seen_where_met(scope: Scope, lefts: int, keys: Sequence[Expression], where: Expression | None) -> Scope:
    """The names of a LEFT JOIN by which a row meets one at most: those behind the first ``lefts`` tables are NULL where
    it has met none, which the ``keys`` tell, or one that ``where`` leaves out."""
    met = [call_operator("is not null", (key,)) for key in keys]
    condition = functools.reduce(lambda one, other: call_operator("and", (one, other)), met)
    condition = both(condition, where) or condition

    def seen(column: ScopeColumn) -> ScopeColumn:
        if where is None and len(keys) == 1 and isinstance(column.expression, ColumnReference):
            return column  # which is NULL by itself
        return replace(column, expression=Case(column.type, ((condition, column.expression),), None))

    tables = (replace(table, columns=tuple(map(seen, table.columns))) for table in scope.tables[lefts:])
    return Scope((*scope.tables[:lefts], *tables))


def _name(node: Expression) -> str | None:
    plain = narrow(node)
    return plain.name if isinstance(plain, ColumnReference) else None


def _groups(source: Source, taken: set[str]) -> tuple[Aggregation, dict[str, str]]:
    """The groups with outputs of names that joined rows may have, and these by the ones before."""
    derived = source.scan.derived
    assert isinstance(derived, Groups)  # noqa: S101 - asked for one that has them
    keys = (Output(key.name, key.type, KeyReference(key.type, i)) for i, key in enumerate(derived.key))
    given = (*derived.plan.outputs, *keys)
    names = free_names(source, (output.name for output in given), taken)
    return replace(derived.plan, outputs=tuple(replace(each, name=names[each.name]) for each in given)), names


def free_names(source: Source, names: Iterable[str], taken: set[str]) -> dict[str, str]:
    """Names that columns of a source may have among those of joined rows."""
    found: dict[str, str] = {}
    for name in names:
        found[name] = free_name(source.scope.tables[0].name, name, taken)
        taken = {*taken, found[name]}
    return found


def over_names(table: ScopeTable, names: dict[str, str]) -> ScopeTable:
    columns = (ScopeColumn(column.name, renamed(column.expression, names)) for column in table.columns)
    return replace(table, columns=tuple(columns))


# --- what is refused ------------------------------------------------------------------------------------------------
def _check(groups: Aggregation, tree: exp.Join) -> None:
    for what in _unsupported(groups):
        raise refused(f"a join of a stream with {what}", tree, _HINT)
    for call in groups.aggregates:
        if not _supported(call, replaced=groups.scan.kind == CHANGELOG):
            word = "rows that may be replaced" if groups.scan.kind == CHANGELOG else "records"
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"aggregate {_spelled(call)} over {word} is not supported in groups that a stream is joined with",
                detail="A version of the group would have to keep all of its values.",
                hint=_HINT,
                position=position_of(tree),
            )


def _unsupported(groups: Aggregation) -> Iterator[str]:
    scan = groups.scan
    if scan.window is not None or groups.forgetting:
        yield "groups of windows"
    if groups.grouping_sets or not groups.keys:
        yield "groups of several sets of keys or of none"
    if scan.derived is not None:
        yield "groups of joined, combined or aggregated rows"
    if scan.unnests and scan.kind == CHANGELOG:
        yield "groups of the elements of a changelog's arrays"
    if groups.emit_final or groups.retention_ms is not None:
        yield "groups that are not kept"


def _supported(call: AggregateCall, *, replaced: bool) -> bool:
    if call.distinct or call.function not in (_TAKEN_BACK if replaced else _ADDED):
        return False
    exact = call.argument is None or not call.argument.type.is_approximate
    return not replaced or exact or call.function is Aggregate.COUNT


def _spelled(call: AggregateCall) -> str:
    return f"{call.function.value}(DISTINCT ...)" if call.distinct else call.function.value
