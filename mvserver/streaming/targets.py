"""A continuous query as the streaming room runs it: its plan, its state in DuckDB, and how its columns finish."""

from __future__ import annotations

from collections.abc import Callable
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

_MOMENTS = {
    Aggregate.VAR_POP: (False, False),
    Aggregate.VAR_SAMP: (True, False),
    Aggregate.STDDEV_POP: (False, True),
    Aggregate.STDDEV_SAMP: (True, True),
}
AVERAGE_SCALE_MIN = 6


@dataclass(frozen=True)
class MeasureCall:
    """A measure and what it is taken over; ``call`` gives argument and filter."""

    measure: StateMeasure
    call: AggregateCall


@dataclass(frozen=True)
class Target:
    """One subscriber's compiled form; ``calls`` belong to ``state.measures`` one by one (upsert mode)."""

    query_id: str
    view_id: str
    plan: ContinuousPlan
    state: UpsertState | AppendState
    calls: tuple[MeasureCall, ...] = ()

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
    calls = _measures(plan)
    state = UpsertState(
        table=table,
        key_types=tuple(lower_duckdb.duckdb_type(k.type) for k in plan.keys),
        measures=tuple(c.measure for c in calls),
    )
    return Target(query_id, view_id, plan, state, calls)


def _measures(plan: Aggregation) -> tuple[MeasureCall, ...]:
    found: list[MeasureCall] = []
    for call in plan.aggregates:
        for measure in _measures_of(call):
            candidate = MeasureCall(measure, call)
            if _index(found, candidate) is None:
                found.append(candidate)
    return tuple(found)


def _measures_of(call: AggregateCall) -> list[StateMeasure]:
    count = StateMeasure(Measure.COUNT, "BIGINT")
    if call.function is Aggregate.COUNT_ROWS:
        return [] if call.filter is None else [count]
    if call.function is Aggregate.COUNT:
        return [count]
    assert call.argument is not None  # noqa: S101 - only COUNT(*) has none
    kind = call.argument.type
    if call.function is Aggregate.SUM:
        return [StateMeasure(Measure.SUM, _sum_type(kind))]
    if call.function is Aggregate.AVG:
        return [StateMeasure(Measure.SUM, _average_sum_type(kind)), count]
    if call.function in (Aggregate.MIN, Aggregate.MAX):
        return [StateMeasure(Measure(call.function.value), lower_duckdb.duckdb_type(kind))]
    return [StateMeasure(Measure.MOMENTS, "DOUBLE")]


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
    inner += [f"{_finish(target, call)} AS a{i}" for i, call in enumerate(plan.aggregates)]
    key: Callable[[int], str] = "k{}".format
    aggregate: Callable[[int], str] = "a{}".format
    columns = ", ".join(
        f"CAST({lower_duckdb.lower(o.expression, key, aggregate)} AS {lower_duckdb.duckdb_type(o.type)}) AS {name}"
        for o, name in zip(plan.outputs, names, strict=True)
    )
    having = "" if plan.having is None else f" WHERE {lower_duckdb.lower(plan.having, key, aggregate)}"
    return f"SELECT {columns} FROM (SELECT {', '.join(inner) or '1'} FROM {source_text(target.state)}){having}"


def _finish(target: Target, call: AggregateCall) -> str:
    """The finished value of one aggregate over the state columns."""

    def column(measure: StateMeasure) -> str:
        index = _index(target.calls, MeasureCall(measure, call))
        return f"m{index}"

    if call.function is Aggregate.COUNT_ROWS and call.filter is None:
        return "n"
    measures = _measures_of(call)
    if call.function is Aggregate.AVG:
        total, count = column(measures[0]), column(measures[1])
        assert call.argument is not None  # noqa: S101 - AVG has one
        if call.argument.type.is_exact:
            return average_exact(total, call.argument.type.scale or 0, count, call.type.scale or 0)
        return f"{total} / nullif({count}, 0)"
    if call.function in _MOMENTS:
        sample, root = _MOMENTS[call.function]
        return variance(column(measures[0]), sample=sample, root=root)
    return f"CAST({column(measures[0])} AS {lower_duckdb.duckdb_type(call.type)})"
