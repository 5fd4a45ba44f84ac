"""Aggregates of users: a group's values are kept as those of ARRAY_AGG, and the function is called with their list.

DuckDB keeps and finishes the groups; only Spark can call the function. So a SELECT with such a call is two: one that
groups and collects, and one over the changes of its groups, which calls. So is any other that computes with aggregates
what DuckDB cannot finish (:func:`spark_computes`). Whatever becomes of the records of a group,
by late ones, retractions or deletions, its list is that of the records that count, and the answer is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mvserver import sqlstates
from mvserver.compiler import lower_duckdb
from mvserver.compiler.aggregates import AggregateText, aggregate_call
from mvserver.compiler.capabilities.lookup import call_operator
from mvserver.compiler.expressions import (
    AggregateReference,
    Call,
    ColumnReference,
    Expression,
    KeyReference,
    both,
    walk,
    with_children,
)
from mvserver.compiler.finishing import Finisher
from mvserver.compiler.own_functions import call_own
from mvserver.compiler.plans import AggregateCall, Output
from mvserver.errors import SqlError
from mvserver.java_functions.definition import JavaFunction


def own_aggregate_call(written: AggregateText, keep: Callable[[AggregateCall], Expression]) -> Expression:
    """The call of the function over the list of the group's values, which ``keep`` takes among the aggregates."""
    if written.order is not None:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f"{written.name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP",
            position=written.position,
        )
    if not written.arguments:
        raise SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"function {written.name}({'*' if written.arguments is None else ''}) does not exist",
            hint="An aggregate of one's own has the lists of its arguments: give it a column.",
            position=written.position,
        )
    call = call_own(written.path, written.arguments, written.position)
    assert isinstance(call, Call) and call.definition is not None  # noqa: S101, PT018 - the name is an aggregate's
    collected, constants = _split(call, written)
    condition = written.where
    if call.definition.strict:
        for each in collected:
            condition = both(condition, call_operator("is not null", (each,)))
    value = collected[0] if len(collected) == 1 else call_operator("packed values", collected)
    kept = keep(
        aggregate_call(
            AggregateText("array_agg", (value,), condition, distinct=written.distinct, position=written.position)
        )
    )
    return replace(call, arguments=(kept, *constants))


def _split(call: Call, written: AggregateText) -> tuple[Sequence[Expression], Sequence[Expression]]:
    """The arguments whose values are collected, and those that are handed over as they are: of an aggregate in Java,
    which is told them before it has any value."""
    if not isinstance(call.definition, JavaFunction):
        return call.arguments, ()
    for each in call.arguments[1:]:
        if any(isinstance(part, ColumnReference) for part in walk(each)):
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f"the arguments of aggregate {written.name} behind the first must be constants",
                hint="It is told them before it has any value of a group.",
                position=written.position,
            )
    return call.arguments[:1], call.arguments[1:]


def spark_computes(node: Expression) -> bool:
    """Whether what is known of a whole group goes into something that DuckDB cannot finish, as a function of a user."""
    return any(
        not lower_duckdb.can_finish_node(part) and any(isinstance(below, AggregateReference) for below in walk(part))
        for part in walk(node)
    )


def collected(calls: Sequence[AggregateCall]) -> tuple[Output, ...]:
    """What the groups give beside their keys."""
    return tuple(Output(f"a{i}", call.type, AggregateReference(call.type, i)) for i, call in enumerate(calls))


class OverGroups:
    """Outputs and HAVING over the rows of groups: keys and aggregates are columns there, and Spark evaluates all."""

    def __init__(self, finisher: Finisher, group: Sequence[Expression], aggregates: Sequence[Expression]) -> None:
        """``aggregates`` are the columns of the outputs that :func:`collected` made."""
        self._finisher = finisher
        self._group = group
        self._aggregates = aggregates

    def finish(self, node: Expression, positions: Mapping[Expression, int | None]) -> Expression:
        self._finisher.check_grouped(node, positions)
        return self._rewrite(node)

    def _rewrite(self, node: Expression) -> Expression:
        if node in self._group:
            return _key(node, self._group.index(node))
        if isinstance(node, KeyReference):  # the number of a grouping set
            return _key(node, node.index)
        if isinstance(node, AggregateReference):
            return self._aggregates[node.index]
        return with_children(node, self._rewrite)


def _key(node: Expression, index: int) -> ColumnReference:
    return ColumnReference(node.type, f"key {index}")
