"""A bound SELECT: projection or aggregation, what GROUP BY means, which columns come out and under which names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.compiler.aggregates import AGGREGATES, AggregateText, aggregate_call
from mvserver.compiler.binder import Binder
from mvserver.compiler.coercion import coerce
from mvserver.compiler.expressions import AggregateReference, ColumnReference, Expression
from mvserver.compiler.finishing import Finisher
from mvserver.compiler.literals import is_unknown
from mvserver.compiler.plans import AggregateCall, Aggregation, ContinuousPlan, Output, Projection, Scan
from mvserver.compiler.scope import Scope
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.nodes import default_name, position_of
from mvserver.sql.types import Kind


@dataclass(frozen=True)
class _Item:
    """An item of the select list after ``*`` is written out: a tree, or a column that ``*`` stood for."""

    tree: exp.Expression | None
    column: ColumnReference | None
    name: str | None
    position: int | None


class _Calls:
    """The aggregate calls of a SELECT, each kept once."""

    def __init__(self) -> None:
        self.calls: list[AggregateCall] = []

    def add(self, written: AggregateText) -> Expression:
        call = aggregate_call(written)
        if call not in self.calls:
            self.calls.append(call)
        return AggregateReference(call.type, self.calls.index(call))


def analyze(select: exp.Expression, scope: Scope, scan: Scan) -> ContinuousPlan:
    where_node = select.args.get("where")
    where = Binder(scope, "WHERE").condition(where_node.this, "WHERE") if where_node is not None else None
    items = _expand(select.expressions, scope)
    if not _aggregates(select):
        return Projection(scan, where, _projection_outputs(items, scope))
    return _aggregation(select, items, scope, scan, where)


def _aggregates(select: exp.Expression) -> bool:
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(
        isinstance(node, exp.Anonymous) and str(node.this) in AGGREGATES
        for item in select.expressions
        for node in item.walk()
    )


# --- the select list ------------------------------------------------------------------------------------------------
def _expand(expressions: Sequence[exp.Expression], scope: Scope) -> list[_Item]:
    items: list[_Item] = []
    for node in expressions:
        position = position_of(node)
        if isinstance(node, exp.Star):
            items.extend(_all_columns(scope, position))
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            parts = [str(part.this) for part in node.parts[:-1]]
            if not scope.names_table(parts):
                raise SqlError(
                    sqlstates.UNDEFINED_TABLE,
                    f'missing FROM-clause entry for table "{parts[-1]}"',
                    position=position,
                )
            items.extend(_all_columns(scope, position))
        elif isinstance(node, exp.Alias):
            items.append(_Item(node.this, None, str(node.args["alias"].this), position_of(node.this) or position))
        else:
            items.append(_Item(node, None, None, position))
    if len(items) > limits.COLUMNS_MAX:
        raise SqlError(sqlstates.TOO_MANY_COLUMNS, f"a relation can have at most {limits.COLUMNS_MAX} columns")
    return items


def _all_columns(scope: Scope, position: int | None) -> list[_Item]:
    return [_Item(None, ColumnReference(column.type, column.name), column.name, position) for column in scope.columns]


def _bind(item: _Item, binder: Binder) -> Expression:
    if item.tree is not None:
        return binder.bind(item.tree)
    assert item.column is not None  # noqa: S101 - one of the two is always set
    binder.column_positions.setdefault(item.column.name, item.position)
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


def _output(item: _Item, bound: Expression, name: str, seen: set[str]) -> Output:
    if bound.type.kind is Kind.INTERVAL:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'column "{name}" has type interval, which a continuous query cannot store',
            hint="Use EXTRACT(EPOCH FROM ...) to store its length in seconds.",
            position=item.position,
        )
    if name in seen:
        raise SqlError(
            sqlstates.DUPLICATE_COLUMN,
            f'column "{name}" specified more than once',
            hint="Give each column its own name with AS.",
            position=item.position,
        )
    seen.add(name)
    return Output(name, bound.type, bound)


def _projection_outputs(items: Sequence[_Item], scope: Scope) -> tuple[Output, ...]:
    outputs: list[Output] = []
    seen: set[str] = set()
    for item in items:
        bound = _typed(_bind(item, Binder(scope, "SELECT")), item.position)
        outputs.append(_output(item, bound, _name(item, bound), seen))
    return tuple(outputs)


# --- GROUP BY -------------------------------------------------------------------------------------------------------
def _aggregation(
    select: exp.Expression, items: Sequence[_Item], scope: Scope, scan: Scan, where: Expression | None
) -> Aggregation:
    calls = _Calls()
    group = _group_keys(select, items, scope)
    finisher = Finisher(group, scope.table_name)
    outputs: list[Output] = []
    seen: set[str] = set()
    for item in items:
        binder = Binder(scope, "SELECT", calls.add)
        bound = _typed(_bind(item, binder), item.position)
        finished = _located(finisher, bound, binder, item.position)
        outputs.append(_output(item, finished, _name(item, bound), seen))
    having = _having(select, scope, calls, finisher)
    return Aggregation(scan, where, finisher.keys, tuple(calls.calls), tuple(outputs), having)


def _having(select: exp.Expression, scope: Scope, calls: _Calls, finisher: Finisher) -> Expression | None:
    node = select.args.get("having")
    if node is None:
        return None
    binder = Binder(scope, "HAVING", calls.add)
    bound = binder.condition(node.this, "HAVING")
    return _located(finisher, bound, binder, position_of(node.this))


def _located(finisher: Finisher, bound: Expression, binder: Binder, position: int | None) -> Expression:
    try:
        return finisher.finish(bound, binder.column_positions)
    except SqlError as error:
        error.position = error.position or position
        raise


def _group_keys(select: exp.Expression, items: Sequence[_Item], scope: Scope) -> tuple[Expression, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    keys: list[Expression] = []
    for node in group.expressions:
        key = _group_key(node, items, scope)
        if key not in keys:
            keys.append(key)
    return tuple(keys)


def _group_key(node: exp.Expression, items: Sequence[_Item], scope: Scope) -> Expression:
    position = position_of(node)
    item = _named_item(node, items, scope)
    binder = Binder(scope, "GROUP BY")
    bound = _bind(item, binder) if item is not None else binder.bind(node)
    bound = _typed(bound, position)
    if bound.type.is_nested or bound.type.kind is Kind.INTERVAL:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"GROUP BY a value of type {postgres_name(bound.type)} is not supported",
            hint="Group by its parts.",
            position=position,
        )
    return bound


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
    if scope.column(name) is not None:
        return None
    named = [item for item in items if item.name == name]
    if len(named) > 1:
        raise SqlError(sqlstates.AMBIGUOUS_COLUMN, f'GROUP BY "{name}" is ambiguous', position=position)
    return named[0] if named else None
