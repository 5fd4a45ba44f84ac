"""The state of a plan's aggregates: measures that merge, and values that are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mvserver.compiler import lower_duckdb
from mvserver.compiler.changelogs import over_changelog
from mvserver.compiler.plans import Aggregate, AggregateCall, Aggregation
from mvserver.sql.types import DOUBLE, Kind, SqlType
from mvserver.views.contributions import argument_type
from spark_sinks.duckdb.state.state import Measure, StateMeasure
from spark_sinks.duckdb.state.value_tables import Ordered, ValueTable

MOMENTS = {
    Aggregate.VAR_POP: (False, False),
    Aggregate.VAR_SAMP: (True, False),
    Aggregate.STDDEV_POP: (False, True),
    Aggregate.STDDEV_SAMP: (True, True),
}
EXTREMES = {
    Aggregate.MIN: Measure.MIN,
    Aggregate.MAX: Measure.MAX,
    Aggregate.BOOL_AND: Measure.MIN,
    Aggregate.BOOL_OR: Measure.MAX,
    # The least or greatest pair of time and value: of equal times the value decides, not the order of arrival.
    Aggregate.FIRST_VALUE: Measure.MIN,
    Aggregate.LAST_VALUE: Measure.MAX,
}
ORDERED = {
    Aggregate.PERCENTILE_CONT: Ordered.CONTINUOUS,
    Aggregate.PERCENTILE_DISC: Ordered.DISCRETE,
    Aggregate.MODE: Ordered.MOST_FREQUENT,
    Aggregate.STRING_AGG: Ordered.JOINED,
    Aggregate.ARRAY_AGG: Ordered.COLLECTED,
    Aggregate.TOP: Ordered.GREATEST,
    Aggregate.BOTTOM: Ordered.LEAST,
    Aggregate.FREQUENT: Ordered.MOST_OFTEN,
    Aggregate.RARE: Ordered.LEAST_OFTEN,
    Aggregate.CARDINALITY: Ordered.CARDINALITY,
}


@dataclass(frozen=True)
class MeasureCall:
    """A measure and what it is taken over; ``call`` gives argument and filter."""

    measure: StateMeasure
    call: AggregateCall


def value_table(call: AggregateCall) -> ValueTable:
    assert call.argument is not None  # noqa: S101 - COUNT(*) keeps no values
    kind = lower_duckdb.duckdb_type(call.argument.type)
    return ValueTable(kind, call.function in ORDERED, keeps_times(call), call.function is Aggregate.ARRAY_AGG)


def keeps_times(call: AggregateCall) -> bool:
    """Whether the values of a call's value table are kept with their event times."""
    return call.function in (Aggregate.STRING_AGG, Aggregate.ARRAY_AGG) and not call.distinct


def value_calls_of(plan: Aggregation) -> tuple[AggregateCall, ...]:
    """One call for each value table: equal arguments under equal filters share one."""
    found: list[AggregateCall] = []
    for call in plan.aggregates:
        # Over a changelog distinct values are found anew among the rows of a group.
        needed = call.function in ORDERED or (call.distinct and not over_changelog(plan))
        if needed and values_of(found, call) is None:
            found.append(call)
    return tuple(found)


def values_of(value_calls: Sequence[AggregateCall], wanted: AggregateCall) -> int | None:
    """The value table of a call, None where it has none."""

    def same(call: AggregateCall) -> bool:
        counted = (call.function in ORDERED) == (wanted.function in ORDERED)
        timed = keeps_times(call) == keeps_times(wanted)
        nulls = (call.function is Aggregate.ARRAY_AGG) == (wanted.function is Aggregate.ARRAY_AGG)
        return counted and timed and nulls and call.argument == wanted.argument and call.filter == wanted.filter

    if not wanted.distinct and wanted.function not in ORDERED:
        return None
    return next((i for i, call in enumerate(value_calls) if same(call)), None)


def measures(plan: Aggregation, value_calls: Sequence[AggregateCall]) -> tuple[MeasureCall, ...]:
    found: list[MeasureCall] = []
    for call in plan.aggregates:
        for measure in measures_of(call, values_of(value_calls, call), retracted=over_changelog(plan)):
            candidate = MeasureCall(measure, call)
            if index_of(found, candidate) is None:
                found.append(candidate)
    return tuple(found)


def measures_of(call: AggregateCall, values: int | None, *, retracted: bool) -> list[StateMeasure]:
    distinct = retracted and call.distinct
    count = StateMeasure(Measure.COUNT, "BIGINT", values, distinct)
    if call.function is Aggregate.COUNT_ROWS:
        return [] if call.filter is None else [count]
    if call.function is Aggregate.COUNT:
        return [count]
    assert call.argument is not None  # noqa: S101 - only COUNT(*) has none
    kind = call.argument.type
    if call.function is Aggregate.SUM:
        total = StateMeasure(Measure.SUM, _sum_type(kind), values, distinct)
        return [total, count] if retracted else [total]  # what is left when all is taken back is no sum
    if call.function is Aggregate.AVG:
        return [StateMeasure(Measure.SUM, _average_sum_type(kind), values, distinct), count]
    if call.function in EXTREMES:
        return [StateMeasure(EXTREMES[call.function], argument_type(call))]
    if call.function in ORDERED:
        return []
    return [StateMeasure(Measure.MOMENTS, "DOUBLE", values, distinct)]


def _sum_type(kind: SqlType) -> str:
    """Overflow of the merged value is then DuckDB's own error: the view fails by name, and never wraps."""
    if kind.kind is Kind.BIGINT:
        return "DECIMAL(38, 0)"
    if kind.is_integer:
        return "BIGINT"
    if kind.kind is Kind.DECIMAL:
        return f"DECIMAL(38, {kind.scale})"
    return lower_duckdb.duckdb_type(DOUBLE)


def _average_sum_type(kind: SqlType) -> str:
    return f"DECIMAL(38, {kind.scale or 0})" if kind.is_exact else "DOUBLE"


def _same(a: MeasureCall, b: MeasureCall) -> bool:
    return a.measure == b.measure and a.call.argument == b.call.argument and a.call.filter == b.call.filter


def index_of(calls: list[MeasureCall] | tuple[MeasureCall, ...], wanted: MeasureCall) -> int | None:
    return next((i for i, c in enumerate(calls) if _same(c, wanted)), None)
