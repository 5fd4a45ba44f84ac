"""The layout of a query's view: the user's columns, as DuckDB finishes them from merged measures and counted values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from mvserver.compiler import lower_duckdb
from mvserver.compiler.changelogs import CHANGE_KIND, over_changelog, result_key
from mvserver.compiler.derived import contribution
from mvserver.compiler.expressions import AggregateReference, KeyReference
from mvserver.compiler.plans import TIMED, Aggregate, AggregateCall, Aggregation, GroupJoin, Output, Projection
from mvserver.quoting import quoted
from mvserver.views.measures import MOMENTS, ORDERED, MeasureCall, index_of, measures_of, values_of
from mvserver.views.targets import Target, target_of
from spark_sinks.duckdb.changes.capture import CHANGED_KEYS
from spark_sinks.duckdb.changes.change_outbox import ChangeOutbox
from spark_sinks.duckdb.changes.changelog import KeyedRows, RetractedState
from spark_sinks.duckdb.changes.group_logs import GroupLog
from spark_sinks.duckdb.changes.logs import Log
from spark_sinks.duckdb.changes.sent_rows import SentRows
from spark_sinks.duckdb.history.log import LoggedView
from spark_sinks.duckdb.history.telling_merge import OLD, ShownGroups, ShownRow, is_told
from spark_sinks.duckdb.joins.group_versions import STATE, GroupsMade
from spark_sinks.duckdb.layout import Finishing, NamedText, ViewLayout
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state.state import AppendState, StateMeasure, UpsertState, average_exact, source_text, variance
from spark_sinks.duckdb.state.value_tables import OrderedValue, ordered_values
from spark_sinks.duckdb.state.windows import shown

_KEY: Callable[[int], str] = "k{}".format
_AGGREGATE: Callable[[int], str] = "a{}".format
_OLD_AGGREGATE: Callable[[int], str] = "b{}".format  # of a row as it was before a merge


def layout_of(target: Target) -> ViewLayout:
    plan, state = target.plan, target.state
    outbox = None if target.outbox is None else target.outbox.table
    if isinstance(state, SentRows):
        layout = ViewLayout(target.view_id, state.table, state.outbox.columns, (), state.shown, outbox=outbox)
    elif isinstance(plan, Aggregation):
        layout = _layout_of_groups(plan, target, outbox)
    else:
        assert isinstance(state, AppendState | KeyedRows)  # noqa: S101 - built together
        columns = [(output.name, f"c{i}") for i, output in enumerate(plan.outputs)]
        keys = state.identity if isinstance(state, KeyedRows) else ()
        layout = ViewLayout(
            target.view_id,
            state.table,
            state.stored_columns,
            keys,
            f"SELECT {_named(columns)} FROM {qualified(state.table)}",
            Finishing(tuple(columns), tuple((text, text) for _, text in columns)),
            outbox=outbox,
        )
    zoned = layout.zoned or _are_zoned(kind for _, kind in layout.stored)
    return replace(layout, reads=layout.reads | {layout.table}, zoned=zoned)


def _layout_of_groups(plan: Aggregation, target: Target, outbox: str | None) -> ViewLayout:
    groups, state = target.groups, target.state
    columns = list(zip((output.name for output in plan.outputs), _outputs(plan), strict=True))
    counted = [
        (name, values) for name, values in zip(groups.value_tables, groups.values, strict=True) if values.counted
    ]
    seen, changing = _seen(target), state if isinstance(state, RetractedState) else None
    settled = None if changing is None else changing.settled
    return ViewLayout(
        target.view_id,
        groups.table,
        groups.stored_columns,
        groups.keys,
        _groups(plan, target, [_named([column]) for column in columns]),
        None if counted or seen or plan.having is not None else Finishing(tuple(columns), tuple(_inner(plan, target))),
        nulls=groups.nulls,
        values=groups.value_tables,
        rows=None if changing is None else changing.rows.table,
        settled=None if settled is None else settled.table,
        outbox=outbox,
        reads=frozenset(filter(None, (groups.nulls, *(name for name, _ in counted)))),
        by_state_alone=not seen,
        zoned=_are_zoned(values.type for _, values in counted),
    )


def _are_zoned(types: Iterable[str]) -> bool:
    return any("TIMESTAMPTZ" in kind for kind in types)


def _named(columns: Sequence[NamedText]) -> str:
    return ", ".join(f"{text} AS {quoted(name)}" for name, text in columns)


def group_log(target: Target, log: Log, window_end: int | None) -> GroupLog:
    """The groups as another query reads them: their keys, the selected columns, and as event time the last moment of
    their window. Groups without a window all have the same time, so that no order is made up."""
    plan = target.plan
    assert isinstance(plan, Aggregation)  # noqa: S101 - it has groups
    keys = target.groups.identity
    time = "0" if window_end is None else f"epoch_us(k{window_end}) - 1000"
    texts = [*keys, *_outputs(plan), f"make_timestamptz(({time})::BIGINT)"]
    columns = [f"{text} AS {name}" for text, name in zip(texts, log.columns, strict=True)]
    return GroupLog(log, _groups(plan, target, columns), _groups(plan, target, columns, _changed(keys)))


def groups_made(join: GroupJoin) -> GroupsMade:
    """The groups that a stream is joined with: how their versions are made and finished."""
    groups, side = join.groups, join.right
    target = target_of("", "", "groups", groups)
    places = {output.expression: i for i, output in enumerate(side.outputs)}
    further = tuple(range(len(side.outputs) - groups.further, len(side.outputs)))

    def argument(call: AggregateCall) -> str:
        given = contribution(call)
        assert given is not None  # noqa: S101 - only COUNT(*) has none, and no measure
        column = f"v{places[given]}"
        if call.function not in TIMED:
            return column
        return f"CASE WHEN {column} IS NOT NULL AND t IS NOT NULL THEN {{'t': t, 'v': {column}}} END"

    keys = [(key, key) for key in map(_KEY, range(len(side.keys)))]
    keys += [(_KEY(len(side.keys) + i), f"{STATE}f{i}") for i in range(groups.further)]
    return GroupsMade(
        types=tuple(lower_duckdb.duckdb_type(output.type) for output in side.outputs),
        measures=tuple(each.measure for each in target.calls),
        arguments=tuple(argument(each.call) for each in target.calls),
        further=further,
        inner=(*keys, *((_AGGREGATE(i), _finish(groups, target, c, STATE)) for i, c in enumerate(groups.aggregates))),
        outputs=tuple(_outputs(groups)),
        having=None if groups.having is None else lower_duckdb.lower(groups.having, _KEY, _AGGREGATE),
    )


def change_outbox(target: Target) -> ChangeOutbox:
    """The outbox of a push query, whose rows are told apart by their keys."""
    plan = target.plan
    columns = tuple((f"c{i}", lower_duckdb.duckdb_type(output.type)) for i, output in enumerate(plan.outputs))
    keys, rows, changed, _ = _told_apart(target)
    only_new = isinstance(plan, Aggregation) and plan.emit_final
    return ChangeOutbox(
        target.query_id,
        target.view_id,
        target.state.table,
        (),
        columns if only_new else ((CHANGE_KIND, "VARCHAR"), *columns),
        keys=keys,
        rows=rows,
        changed_rows=changed,
        only_new=only_new,
    )


def logged_view(target: Target) -> LoggedView:
    """A materialized view, for its history."""
    plan, state = target.plan, target.state
    columns = tuple((output.name, lower_duckdb.duckdb_type(output.type)) for output in plan.outputs)
    if isinstance(state, AppendState):
        rows = f"SELECT {', '.join(f'c{i}' for i in range(len(columns)))} FROM {qualified(state.table)}"
        return LoggedView(target.query_id, target.view_id, state.table, columns, (), rows, rows, appended=True)
    names, rows, changed, looked_up = _told_apart(target)
    types = dict(state.stored_columns if isinstance(state, KeyedRows) else target.groups.stored_columns)
    keys = tuple((name, types[name]) for name in names)
    return LoggedView(
        target.query_id,
        target.view_id,
        state.table,
        columns,
        keys,
        rows,
        changed,
        key_columns=result_key(plan),
        looked_up=looked_up,
        groups=_shown_groups(target),
    )


def _shown_groups(target: Target) -> ShownGroups | None:
    """None where a row of the view is made of more than a row of the state, or changes with more than a merge."""
    plan, state = target.plan, target.state
    if not isinstance(plan, Aggregation) or not isinstance(state, UpsertState) or not is_told(state) or _seen(target):
        return None
    sessions = state.windowing is not None and state.windowing.gap_us is not None
    if sessions or any(values.counted for values in state.values):
        return None

    def row(aggregate: Callable[[int], str], prefix: str) -> ShownRow:
        finished = [(aggregate(i), _finish(plan, target, call, prefix)) for i, call in enumerate(plan.aggregates)]
        having = None if plan.having is None else lower_duckdb.lower(plan.having, _KEY, aggregate)
        values = (
            _plain(output, plan, target.groups.key_types, aggregate) or text
            for output, text in zip(plan.outputs, _outputs(plan, aggregate), strict=True)
        )
        return ShownRow(tuple(finished), tuple(values), having)

    after = row(_AGGREGATE, "")
    counts = {name for name, text in after.inner if text == "n"}
    shown = {
        _AGGREGATE(output.expression.index)
        for output in plan.outputs
        if isinstance(output.expression, AggregateReference)
    }
    return ShownGroups(row(_OLD_AGGREGATE, OLD), after, counted=bool(counts & shown))


def _plain(output: Output, plan: Aggregation, key_types: Sequence[str], aggregate: Callable[[int], str]) -> str | None:
    """The name of what an output shows as it is."""
    shown = output.expression
    if isinstance(shown, KeyReference) and key_types[shown.index] == lower_duckdb.duckdb_type(output.type):
        return _KEY(shown.index)
    if isinstance(shown, AggregateReference) and plan.aggregates[shown.index].type == output.type:
        return aggregate(shown.index)
    return None


def _told_apart(target: Target) -> tuple[tuple[str, ...], str, str, str]:
    """The keys that tell the rows apart, and queries of these and the columns c0, c1 ...: of all rows, of those whose
    keys a batch has touched, and of those whose keys hold no NULL."""
    plan, names = target.plan, [f"c{i}" for i in range(len(target.plan.outputs))]
    if isinstance(plan, Projection):
        assert isinstance(target.state, KeyedRows)  # noqa: S101 - over a changelog
        keys = target.state.identity
        rows = f"SELECT {', '.join([*keys, *names])} FROM {qualified(target.state.table)}"
        return keys, rows, f"{rows} AS k{_changed(target.state.source_keys)}", rows
    keys = target.groups.identity
    texts = [*keys, *(f"{text} AS {name}" for text, name in zip(_outputs(plan), names, strict=True))]
    changed = _groups(plan, target, texts, _changed(keys))
    return keys, _groups(plan, target, texts), changed, _groups(plan, target, texts, nulls=False)


def _changed(keys: Sequence[str]) -> str:
    """The join that leaves the rows whose keys a batch touches."""
    same = " AND ".join(f"{key} IS NOT DISTINCT FROM g.g{i}" for i, key in enumerate(keys))
    return f" SEMI JOIN {CHANGED_KEYS} AS g ON {same or 'true'}"


def _groups(plan: Aggregation, target: Target, columns: Sequence[str], only: str = "", *, nulls: bool = True) -> str:
    """The groups that HAVING lets pass; ``columns`` are over their keys and aggregates, and ``only`` is a join that the
    state's rows must meet. Without ``nulls`` those whose keys hold a NULL may be left out."""
    inner = [text if text == name else f"{text} AS {name}" for name, text in _inner(plan, target)]
    having = "" if plan.having is None else f" WHERE {lower_duckdb.lower(plan.having, _KEY, _AGGREGATE)}"
    rows = f"{_source(plan, target, nulls=nulls)}{only}{_seen(target)}"
    return f"SELECT {', '.join(columns)} FROM (SELECT {', '.join(inner) or '1'} FROM {rows}){having}"


