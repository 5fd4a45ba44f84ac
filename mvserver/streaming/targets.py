"""A continuous query as the streaming room runs it: its plan, its state in DuckDB, and how its columns finish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mvserver.compiler import lower_duckdb
from mvserver.compiler.plans import Aggregate, AggregateCall, Aggregation, ContinuousPlan, Projection
from mvserver.sql.types import DOUBLE, Kind, SqlType
from spark_sinks.duckdb.state import (
    AppendState,
    Measure,
    StateMeasure,
    UpsertState,
    average_exact,
    source_text,
    variance,
)
from spark_sinks.duckdb.value_tables import Ordered, OrderedValue, ValueTable, ordered_values

_MOMENTS = {
    Aggregate.VAR_POP: (False, False),
    Aggregate.VAR_SAMP: (True, False),
    Aggregate.STDDEV_POP: (False, True),
    Aggregate.STDDEV_SAMP: (True, True),
}
_EXTREMES = {
    Aggregate.MIN: Measure.MIN,
    Aggregate.MAX: Measure.MAX,
    Aggregate.BOOL_AND: Measure.MIN,
    Aggregate.BOOL_OR: Measure.MAX,
}
_TIMED = {Aggregate.FIRST_VALUE: Measure.MIN, Aggregate.LAST_VALUE: Measure.MAX}
_ORDERED = {
    Aggregate.PERCENTILE_CONT: Ordered.CONTINUOUS,
    Aggregate.PERCENTILE_DISC: Ordered.DISCRETE,
    Aggregate.MODE: Ordered.MOST_FREQUENT,
    Aggregate.STRING_AGG: Ordered.JOINED,
}
AVERAGE_SCALE_MIN = 6


@dataclass(frozen=True)
class MeasureCall:
    """A measure and what it is taken over; ``call`` gives argument and filter."""

    measure: StateMeasure
    call: AggregateCall


@dataclass(frozen=True)
class Target:
    """One subscriber's compiled form. In upsert mode ``calls`` belong to ``state.measures`` one by one, and
    ``value_calls``, which give argument and filter, to ``state.values``."""

    query_id: str
    view_id: str
    plan: ContinuousPlan
    state: UpsertState | AppendState
    calls: tuple[MeasureCall, ...] = ()
    value_calls: tuple[AggregateCall, ...] = ()

    @property
    def view_statement(self) -> str:
        """CREATE VIEW of the user's columns over the state."""
        return f'CREATE OR REPLACE VIEW "_views"."{self.view_id}" AS {_finished_select(self)}'


def build_target(query_id: str, view_id: str, version: int, plan: ContinuousPlan) -> Target:
    """The state's tables are named by the view's UUID and definition version."""
    table = f"{view_id}_{version}"
    if isinstance(plan, Projection):
        types = tuple(lower_duckdb.duckdb_type(o.type) for o in plan.outputs)
        return Target(query_id, view_id, plan, AppendState(table, types))
    value_calls = _value_calls(plan)
    calls = _measures(plan, value_calls)
    state = UpsertState(
        table=table,
        key_types=tuple(lower_duckdb.duckdb_type(k.type) for k in plan.keys),
        measures=tuple(c.measure for c in calls),
        values=tuple(_value_table(call) for call in value_calls),
    )
    return Target(query_id, view_id, plan, state, calls, value_calls)


def _value_table(call: AggregateCall) -> ValueTable:
    assert call.argument is not None  # noqa: S101 - COUNT(*) keeps no values
    return ValueTable(lower_duckdb.duckdb_type(call.argument.type), call.function in _ORDERED, keeps_times(call))


def keeps_times(call: AggregateCall) -> bool:
    """Whether the values of a call's value table are kept with their event times."""
    return call.function is Aggregate.STRING_AGG and not call.distinct


def _value_calls(plan: Aggregation) -> tuple[AggregateCall, ...]:
    """One call for each value table: equal arguments under equal filters share one."""
    found: list[AggregateCall] = []
    for call in plan.aggregates:
        if (call.distinct or call.function in _ORDERED) and _values_of(found, call) is None:
            found.append(call)
    return tuple(found)


def _values_of(value_calls: Sequence[AggregateCall], wanted: AggregateCall) -> int | None:
    """The value table of a call, None where it has none."""

    def same(call: AggregateCall) -> bool:
        counted = (call.function in _ORDERED) == (wanted.function in _ORDERED)
        timed = keeps_times(call) == keeps_times(wanted)
        return counted and timed and call.argument == wanted.argument and call.filter == wanted.filter

    if not wanted.distinct and wanted.function not in _ORDERED:
        return None
    return next((i for i, call in enumerate(value_calls) if same(call)), None)


def _measures(plan: Aggregation, value_calls: Sequence[AggregateCall]) -> tuple[MeasureCall, ...]:
    found: list[MeasureCall] = []
    for call in plan.aggregates:
        for measure in _measures_of(call, _values_of(value_calls, call)):
            candidate = MeasureCall(measure, call)
            if _index(found, candidate) is None:
                found.append(candidate)
    return tuple(found)


