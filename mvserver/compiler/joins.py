"""FROM a JOIN b: two sources become one scan of joined rows, with the names of both; and what joins are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.compiler import lower_duckdb
from mvserver.compiler.binder import Binder
from mvserver.compiler.chained_changelogs import joined_one_by_one
from mvserver.compiler.changelog_joins import changelog_join, key_tells_rows
from mvserver.compiler.changelogs import CHANGELOG
from mvserver.compiler.derived import derived_scan, with_marks
from mvserver.compiler.expressions import ColumnReference, Literal
from mvserver.compiler.group_joins import joined_with_groups
from mvserver.compiler.intervals import parts_of
from mvserver.compiler.join_conditions import conditions, free_name, over_side, without_equality, words
from mvserver.compiler.plans import (
    ChangelogJoin,
    Groups,
    IntervalJoin,
    JoinKind,
    JoinSide,
    Output,
    Scan,
    TemporalJoin,
    UnionAll,
)
from mvserver.compiler.refusals import refused
from mvserver.compiler.scope import Scope, ScopeColumn, ScopeTable, Source
from mvserver.errors import SqlError
from mvserver.sql.nodes import position_of

_DAY_US = 86_400_000_000
_WITHIN_HINT = "Write WITHIN n MINUTES before ON: how far apart the event times of two joined rows may be."


def joined(left: Source, right: Source, join: exp.Join) -> Source:
    """The source that a join of two sources is."""
    kind = _kind(join)
    for source in (left, right):
        _check_union(source, join)
        _check_unnested(source, join)
    check_names(left.scope, right.scope, join)
    made = _AS_OF.get(type(right.scan.derived)) if _is_mixed(left, right) else None
    if made is not None:
        _check_temporal(kind, join)
        tables, (given,) = _joined_tables((left.scope,))
        found = made(kind, left, right, (tables, given), join)
        _check_residual_of(found.scan, join)
        return found
    changelogs = left.scan.kind == right.scan.kind == CHANGELOG
    temporal = right.scan.kind == CHANGELOG and not changelogs
    if changelogs:
        _check_current(join)
    else:
        _check_mixed(left, right, join)
    within = 0 if changelogs or temporal else _within(join)
    tables, outputs = _joined_tables((left.scope, right.scope))
    scope = Scope(tables)
    primary_key = _primary_key(right.scan, outputs[1]) if temporal else None
    keys, rest = conditions(join.args["on"], scope, {output.name for output in outputs[0]}, primary_key)
    if not keys:
        raise without_equality(join.args["on"])
    sides = [
        JoinSide(with_marks(source.scan), source.where, tuple(over_side(key, columns) for key in side_keys), columns)
        for source, side_keys, columns in zip((left, right), zip(*keys, strict=True), outputs, strict=True)
    ]
    derived: IntervalJoin | TemporalJoin | ChangelogJoin
    residual = None if kind is JoinKind.INNER else rest
    if changelogs:
        derived = changelog_join(kind, sides[0], sides[1], residual)
    elif temporal:
        _check_temporal(kind, join)
        derived = TemporalJoin(kind, sides[0], sides[1], residual, key_tells_rows(sides[1]))
    else:
        derived = IntervalJoin(kind, sides[0], sides[1], residual, within)
    scan = derived_scan(_relation(derived), derived, derived.key if isinstance(derived, ChangelogJoin) else None)
    _check_residual_of(scan, join)
    return Source(scope, scan, rest if kind is JoinKind.INNER else None)


_AS_OF = {Groups: joined_with_groups, ChangelogJoin: joined_one_by_one}
"""By what makes the rows of a changelog, how a stream is joined with it as of event time."""


def _is_mixed(left: Source, right: Source) -> bool:
    return left.scan.kind != CHANGELOG and right.scan.kind == CHANGELOG


def _relation(join: IntervalJoin | TemporalJoin | ChangelogJoin) -> str:
    return f"{join.left.scan.relation} {words(join.kind)} {join.right.scan.relation}"


# --- what is refused ------------------------------------------------------------------------------------------------
def _kind(join: exp.Join) -> JoinKind:
    if join.args.get("side") == "RIGHT":
        raise refused("RIGHT JOIN", join, "Swap the two sides and use LEFT JOIN.")
    if join.args.get("using"):
        raise refused("USING", join, "Use ON a.column = b.column.")
    if join.args.get("on") is None:
        raise refused("a join without ON", join, "Join on a column: a JOIN b WITHIN n MINUTES ON a.column = b.column.")
    return JoinKind(join.args.get("side") or "INNER")


def _check_union(source: Source, join: exp.Join) -> None:
    if any(isinstance(scan.derived, UnionAll) for scan in _derived_scans(source.scan)):
        hint = "Join each of its queries, and combine the joined rows with UNION ALL."
        raise refused("a join with a UNION ALL", join, hint)


def _check_unnested(source: Source, join: exp.Join) -> None:
    if source.scan.kind == CHANGELOG and source.scan.unnests:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "a join with UNNEST over a changelog is not supported",
            hint="Join the changelog first, and write UNNEST after the join.",
            position=position_of(join),
        )


def _derived_scans(scan: Scan) -> Iterator[Scan]:
    yield scan
    for side in () if scan.derived is None else scan.derived.sides:
        yield from _derived_scans(side.scan)


def _check_mixed(left: Source, right: Source, join: exp.Join) -> None:
    """A stream with a changelog: as of event time, which only records have."""
    if left.scan.kind == CHANGELOG:
        hint = "Swap the two sides: each row of the stream is joined with the version valid at its event time."
        raise refused("a join of a changelog with a stream on its right side", join, hint)


def _check_current(join: exp.Join) -> None:
    if join.meta.get("within") is not None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "WITHIN is not supported in a join of two changelogs",
            hint="Their current rows are joined, whatever their event times are; compare times in ON or WHERE.",
            position=position_of(join),
        )


def _primary_key(scan: Scan, outputs: Sequence[Output]) -> Mapping[str, str]:
    """The outputs that are columns of the scan's primary key."""
    columns = {each.name: each.expression for each in outputs}
    return {
        name: found.name
        for name, found in columns.items()
        if isinstance(found, ColumnReference) and found.name in scan.primary_key
    }


