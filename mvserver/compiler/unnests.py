"""FROM s, UNNEST(s.tags): a row for each element of a record's arrays, with the names of both.

The arrays are part of the scan, which then makes several rows of a record, or none. All else is an ordinary plan over
these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from mvserver import sqlstates
from mvserver.compiler.binder import Binder
from mvserver.compiler.expressions import Case, ColumnReference, Expression, FieldAccess, Literal, both
from mvserver.compiler.joins import check_names
from mvserver.compiler.plans import ScanColumn, Unnest
from mvserver.compiler.refusals import refused
from mvserver.compiler.scope import Scope, ScopeColumn, ScopeTable, Source
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.nodes import position_of
from mvserver.sql.types import Kind, SqlType

_CLAUSE = "functions in FROM"


@dataclass(frozen=True)
class Alias:
    """What the user calls the elements; both may be left out."""

    name: str | None
    columns: Sequence[str]


def first_in_from(item: exp.Expression) -> SqlError:
    hint = "Name the stream first: FROM stream CROSS JOIN UNNEST(stream.array) AS t (column)."
    return refused("UNNEST without a stream before it", item, hint)


def unnested(source: Source, join: exp.Join, alias: Alias) -> Source:
    """The source with a row for each element: ``CROSS JOIN UNNEST``, ``JOIN UNNEST ... ON condition`` and ``LEFT JOIN
    UNNEST ... ON true``."""
    item = join.this
    outer = _is_outer(join)
    if source.aggregation is not None:
        raise refused("UNNEST over a sub-query that aggregates", item, "Use UNNEST in the SELECT that reads the view.")
    arrays = [_array(node, source) for node in item.expressions]
    unnest = _unnest(source, arrays, outer=outer)
    table = _table(unnest, arrays, alias, ordinality=bool(item.args.get("offset")), position=position_of(item))
    scope = Scope((*source.scope.tables, table))
    check_names(source.scope, Scope((table,)), join)
    made = replace(source, scope=scope, scan=replace(source.scan, unnests=(*source.scan.unnests, unnest)))
    return _on(made, join, outer=outer)


def _is_outer(join: exp.Join) -> bool:
    position = position_of(join)
    side = join.args.get("side")
    if side in ("RIGHT", "FULL"):
        raise SqlError(
            sqlstates.INVALID_COLUMN_REFERENCE,
            "invalid reference to FROM-clause entry from UNNEST",
            detail="The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
            position=position,
        )
    if join.meta.get("within") is not None:
        raise SqlError(sqlstates.SYNTAX_ERROR, "WITHIN is not allowed in a join with UNNEST", position=position)
    if join.args.get("using"):
        raise refused("USING", join, "Write CROSS JOIN UNNEST(array), and compare in WHERE.")
    return side == "LEFT"


def _array(node: exp.Expression, source: Source) -> Expression:
    """Evaluated only where the conditions of the sub-queries below hold, as their columns are."""
    bound = Binder(source.scope, _CLAUSE).bind(node)
    if bound.type.kind not in (Kind.ARRAY, Kind.MAP):
        raise SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"function unnest({postgres_name(bound.type)}) does not exist",
            hint="UNNEST takes arrays and maps.",
            position=position_of(node),
        )
    return bound if source.where is None else Case(bound.type, ((source.where, bound),), None)


def _unnest(source: Source, arrays: Sequence[Expression], *, outer: bool) -> Unnest:
    taken = {column.name for column in source.scan.columns}
    number = len(source.scan.unnests)

    def named(what: str) -> str:
        name = f"unnest({number}).{what}"
        while name in taken:  # a quoted name of the user's
            name += "."
        return name

    elements = tuple(ScanColumn(named(str(i)), _element(array.type)) for i, array in enumerate(arrays))
    return Unnest(tuple(arrays), elements, named("ordinality"), outer)


def _element(array: SqlType) -> SqlType:
    element = array.element or t.NULL
    return element if array.key is None else t.struct(("key", array.key), ("value", element))


def _table(
    unnest: Unnest, arrays: Sequence[Expression], alias: Alias, *, ordinality: bool, position: int | None
) -> ScopeTable:
    """Structs give their fields as columns. The column of a single array of values has the name of its table."""
    name = alias.name or "unnest"
    columns: list[ScopeColumn] = []
    for element in unnest.elements:
        whole = ColumnReference(element.type, element.name)
        if element.type.kind is Kind.STRUCT:
            columns += [ScopeColumn(field, FieldAccess(type_, whole, field)) for field, type_ in element.type.fields]
        else:
            columns.append(ScopeColumn(name if len(arrays) == 1 else "unnest", whole))
    if ordinality:
        columns.append(ScopeColumn("ordinality", ColumnReference(t.BIGINT, unnest.ordinality)))
    if len(alias.columns) > len(columns):
        raise SqlError(
            sqlstates.INVALID_COLUMN_REFERENCE,
            f'table "{name}" has {len(columns)} columns available but {len(alias.columns)} columns specified',
            position=position,
        )
    for i, given in enumerate(alias.columns):
        columns[i] = replace(columns[i], name=given)
    return ScopeTable(tuple(columns), name, unnested=True)


def _on(source: Source, join: exp.Join, *, outer: bool) -> Source:
    node = join.args.get("on")
    if node is None:
        return source
    condition = Binder(source.scope, "JOIN/ON").condition(node, "JOIN/ON")
    if condition == Literal(t.BOOLEAN, True):
        return source
    if outer:
        raise refused("LEFT JOIN UNNEST with a condition", node, "Write ON true.")
    return replace(source, where=both(source.where, condition))
