"""A bound SELECT: projection or aggregation, what GROUP BY means, which columns come out and under which names."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.compiler.aggregates import AGGREGATES, AggregateText, aggregate_call
from mvserver.compiler.binder import Binder
from mvserver.compiler.capabilities.keys import normalized_key
from mvserver.compiler.coercion import coerce
from mvserver.compiler.expressions import AggregateReference, ColumnReference, Expression, KeyReference, both
from mvserver.compiler.finishing import Finisher
from mvserver.compiler.grouping import grouping
from mvserver.compiler.literals import is_unknown
from mvserver.compiler.nested import changes_of
from mvserver.compiler.own_aggregates import OverGroups, collected, own_aggregate_call, spark_computes
from mvserver.compiler.own_functions import own_aggregate
from mvserver.compiler.plans import AggregateCall, Aggregation, ContinuousPlan, Output, Projection, Scan
from mvserver.compiler.scope import Scope, ScopeColumn, ScopeTable, Source
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.nodes import default_name, position_of
from mvserver.sql.types import Kind, SqlType


@dataclass(frozen=True)
class _Item:
    """An item of the select list after ``*`` is written out: a tree, or a column that ``*`` stood for."""

    tree: exp.Expression | None
    column: Expression | None
    name: str | None
    position: int | None


@dataclass(frozen=True)
class _Bound:
    """A bound tree, and whose columns stand where."""

    node: Expression
    binder: Binder
    position: int | None


class _Calls:
    """The aggregate calls of a SELECT, each kept once."""

    def __init__(self) -> None:
        self.calls: list[AggregateCall] = []

    def add(self, written: AggregateText) -> Expression:
        return own_aggregate_call(written, self._keep) if written.path else self._keep(aggregate_call(written))

    def _keep(self, call: AggregateCall) -> Expression:
        if call not in self.calls:
            self.calls.append(call)
        return AggregateReference(call.type, self.calls.index(call))


class Branch(enum.Enum):
    """Which query of a UNION ALL a SELECT is. The first names the columns; in all of them a constant without a type
    takes that of the other queries."""

    FIRST = "first"
    LATER = "later"


def analyze(select: exp.Expression, source: Source, branch: Branch | None = None) -> ContinuousPlan:
    if source.aggregation is not None and _aggregates(select):
        source = changes_of(source, source.aggregation, select)
    where_node = select.args.get("where")
    of_rows = source.aggregation is None and not _aggregates(select) and select.args.get("distinct") is None
    binder = Binder(source.scope, "WHERE", of_rows=of_rows)
    where = binder.condition(where_node.this, "WHERE") if where_node is not None else None
    items = _expand(select.expressions, source.scope)
    if source.aggregation is not None:
        return _over_aggregation(select, items, source.scope, source.aggregation, (where, binder))
    where = both(source.where, where)
    if _aggregates(select):
        return _aggregation(select, items, source.scope, source.scan, where)
    outputs = _projection_outputs(items, source.scope, branch, of_rows=of_rows)
    if select.args.get("distinct") is not None:
        return _distinct(items, outputs, source.scan, where)
    return Projection(source.scan, where, outputs)


def _aggregates(select: exp.Expression) -> bool:
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(
        (isinstance(node, exp.Anonymous) and str(node.this) in AGGREGATES) or own_aggregate(node) is not None
        for item in select.expressions
        for node in item.walk()
    )


# --- the select list ------------------------------------------------------------------------------------------------
def _expand(expressions: Sequence[exp.Expression], scope: Scope) -> list[_Item]:
    items: list[_Item] = []
    for node in expressions:
        position = position_of(node)
        if isinstance(node, exp.Star):
            items.extend(_all_columns(scope, None, position))
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            items.extend(_all_columns(scope, [str(part.this) for part in node.parts[:-1]], position))
        elif isinstance(node, exp.Alias):
            items.append(_Item(node.this, None, str(node.args["alias"].this), position_of(node.this) or position))
        else:
            items.append(_Item(node, None, None, position))
    if len(items) > limits.COLUMNS_MAX:
        raise SqlError(sqlstates.TOO_MANY_COLUMNS, f"a relation can have at most {limits.COLUMNS_MAX} columns")
    return items


def _all_columns(scope: Scope, table: Sequence[str] | None, position: int | None) -> list[_Item]:
    return [_Item(None, each.expression, each.name, position) for each in scope.all_columns(table, position)]


def _bind(item: _Item, binder: Binder) -> Expression:
    if item.tree is not None:
        return binder.bind(item.tree)
    assert item.column is not None  # noqa: S101 - one of the two is always set
    binder.column_positions.setdefault(item.column, item.position)
    return item.column


def _name(item: _Item, bound: Expression) -> str:
    if item.name is not None:
        return item.name
    tree = item.tree
    if tree is None:
        return ""
    return default_name(tree)


def _typed(node: Expression, position: int | None) -> Expression:
    """A constant that nothing gave a type is text, as in PostgreSQL."""
    return coerce(node, t.VARCHAR, position) if is_unknown(node) else node


def _output(item: _Item, bound: Expression, name: str, seen: set[str] | None) -> Output:
    """``seen`` is None where names do not matter."""
    if bound.type.kind is Kind.INTERVAL:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'column "{name}" has type interval, which a continuous query cannot store',
            hint="Use EXTRACT(EPOCH FROM ...) to store its length in seconds.",
            position=item.position,
        )
    if seen is not None and name in seen:
        raise SqlError(
            sqlstates.DUPLICATE_COLUMN,
            f'column "{name}" specified more than once',
            hint="Give each column its own name with AS.",
            position=item.position,
        )
    if seen is not None:
        seen.add(name)
    return Output(name, bound.type, bound)


def _projection_outputs(
    items: Sequence[_Item], scope: Scope, branch: Branch | None, *, of_rows: bool
) -> tuple[Output, ...]:
    outputs: list[Output] = []
    seen: set[str] | None = None if branch is Branch.LATER else set()
    for item in items:
        bound = _bind(item, Binder(scope, "SELECT", of_rows=of_rows))
        if branch is None:
            bound = _typed(bound, item.position)
        outputs.append(_output(item, bound, _name(item, bound), seen))
    return tuple(outputs)


# --- GROUP BY -------------------------------------------------------------------------------------------------------
def _aggregation(
    select: exp.Expression, items: Sequence[_Item], scope: Scope, scan: Scan, where: Expression | None
) -> ContinuousPlan:
    calls = _Calls()
    group = grouping(select.args.get("group"), lambda node: _group_key(node, items, scope))
    finisher = Finisher(group.keys, scope, fixed=bool(group.sets))
    bound: list[_Bound] = []
    for item in items:
        binder = Binder(scope, "SELECT", calls.add, group.call)
        bound.append(_Bound(_typed(_bind(item, binder), item.position), binder, item.position))
    having = _bound_having(select, Binder(scope, "HAVING", calls.add, group.call))
    groups = Aggregation(scan, where, group.keys, tuple(calls.calls), (), None, grouping_sets=group.sets)
    if any(spark_computes(each.node) for each in (*bound, *([] if having is None else [having]))):
        return _over_groups(select, items, (bound, having), groups, finisher)
    outputs = _finished_outputs(items, bound, finisher)
    condition = None if having is None else _located(finisher, having)
    plan = replace(groups, keys=finisher.keys, outputs=outputs, having=condition, further=finisher.further)
    return _distinct_groups(select, items, plan, len(group.keys))


def _over_groups(
    select: exp.Expression,
    items: Sequence[_Item],
    bound: tuple[Sequence[_Bound], _Bound | None],
    groups: Aggregation,
    finisher: Finisher,
) -> ContinuousPlan:
    """Where Spark computes with the aggregates: a SELECT over the changes of the groups."""
    outputs, having = bound
    inside = groups.having
    if having is not None and not spark_computes(having.node):  # then it spares work
        inside, having = both(inside, _located(finisher, having)), None
    written = groups.keys
    further = groups.further + finisher.further
    groups = replace(groups, keys=finisher.keys, outputs=collected(groups.aggregates), having=inside, further=further)
    columns = tuple(ScopeColumn(output.name, output.expression) for output in groups.outputs)
    source = changes_of(Source(Scope((ScopeTable(columns),)), groups.scan), groups, select)
    over = OverGroups(finisher, written, [each.expression for each in source.scope.all_columns(None, None)])
    finished = _finished_outputs(items, outputs, over)
    where = None if having is None else _located(over, having)
    plan = Projection(source.scan, where, finished)
    keys = {each.expression for each in finished}
    wanted = {ColumnReference(each.type, each.name) for each in source.scan.columns[: len(source.scan.primary_key)]}
    if select.args.get("distinct") is None or wanted <= keys:
        return plan
    return _distinct(items, finished, source.scan, where)


def _over_aggregation(
    select: exp.Expression,
    items: Sequence[_Item],
    scope: Scope,
    inner: Aggregation,
    where: tuple[Expression | None, Binder],
) -> ContinuousPlan:
    """A SELECT over a sub-query that aggregates: other outputs and a further condition of the same groups."""
    finisher = Finisher(inner.keys, scope, fixed=bool(inner.grouping_sets))
    bound: list[_Bound] = []
    for item in items:
        binder = Binder(scope, "SELECT")
        bound.append(_Bound(_typed(_bind(item, binder), item.position), binder, item.position))
    condition, (where_node, where_binder) = None, where
    if where_node is not None:
        condition = _Bound(where_node, where_binder, position_of(select.args["where"].this))
    if any(spark_computes(each.node) for each in (*bound, *([] if condition is None else [condition]))):
        return _over_groups(select, items, (bound, condition), inner, finisher)
    outputs = _finished_outputs(items, bound, finisher)
    having = inner.having if condition is None else both(inner.having, _located(finisher, condition))
    further = inner.further + finisher.further
    plan = replace(inner, keys=finisher.keys, outputs=outputs, having=having, further=further)
    return _distinct_groups(select, items, plan, len(inner.keys))


def _distinct(items: Sequence[_Item], outputs: Sequence[Output], scan: Scan, where: Expression | None) -> Aggregation:
    """SELECT DISTINCT is GROUP BY all columns."""
    for item, output in zip(items, outputs, strict=True):
        _check_key(output.type, "SELECT DISTINCT", item.position)
    keys = tuple(dict.fromkeys(normalized_key(output.expression) for output in outputs))
    named = tuple(
        replace(output, expression=KeyReference(output.type, keys.index(normalized_key(output.expression))))
        for output in outputs
    )
    return Aggregation(scan, where, keys, (), named, None)


def _distinct_groups(select: exp.Expression, items: Sequence[_Item], plan: Aggregation, keys: int) -> Aggregation:
    """DISTINCT over groups changes nothing where all their ``keys`` are selected; else their rows are grouped again."""
    selected = {output.expression.index for output in plan.outputs if isinstance(output.expression, KeyReference)}
    if select.args.get("distinct") is None or selected >= set(range(keys + bool(plan.grouping_sets))):
        return plan
    columns = tuple(ScopeColumn(output.name, output.expression) for output in plan.outputs)
    source = changes_of(Source(Scope((ScopeTable(columns),)), plan.scan), plan, select)
    outputs = tuple(Output(each.name, each.type, each.expression) for each in source.scope.all_columns(None, None))
    return _distinct(items, outputs, source.scan, None)


def _bound_having(select: exp.Expression, binder: Binder) -> _Bound | None:
    node = select.args.get("having")
    if node is None:
        return None
    return _Bound(binder.condition(node.this, "HAVING"), binder, position_of(node.this))


def _finished_outputs(
    items: Sequence[_Item], bound: Sequence[_Bound], finisher: Finisher | OverGroups
) -> tuple[Output, ...]:
    outputs: list[Output] = []
    seen: set[str] = set()
    for item, each in zip(items, bound, strict=True):
        outputs.append(_output(item, _located(finisher, each), _name(item, each.node), seen))
    return tuple(outputs)


def _located(finisher: Finisher | OverGroups, bound: _Bound) -> Expression:
    try:
        return finisher.finish(bound.node, bound.binder.column_positions)
    except SqlError as error:
        error.position = error.position or bound.position
        raise


def _group_key(node: exp.Expression, items: Sequence[_Item], scope: Scope) -> Expression:
    position = position_of(node)
    item = _named_item(node, items, scope)
    binder = Binder(scope, "GROUP BY")
    bound = _bind(item, binder) if item is not None else binder.bind(node)
    bound = _typed(bound, position)
    _check_key(bound.type, "GROUP BY", position)
    return bound


def _check_key(type_: SqlType, clause: str, position: int | None) -> None:
    if type_.is_nested or type_.kind is Kind.INTERVAL:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{clause} a value of type {postgres_name(type_)} is not supported",
            hint="Use its parts." if clause == "SELECT DISTINCT" else "Group by its parts.",
            position=position,
        )


def _named_item(node: exp.Expression, items: Sequence[_Item], scope: Scope) -> _Item | None:
    """The select item that an ordinal or an output name means; a column of the source goes before an output name."""
    position = position_of(node)
    if isinstance(node, exp.Literal):
        if node.is_string or not str(node.this).isdigit():
            raise SqlError(sqlstates.SYNTAX_ERROR, "non-integer constant in GROUP BY", position=position)
        ordinal = int(str(node.this))
        if not 1 <= ordinal <= len(items):
            raise SqlError(
                sqlstates.INVALID_COLUMN_REFERENCE,
                f"GROUP BY position {ordinal} is not in select list",
                position=position,
            )
        return items[ordinal - 1]
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return None
    name = str(node.this.this)
    if scope.has_column(name):
        return None
    named = [item for item in items if item.name == name]
    if len(named) > 1:
        raise SqlError(sqlstates.AMBIGUOUS_COLUMN, f'GROUP BY "{name}" is ambiguous', position=position)
    return named[0] if named else None