def _check_temporal(kind: JoinKind, join: exp.Join) -> None:
    position = position_of(join)
    if join.meta.get("within") is not None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "WITHIN is not supported in a join with a changelog",
            hint="A row of the stream is joined with the version that was valid at its event time.",
            position=position,
        )
    if kind is JoinKind.FULL:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "FULL JOIN of a stream with a changelog is not supported",
            hint="Use LEFT JOIN, which gives all rows of the stream.",
            position=position,
        )


def check_names(left: Scope, right: Scope, join: exp.Join) -> None:
    names = {table.name for table in left.tables}
    for table in right.tables:
        if table.name in names:
            raise SqlError(
                sqlstates.DUPLICATE_ALIAS,
                f'table name "{table.name}" specified more than once',
                hint="Give each side a name of its own with AS.",
                position=position_of(join.this),
            )


def _within(join: exp.Join) -> int:
    node = join.meta.get("within")
    if node is None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "a join of two streams without WITHIN is not supported",
            hint=_WITHIN_HINT,
            position=position_of(join),
        )
    bound = Binder(Scope(), "WITHIN").bind(node)
    assert isinstance(bound, Literal)  # noqa: S101 - the parser gives an interval
    months, days, micros = parts_of(str(bound.value))
    within = days * _DAY_US + micros
    if months or not 0 <= within <= limits.JOIN_WITHIN_DAYS_MAX * _DAY_US:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f"WITHIN must be between 0 seconds and {limits.JOIN_WITHIN_DAYS_MAX} days",
            hint="Months and years differ in length: give days." if months else None,
            position=position_of(node),
        )
    return within


def _check_residual_of(scan: Scan, tree: exp.Join) -> None:
    join = scan.derived
    assert isinstance(join, IntervalJoin | TemporalJoin | ChangelogJoin)  # noqa: S101 - a join's
    if join.residual is None:
        return
    try:
        lower_duckdb.lower(join.numbered(join.residual), key=str, aggregate=str)
    except SqlError as error:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "this condition is not supported in the ON of an outer join",
            detail=f"{error.message[:1].upper()}{error.message[1:]}.".replace(" over aggregates", ""),
            hint="Equalities, comparisons, arithmetic, CASE and casts between numbers are; compute other values in a "
            "sub-query of FROM, and compare them here.",
            position=position_of(tree.args["on"]),
        ) from error


# --- names ----------------------------------------------------------------------------------------------------------
def _joined_tables(scopes: Sequence[Scope]) -> tuple[tuple[ScopeTable, ...], list[tuple[Output, ...]]]:
    """The tables of the sides over the joined rows, and for each side the columns that it gives them."""
    tables: list[ScopeTable] = []
    outputs: list[tuple[Output, ...]] = []
    taken: set[str] = set()
    for scope in scopes:
        mine: list[Output] = []
        for table in scope.tables:
            columns = []
            for column in table.columns:
                name = free_name(table.name, column.name, taken)
                taken.add(name)
                mine.append(Output(name, column.type, column.expression))
                columns.append(ScopeColumn(column.name, ColumnReference(column.type, name)))
            tables.append(replace(table, columns=tuple(columns)))
        outputs.append(tuple(mine))
    return tuple(tables), outputs