def _inner(plan: Aggregation, target: Target) -> list[NamedText]:
    """The keys and the finished aggregates, over the columns of the state's rows."""
    finished = [(_AGGREGATE(i), _finish(plan, target, call)) for i, call in enumerate(plan.aggregates)]
    return [*((key, key) for key in target.groups.keys), *finished]


def _outputs(plan: Aggregation, aggregate: Callable[[int], str] = _AGGREGATE) -> list[str]:
    return [
        f"CAST({lower_duckdb.lower(o.expression, _KEY, aggregate)} AS {lower_duckdb.duckdb_type(o.type)})"
        for o in plan.outputs
    ]


def _seen(target: Target) -> str:
    """Where a view shows closed windows only, or the latest sessions: its other rows are kept and not seen."""
    windowing = target.groups.windowing
    return "" if windowing is None else shown(target.query_id, windowing, windowing.others(target.groups.keys))


def _source(plan: Aggregation, target: Target, *, nulls: bool = True) -> str:
    """The state's rows, each with what is computed from its counted values."""
    groups = target.groups
    source = source_text(groups, nulls=nulls)
    for index, values in enumerate(groups.values):
        if not values.counted:
            continue
        wanted = [
            (f"o{i}", _ordered_value(call))
            for i, call in enumerate(plan.aggregates)
            if call.function in ORDERED and values_of(target.value_calls, call) == index
        ]
        prefix = f"g{index}_"
        ordered = ordered_values(groups.table, index, groups.key_types, values, wanted, prefix)
        same = " AND ".join(f"{key} IS NOT DISTINCT FROM {prefix}{i}" for i, key in enumerate(groups.keys))
        source += f" LEFT JOIN {ordered} ON {same or 'true'}"
    return source