def _measures_of(call: AggregateCall, values: int | None) -> list[StateMeasure]:
    count = StateMeasure(Measure.COUNT, "BIGINT", values)
    if call.function is Aggregate.COUNT_ROWS:
        return [] if call.filter is None else [count]
    if call.function is Aggregate.COUNT:
        return [count]
    assert call.argument is not None  # noqa: S101 - only COUNT(*) has none
    kind = call.argument.type
    if call.function is Aggregate.SUM:
        return [StateMeasure(Measure.SUM, _sum_type(kind), values)]
    if call.function is Aggregate.AVG:
        return [StateMeasure(Measure.SUM, _average_sum_type(kind), values), count]
    if call.function in _EXTREMES:
        return [StateMeasure(_EXTREMES[call.function], lower_duckdb.duckdb_type(kind))]
    if call.function in _TIMED:
        # The least or greatest pair of time and value: of equal times the value decides, not the order of arrival.
        return [StateMeasure(_TIMED[call.function], f"STRUCT(t BIGINT, v {lower_duckdb.duckdb_type(kind)})")]
    if call.function in _ORDERED:
        return []
    return [StateMeasure(Measure.MOMENTS, "DOUBLE", values)]


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


def _index(calls: list[MeasureCall] | tuple[MeasureCall, ...], wanted: MeasureCall) -> int | None:
    return next((i for i, c in enumerate(calls) if _same(c, wanted)), None)


def _finished_select(target: Target) -> str:
    plan = target.plan
    names = ['"' + output.name.replace('"', '""') + '"' for output in plan.outputs]
    if isinstance(plan, Projection):
        columns = ", ".join(f"c{i} AS {name}" for i, name in enumerate(names))
        return f'SELECT {columns} FROM "_state"."{target.state.table}"'
    assert isinstance(target.state, UpsertState)  # noqa: S101 - built together
    inner = [f"k{i}" for i in range(len(plan.keys))]
    inner += [f"{_finish(plan, target, call)} AS a{i}" for i, call in enumerate(plan.aggregates)]
    key: Callable[[int], str] = "k{}".format
    aggregate: Callable[[int], str] = "a{}".format
    columns = ", ".join(
        f"CAST({lower_duckdb.lower(o.expression, key, aggregate)} AS {lower_duckdb.duckdb_type(o.type)}) AS {name}"
        for o, name in zip(plan.outputs, names, strict=True)
    )
    having = "" if plan.having is None else f" WHERE {lower_duckdb.lower(plan.having, key, aggregate)}"
    return f"SELECT {columns} FROM (SELECT {', '.join(inner) or '1'} FROM {_source(plan, target)}){having}"


def _source(plan: Aggregation, target: Target) -> str:
    """The state's rows, each with what is computed from its counted values."""
    assert isinstance(target.state, UpsertState)  # noqa: S101 - an aggregation's
    source = source_text(target.state)
    for index, values in enumerate(target.state.values):
        if not values.counted:
            continue
        wanted = [
            (f"o{i}", _ordered_value(call))
            for i, call in enumerate(plan.aggregates)
            if call.function in _ORDERED and _values_of(target.value_calls, call) == index
        ]
        prefix = f"g{index}_"
        ordered = ordered_values(target.state.table, index, target.state.key_types, values, wanted, prefix)
        same = " AND ".join(f"{key} IS NOT DISTINCT FROM {prefix}{i}" for i, key in enumerate(target.state.keys))
        source += f" LEFT JOIN {ordered} ON {same or 'true'}"
    return source


def _ordered_value(call: AggregateCall) -> OrderedValue:
    kind = _ORDERED[call.function]
    return OrderedValue(kind, call.fraction or 0.0, call.descending, call.separator or "", call.distinct)


def _finish(plan: Aggregation, target: Target, call: AggregateCall) -> str:
    """The finished value of one aggregate over the state columns."""

    def column(measure: StateMeasure) -> str:
        index = _index(target.calls, MeasureCall(measure, call))
        return f"m{index}"

    if call.function is Aggregate.COUNT_ROWS and call.filter is None:
        return "n"
    if call.function in _ORDERED:
        return f"CAST(o{plan.aggregates.index(call)} AS {lower_duckdb.duckdb_type(call.type)})"
    measures = _measures_of(call, _values_of(target.value_calls, call))
    if call.function is Aggregate.AVG:
        total, count = column(measures[0]), column(measures[1])
        assert call.argument is not None  # noqa: S101 - AVG has one
        if call.argument.type.is_exact:
            return average_exact(total, call.argument.type.scale or 0, count, call.type.scale or 0)
        return f"{total} / nullif({count}, 0)"
    if call.function in _MOMENTS:
        sample, root = _MOMENTS[call.function]
        return variance(column(measures[0]), sample=sample, root=root)
    if call.function in _TIMED:
        return f"CAST(struct_extract({column(measures[0])}, 'v') AS {lower_duckdb.duckdb_type(call.type)})"
    return f"CAST({column(measures[0])} AS {lower_duckdb.duckdb_type(call.type)})"
