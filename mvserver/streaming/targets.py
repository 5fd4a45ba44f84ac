"""A continuous query as the streaming room runs it: its plan, its state in DuckDB, and how its columns finish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mvserver.compiler import lower_duckdb
from mvserver.compiler.changelogs import over_changelog
from mvserver.compiler.plans import TIMED, Aggregate, AggregateCall, Aggregation, ContinuousPlan, Projection, Scan
from mvserver.sql.quoting import quoted
from mvserver.sql.types import DOUBLE, Kind, SqlType
from mvserver.streaming.contributions import Contributions, argument_type
from mvserver.streaming.windowing import aging_of, windowing_of
from spark_sinks.duckdb.changelog import KeyedRows, RetractedState
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.outbox import Outbox
from spark_sinks.duckdb.sent_rows import SentRows
from spark_sinks.duckdb.state import (
    ROWS,
    AppendState,
    Measure,
    State,
    StateMeasure,
    UpsertState,
    average_exact,
    source_text,
    variance,
)
from spark_sinks.duckdb.value_tables import Ordered, OrderedValue, ValueTable, ordered_values
from spark_sinks.duckdb.windows import shown

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
    # The least or greatest pair of time and value: of equal times the value decides, not the order of arrival.
    Aggregate.FIRST_VALUE: Measure.MIN,
    Aggregate.LAST_VALUE: Measure.MAX,
}
_ORDERED = {
    Aggregate.PERCENTILE_CONT: Ordered.CONTINUOUS,
    Aggregate.PERCENTILE_DISC: Ordered.DISCRETE,
    Aggregate.MODE: Ordered.MOST_FREQUENT,
    Aggregate.STRING_AGG: Ordered.JOINED,
    Aggregate.ARRAY_AGG: Ordered.COLLECTED,
    Aggregate.TOP: Ordered.GREATEST,
    Aggregate.CARDINALITY: Ordered.CARDINALITY,
}


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
    state: State
    calls: tuple[MeasureCall, ...] = ()
    value_calls: tuple[AggregateCall, ...] = ()
    delivered: bool = False  # a push query's: its rows are handed on and not kept
    outbox: Outbox | None = None  # of a query whose rows are also written elsewhere

    @property
    def groups(self) -> UpsertState:
        """The state that an aggregation's columns are finished from."""
        state = self.state.groups if isinstance(self.state, RetractedState) else self.state
        assert isinstance(state, UpsertState)  # noqa: S101 - built together
        return state

    @property
    def tables(self) -> tuple[str, ...]:
        """All that it has in DuckDB."""
        return (*self.state.tables, *(() if self.outbox is None else (self.outbox.table,)))

    @property
    def view_statement(self) -> str:
        """CREATE VIEW of the user's columns over the state."""
        shown = self.state.shown if isinstance(self.state, SentRows) else _finished_select(self)
        return f'CREATE OR REPLACE VIEW "_views"."{self.view_id}" AS {shown}'


def build_target(query_id: str, view_id: str, version: int, plan: ContinuousPlan) -> Target:
    """The state's tables are named by the view's UUID and definition version."""
    table = f"{view_id}_{version}"
    if isinstance(plan, Projection):
        types = tuple(lower_duckdb.duckdb_type(o.type) for o in plan.outputs)
        if over_changelog(plan):
            return Target(query_id, view_id, plan, _keyed_rows(table, plan.scan, types))
        return Target(query_id, view_id, plan, AppendState(table, types, aging_of(plan)))
    value_calls = _value_calls(plan)
    calls = _measures(plan, value_calls)
    state = UpsertState(
        table=table,
        key_types=(
            *(lower_duckdb.duckdb_type(k.type) for k in plan.keys),
            *(["INTEGER"] if plan.grouping_sets else []),  # the number of the set
        ),
        measures=tuple(c.measure for c in calls),
        values=tuple(_value_table(call) for call in value_calls),
        totals=tuple(number for number, members in enumerate(plan.grouping_sets) if not members),
        windowing=windowing_of(plan),
    )
    if over_changelog(plan):
        return _retracted(Target(query_id, view_id, plan, state, calls, value_calls))
    return Target(query_id, view_id, plan, state, calls, value_calls)