def _ordered_value(call: AggregateCall) -> OrderedValue:
    kind = ORDERED[call.function]
    return OrderedValue(
        kind,
        fraction=call.fraction or 0.0,
        descending=call.descending,
        separator=call.separator or "",
        once=call.distinct,
        limit=call.limit or 0,
    )


def _finish(plan: Aggregation, target: Target, call: AggregateCall, prefix: str = "") -> str:
    """The finished value of one aggregate over the state columns, whose names have this prefix."""

    def column(measure: StateMeasure) -> str:
        index = index_of(target.calls, MeasureCall(measure, call))
        return f"{prefix}m{index}"

    if call.function is Aggregate.COUNT_ROWS and call.filter is None:
        return f"{prefix}n"
    if call.function in ORDERED:
        value = f"CAST(o{plan.aggregates.index(call)} AS {lower_duckdb.duckdb_type(call.type)})"
        return f"coalesce({value}, 0)" if call.function is Aggregate.CARDINALITY else value  # nothing seen counts 0
    measures = measures_of(call, values_of(target.value_calls, call), retracted=over_changelog(plan))
    if call.function is Aggregate.AVG:
        total, count = column(measures[0]), column(measures[1])
        assert call.argument is not None  # noqa: S101 - AVG has one
        if call.argument.type.is_exact:
            return average_exact(total, call.argument.type.scale or 0, count, call.type.scale or 0)
        return f"{total} / nullif({count}, 0)"
    if call.function in MOMENTS:
        sample, root = MOMENTS[call.function]
        return variance(column(measures[0]), sample=sample, root=root)
    if call.function in TIMED:
        return f"CAST(struct_extract({column(measures[0])}, 'v') AS {lower_duckdb.duckdb_type(call.type)})"
    value = f"CAST({column(measures[0])} AS {lower_duckdb.duckdb_type(call.type)})"
    return f"CASE WHEN {column(measures[1])} > 0 THEN {value} END" if len(measures) > 1 else value
