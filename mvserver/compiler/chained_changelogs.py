"""FROM stream JOIN (changelog JOIN changelog): the stream joined with one of them, and what that gives with the other.

Joined rows as of a time are those of the rows of that time. So the stream meets a row of the one changelog, and that
meets the rows of the other which were valid at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from mvserver.compiler.capabilities.lookup import call_operator
from mvserver.compiler.changelog_joins import key_tells_rows
from mvserver.compiler.derived import derived_scan, with_marks
from mvserver.compiler.expressions import ColumnReference, Expression, both, renamed, walk
from mvserver.compiler.group_joins import free_names, over_names, seen_where_met
from mvserver.compiler.join_conditions import conditions, over_side, without_equality, words
from mvserver.compiler.plans import ChangelogJoin, JoinKind, JoinSide, Output, TemporalJoin
from mvserver.compiler.refusals import refused
from mvserver.compiler.scope import Scope, ScopeTable, Source

_HINT = "Join the stream with the changelogs themselves, one after the other."
_ONCE = "Compare the whole primary keys: each row of the stream then meets one row at most."
_Pair = tuple[Expression, Expression]


def joined_one_by_one(
    kind: JoinKind,
    left: Source,
    right: Source,
    names: tuple[tuple[ScopeTable, ...], tuple[Output, ...]],
    tree: exp.Join,
) -> Source:
    """``names`` are the tables of the left side over the joined rows, and the columns that it gives them."""
    tables, given = names
    join = right.scan.derived
    assert isinstance(join, ChangelogJoin)  # noqa: S101 - asked for one that has it
    _check(join, tree)
    taken = {output.name for output in given}
    free = free_names(right, (output.name for output in join.outputs), taken)
    scope = Scope((*tables, *(over_names(table, free) for table in right.scope.tables)))
    pairs, rest = conditions(tree.args["on"], scope, taken)
    if not pairs:
        raise without_equality(tree.args["on"])
    first, second = join.left, join.right
    compared = [pair for pair in pairs if _is_of(pair, first, free)]
    if not compared and join.kind is JoinKind.INNER:
        first, second = second, first
        compared = [pair for pair in pairs if _is_of(pair, first, free)]
    for mine, theirs in (pair for pair in pairs if pair not in compared):
        equal = call_operator("=", (mine, theirs))
        rest = equal if rest is None else both(rest, equal)
    if not compared or (kind is JoinKind.LEFT and rest is not None):
        raise refused("such a condition of a join of a stream with joined changelogs", tree, _HINT)
    own = tuple(replace(output, name=free[output.name]) for output in first.outputs)
    hidden = tuple(Output(f"{right.scope.tables[0].name} key {i}", k.type, k) for i, k in enumerate(first.keys))
    met = JoinSide(first.scan, first.where, tuple(over_side(theirs, own) for _, theirs in compared), (*own, *hidden))
    side = JoinSide(with_marks(left.scan), left.where, tuple(over_side(mine, given) for mine, _ in compared), given)
    joined = TemporalJoin(kind, side, met, None, key_tells_rows(met))
    scan = derived_scan(f"{left.scan.relation} {words(kind)} {first.scan.relation}", joined)
    chained = JoinSide(
        with_marks(scan),
        None,
        tuple(ColumnReference(each.type, each.name) for each in hidden),
        tuple(Output(each.name, each.type, ColumnReference(each.type, each.name)) for each in (*given, *own)),
    )
    other = replace(second, outputs=tuple(replace(output, name=free[output.name]) for output in second.outputs))
    residual = None if join.residual is None else renamed(join.residual, free)
    last = TemporalJoin(_outer(kind, join.kind), chained, other, residual, key_tells_rows(other))
    where = None if right.where is None else renamed(right.where, free)
    relation = f"{scan.relation} {words(join.kind)} {second.scan.relation}"
    made = derived_scan(relation, last)
    if kind is JoinKind.INNER:
        return Source(scope, made, both(where, rest))
    if join.kind is JoinKind.LEFT and where is None and _plain(right):
        return Source(scope, made)
    if not (joined.by_key and last.by_key):
        raise refused("a LEFT JOIN of a stream with changelogs that are joined by INNER or filtered", tree, _ONCE)
    keys = [_key_of(own, first)]
    if join.kind is JoinKind.INNER:
        keys.append(_key_of(other.outputs, second))
    return Source(seen_where_met(scope, len(tables), keys, where), made)


def _outer(kind: JoinKind, inner: JoinKind) -> JoinKind:
    return JoinKind.LEFT if kind is JoinKind.LEFT else inner


def _plain(right: Source) -> bool:
    """Whether its columns are those of the joined rows, which are NULL where nothing is met."""
    return all(isinstance(column.expression, ColumnReference) for t in right.scope.tables for column in t.columns)


def _key_of(outputs: Sequence[Output], side: JoinSide) -> Expression:
    """A column of its primary key in the joined rows."""
    key = side.scan.primary_key
    wanted = (o for o in outputs if isinstance(o.expression, ColumnReference) and o.expression.name in key)
    return next(ColumnReference(each.type, each.name) for each in wanted)


def _is_of(pair: _Pair, side: JoinSide, free: dict[str, str]) -> bool:
    """Whether what is compared of the joined rows comes from one side of them."""
    names = {part.name for part in walk(pair[1]) if isinstance(part, ColumnReference)}
    return names <= {free[output.name] for output in side.outputs}


def _check(join: ChangelogJoin, tree: exp.Join) -> None:
    if join.kind is JoinKind.FULL:
        raise refused("a join of a stream with a FULL JOIN of changelogs", tree, _HINT)
    if any(side.scan.derived is not None or side.scan.unnests for side in join.sides):
        raise refused("a join of a stream with a sub-query that joins more than two changelogs", tree, _HINT)