def _retracted(target: Target) -> Target:
    """The same over a changelog, with what each of its rows gives."""
    groups, scan = target.groups, target.plan.scan
    kept = Contributions(len(groups.key_types))
    arguments = tuple(kept.argument(call.call) for call in target.calls)
    values = tuple(kept.values(call, timed=keeps_times(call)) for call in target.value_calls)
    types = (*groups.key_types, *(each.type for each in kept.found))
    rows = _keyed_rows(f"{groups.table}{ROWS}", scan, types)
    state = RetractedState(groups, rows, arguments, values)
    return replace(target, state=state)


def _keyed_rows(table: str, scan: Scan, types: tuple[str, ...]) -> KeyedRows:
    """A stored changelog has no NULL in its key; what the server makes may have."""
    columns = {column.name: column.type for column in scan.columns}
    keys = tuple(lower_duckdb.duckdb_type(columns[name]) for name in scan.primary_key)
    ordinals = len(scan.unnests)
    return KeyedRows(table, (*keys, *["BIGINT"] * ordinals), types, scan.derived is not None, ordinals)


def _value_table(call: AggregateCall) -> ValueTable:
    assert call.argument is not None  # noqa: S101 - COUNT(*) keeps no values
    kind = lower_duckdb.duckdb_type(call.argument.type)
    return ValueTable(kind, call.function in _ORDERED, keeps_times(call), call.function is Aggregate.ARRAY_AGG)


def keeps_times(call: AggregateCall) -> bool:
    """Whether the values of a call's value table are kept with their event times."""
    return call.function in (Aggregate.STRING_AGG, Aggregate.ARRAY_AGG) and not call.distinct


def _value_calls(plan: Aggregation) -> tuple[AggregateCall, ...]:
    """One call for each value table: equal arguments under equal filters share one."""
    found: list[AggregateCall] = []
    for call in plan.aggregates:
        # Over a changelog distinct values are found anew among the rows of a group.
        needed = call.function in _ORDERED or (call.distinct and not over_changelog(plan))
        if needed and _values_of(found, call) is None:
            found.append(call)
    return tuple(found)


def _values_of(value_calls: Sequence[AggregateCall], wanted: AggregateCall) -> int | None:
    """The value table of a call, None where it has none."""

    def same(call: AggregateCall) -> bool:
        counted = (call.function in _ORDERED) == (wanted.function in _ORDERED)
        timed = keeps_times(call) == keeps_times(wanted)
        nulls = (call.function is Aggregate.ARRAY_AGG) == (wanted.function is Aggregate.ARRAY_AGG)
        return counted and timed and nulls and call.argument == wanted.argument and call.filter == wanted.filter

    if not wanted.distinct and wanted.function not in _ORDERED:
        return None
    return next((i for i, call in enumerate(value_calls) if same(call)), None)


def _measures(plan: Aggregation, value_calls: Sequence[AggregateCall]) -> tuple[MeasureCall, ...]:
    found: list[MeasureCall] = []
    for call in plan.aggregates:
        for measure in _measures_of(call, _values_of(value_calls, call), retracted=over_changelog(plan)):
            candidate = MeasureCall(measure, call)
            if _index(found, candidate) is None:
                found.append(candidate)
    return tuple(found)


def _measures_of(call: AggregateCall, values: int | None, *, retracted: bool) -> list[StateMeasure]:
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
    if call.function in _EXTREMES:
        return [StateMeasure(_EXTREMES[call.function], argument_type(call))]
    if call.function in _ORDERED:
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


def _index(calls: list[MeasureCall] | tuple[MeasureCall, ...], wanted: MeasureCall) -> int | None:
    return next((i for i, c in enumerate(calls) if _same(c, wanted)), None)


def _finished_select(target: Target) -> str:
    plan = target.plan
    names = [quoted(output.name) for output in plan.outputs]
    if isinstance(plan, Projection):
        columns = ", ".join(f"c{i} AS {name}" for i, name in enumerate(names))
        return f"SELECT {columns} FROM {qualified(target.state.table)}"
    inner = list(target.groups.keys)
    inner += [f"{_finish(plan, target, call)} AS a{i}" for i, call in enumerate(plan.aggregates)]
    key: Callable[[int], str] = "k{}".format
    aggregate: Callable[[int], str] = "a{}".format
    columns = ", ".join(
        f"CAST({lower_duckdb.lower(o.expression, key, aggregate)} AS {lower_duckdb.duckdb_type(o.type)}) AS {name}"
        for o, name in zip(plan.outputs, names, strict=True)
    )
    having = "" if plan.having is None else f" WHERE {lower_duckdb.lower(plan.having, key, aggregate)}"
    rows = f"{_source(plan, target)}{_closed(target)}"
    return f"SELECT {columns} FROM (SELECT {', '.join(inner) or '1'} FROM {rows}){having}"


def _closed(target: Target) -> str:
    """Where a view shows closed windows only: its other rows are kept and not seen."""
    windowing = target.groups.windowing
    if windowing is None or not windowing.final:
        return ""
    return f" WHERE {shown(target.query_id, windowing)}"


def _source(plan: Aggregation, target: Target) -> str:
    """The state's rows, each with what is computed from its counted values."""
    groups = target.groups
    source = source_text(groups)
    for index, values in enumerate(groups.values):
        if not values.counted:
            continue
        wanted = [
            (f"o{i}", _ordered_value(call))
            for i, call in enumerate(plan.aggregates)
            if call.function in _ORDERED and _values_of(target.value_calls, call) == index
        ]
        prefix = f"g{index}_"
        ordered = ordered_values(groups.table, index, groups.key_types, values, wanted, prefix)
        same = " AND ".join(f"{key} IS NOT DISTINCT FROM {prefix}{i}" for i, key in enumerate(groups.keys))
        source += f" LEFT JOIN {ordered} ON {same or 'true'}"
    return source


def _ordered_value(call: AggregateCall) -> OrderedValue:
    kind = _ORDERED[call.function]
    return OrderedValue(
        kind,
        fraction=call.fraction or 0.0,
        descending=call.descending,
        separator=call.separator or "",
        once=call.distinct,
        limit=call.limit or 0,
    )


def _finish(plan: Aggregation, target: Target, call: AggregateCall) -> str:
    """The finished value of one aggregate over the state columns."""

    def column(measure: StateMeasure) -> str:
        index = _index(target.calls, MeasureCall(measure, call))
        return f"m{index}"

    if call.function is Aggregate.COUNT_ROWS and call.filter is None:
        return "n"
    if call.function in _ORDERED:
        value = f"CAST(o{plan.aggregates.index(call)} AS {lower_duckdb.duckdb_type(call.type)})"
        return f"coalesce({value}, 0)" if call.function is Aggregate.CARDINALITY else value  # nothing seen counts 0
    measures = _measures_of(call, _values_of(target.value_calls, call), retracted=over_changelog(plan))
    if call.function is Aggregate.AVG:
        total, count = column(measures[0]), column(measures[1])
        assert call.argument is not None  # noqa: S101 - AVG has one
        if call.argument.type.is_exact:
            return average_exact(total, call.argument.type.scale or 0, count, call.type.scale or 0)
        return f"{total} / nullif({count}, 0)"
    if call.function in _MOMENTS:
        sample, root = _MOMENTS[call.function]
        return variance(column(measures[0]), sample=sample, root=root)
    if call.function in TIMED:
        return f"CAST(struct_extract({column(measures[0])}, 'v') AS {lower_duckdb.duckdb_type(call.type)})"
    value = f"CAST({column(measures[0])} AS {lower_duckdb.duckdb_type(call.type)})"
    return f"CASE WHEN {column(measures[1])} > 0 THEN {value} END" if len(measures) > 1 else value
