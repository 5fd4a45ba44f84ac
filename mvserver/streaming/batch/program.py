"""The program of a micro-batch for a set of subscribers: one Spark projection, shared where expressions are equal.

A batch comes to the driver in one of two shapes. In *row* mode each row is a record with the evaluated keys,
arguments and filters: cheapest for small batches. In *partial* mode Spark aggregates at the finest grain that serves
every view (the union of their keys), and a row is a partial aggregate. DuckDB rolls either shape up to each view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from mvserver.compiler import lower_spark
from mvserver.compiler.changelogs import CHANGELOG
from mvserver.compiler.derived import ROW_MARK, has_marks
from mvserver.compiler.expressions import ColumnReference, Expression, FieldAccess, Literal, walk
from mvserver.compiler.own_functions import OwnFunction, called
from mvserver.compiler.plans import TIMED, Aggregate, AggregateCall, Aggregation, Scan
from mvserver.compiler.row_functions import ROW_KEY, ROW_METADATA, ROW_TIME
from mvserver.compiler.unsettled import drawn_by
from mvserver.sql.types import Kind, SqlType
from mvserver.streaming.batch.kept_plans import KeptPlan
from mvserver.streaming.batch.scan_decoding import DecodedScan, Stages, decode_scan, side_by_side
from mvserver.streaming.batch.unnesting import UnnestedRows, unnest_rows
from mvserver.views.change_input import ChangeInput, contributed
from mvserver.views.feeds import query_of
from mvserver.views.measures import MeasureCall, keeps_times
from mvserver.views.targets import Target
from mvserver.views.windowing import SpreadKey, WindowColumns, event_us, spread_key, state_keys
from spark_sinks.base import METADATA
from spark_sinks.decode import CheckFunction, RecordFunction, format_of, parquet_column
from spark_sinks.decode.columns import valid_text
from spark_sinks.duckdb.batch_plans import ViewMerge
from spark_sinks.duckdb.changes.changelog import KeyedRows, RetractedState
from spark_sinks.duckdb.changes.sent_rows import SentRows
from spark_sinks.duckdb.joins.changelog_joins import ChangelogTables
from spark_sinks.duckdb.joins.join_sides import Batch, FeedState
from spark_sinks.duckdb.state import value_tables
from spark_sinks.duckdb.state.grouping_sets import group_keys, grouped
from spark_sinks.duckdb.state.roll_ups import MeasureInput, RollUp
from spark_sinks.duckdb.state.state import AppendState, Measure, UpsertState
from spark_sinks.duckdb.state.windows import Judging
from spark_sinks.schema_registry.base import NO_SCHEMAS, KnownSchemas

REJECTED_RAW_BYTES_MAX = 65_536  # of a rejected record, this much is kept
_ROW_KEY = valid_text("key")


@dataclass(frozen=True)
class PartialColumn:
    """One aggregate of partial mode."""

    name: str
    expression: str


@dataclass(frozen=True)
class ViewInput:
    """Where a target finds itself in the batch. With grouping sets, ``sets``, the batch is merged once for each."""

    target: Target
    flag: str
    keys: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()  # row mode: one per measure, empty for one over the values of a value table
    partial_count: str = ""
    partials: tuple[tuple[str, ...], ...] = ()  # partial mode: one tuple per measure
    values: tuple[tuple[str, ...], ...] = ()  # either mode: one tuple per value table, of the table's own columns
    outputs: tuple[str, ...] = ()  # without groups
    sets: tuple[tuple[int, ...], ...] = ()
    changes: ChangeInput | None = None  # over a changelog
    judging: Judging | None = None  # over a window
    event: str | None = None  # append mode: the event time, where rows age or a side's watermark is kept
    mark: str | None = None  # of a side that reads a log: the mark that each row brings
    known: str = ""  # of the side of a join that is a changelog: the records that are rows or deletions
    primary_key: tuple[str, ...] = ()  # of one that keeps its current rows
    merges: dict[bool, ViewMerge] = field(default_factory=dict, compare=False)  # row mode: by whether keys hold NULLs

    @property
    def is_ordered(self) -> bool:
        """Whether it needs the order of the records, or their partitions."""
        feeds = isinstance(self.target.state, FeedState)
        return self.changes is not None or self.judging is not None or self.event is not None or feeds

    @property
    def group_keys(self) -> tuple[str, ...]:
        """The keys of the state, over what :meth:`_grouped` makes of a batch."""
        return group_keys(self.keys, self.sets)

    def _grouped(self, relation: str) -> str:
        return grouped(relation, self.sets)

    @property
    def group_columns(self) -> tuple[str, ...]:
        """What its partial aggregates must be grouped by."""
        return (*self.keys, *(column for columns in self.values for column in columns))

    def row_roll_ups(self, relation: str, *, null_keys: bool) -> tuple[RollUp, ...]:
        inputs = tuple(MeasureInput(argument=a) for a in self.arguments)
        return self._roll_ups(relation, inputs, None, null_keys)

    def partial_roll_ups(self, relation: str, *, null_keys: bool) -> tuple[RollUp, ...]:
        inputs = tuple(MeasureInput(partial=p) for p in self.partials)
        return self._roll_ups(relation, inputs, self.partial_count, null_keys)

    def changed_groups(self, relation: str, *, partial: bool) -> str | None:
        """The group keys of a batch; None where the view has none."""
        if not self.keys:
            return None
        passing = f"{self.partial_count} > 0" if partial else self.flag
        keys = ", ".join(f"{key} AS g{i}" for i, key in enumerate(self.group_keys))
        return f"SELECT DISTINCT {keys} FROM {self._grouped(relation)} WHERE {passing}"

    def value_statements(self, relation: str, *, partial: bool) -> tuple[str, ...]:
        """What takes in the values of each value table, before the roll-ups."""
        state = self.target.groups
        return tuple(
            value_tables.merge_statement(
                state.table,
                index,
                state.key_types,
                values,
                relation=self._grouped(relation),
                keys=self.group_keys,
                passing=f"{self.partial_count} > 0" if partial else self.flag,
                count=self.partial_count if partial else None,
                arguments=arguments,
            )
            for index, (values, arguments) in enumerate(zip(state.values, self.values, strict=True))
        )

    def _roll_ups(
        self, relation: str, inputs: tuple[MeasureInput, ...], count: str | None, null_keys: bool
    ) -> tuple[RollUp, ...]:
        """``null_keys``: whether a key of the batch may hold a NULL; then there is one of those keys, the second."""
        passing = self.flag if count is None else f"{count} > 0"
        null_keys = null_keys or bool(self.sets)
        parts = (False, True) if null_keys and self.group_keys else (False if null_keys else None,)
        relation = self._grouped(relation)
        return tuple(
            RollUp(self.target.groups, relation, self.group_keys, inputs, passing, count, nulls) for nulls in parts
        )

    def take_statements(self, relation: str) -> tuple[str, ...]:
        """What a state that takes rows does with a batch; none of any other."""
        taker = self.target.row_taker
        return () if taker is None else tuple(taker.take_statements(self._taken(relation)))

    def added_rows(self, relation: str) -> str | None:
        """Query of the rows that the view shows besides, behind a batch; None of a state that is no view's."""
        state = self.target.state
        return state.added_rows(self._taken(relation)) if isinstance(state, AppendState) else None

    def _taken(self, relation: str) -> Batch:
        taken, query_id = self.known or self.flag, query_of(self.target.query_id)
        return Batch(relation, taken, self.flag, self.outputs, query_id, self.primary_key, self.event, self.mark)


@dataclass(frozen=True)
class Program:
    """The Spark side of a batch for a fixed set of targets: stages to add, then what to select."""

    stages: tuple[tuple[str, ...], ...]
    flags: tuple[str, ...]
    columns: tuple[str, ...]  # "expression AS name" of keys, arguments and outputs
    rejected: tuple[tuple[str, str], ...]  # (relation id, column name)
    group_columns: tuple[str, ...]  # partial mode: keys, values of value tables and rejected
    partial_columns: tuple[PartialColumn, ...]
    views: tuple[ViewInput, ...]
    keep: str | None = None  # which records matter to someone; None where all do
    trial: bool = False  # a rejected column then only says that a record needs the whole program
    ordered: bool = False  # the order of the records is needed
    texts: tuple[str, ...] = ()  # those of the columns that are texts or binary, which may be long
    functions: tuple[RecordFunction | CheckFunction, ...] = ()  # which the stages call besides Spark's own
    own_functions: tuple[OwnFunction, ...] = ()  # of users
    schemas: dict[str, pa.Schema] = field(default_factory=dict, compare=False)  # of the collected shapes, once known
    kept: KeptPlan = field(default_factory=KeptPlan, init=False, compare=False)  # of its row mode, and of no other's


@dataclass
class _Columns:
    """Gives equal expressions one name."""

    letter: str
    by_text: dict[str, str] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)  # names of those that are texts or binary

    def name_of(self, text: str, type_: SqlType) -> str:
        """The same, for what is an expression of a type."""
        name = self.name(text)
        if type_.kind in (Kind.VARCHAR, Kind.VARBINARY):
            self.texts.add(name)
        return name

    def name(self, text: str) -> str:
        return self.by_text.setdefault(text, f"{self.letter}{len(self.by_text)}")

    def plain(self, text: str) -> str:
        """The same, but a column that is there already keeps its name."""
        return self.by_text.setdefault(text, text) if text.isidentifier() else self.name(text)

    def selected(self) -> list[str]:
        return [f"{text} AS {name}" for text, name in self.by_text.items() if text != name]


def program_groups(targets: Iterable[Target]) -> list[list[Target]]:
    """Those that share a program: all but the ones that make several rows of a record."""
    found: dict[SpreadKey | None, list[Target]] = {}
    for target in targets:
        found.setdefault(spread_key(target.plan.scan), []).append(target)
    return list(found.values())


def build_program(targets: Sequence[Target], *, trial: bool = False, schemas: KnownSchemas = NO_SCHEMAS) -> Program:
    """Deterministic in its input. A ``trial`` is far cheaper to plan, and right for a batch in which no record is
    rejected or coerced; its rejected columns say when that was not so."""
    scans: dict[str, Scan] = {}
    for target in targets:
        scans.setdefault(target.plan.scan.relation_id, target.plan.scan)
    stages: Stages = ()
    decodings: dict[str, DecodedScan] = {}
    references: dict[str, Mapping[str, str]] = {}
    good: dict[str, str] = {}
    rejected: list[tuple[str, str]] = []
    rejected_columns: list[str] = []
    for number, (relation_id, scan) in enumerate(scans.items()):
        decoded = decodings[relation_id] = decode_scan(scan, f"r{number}_", trial=trial, schemas=schemas)
        stages = side_by_side(stages, decoded.stages)
        references[relation_id] = decoded.columns
        good[relation_id] = decoded.good
        rejected.append((relation_id, f"x{number}"))
        if decoded.reason is None:
            rejected_columns.append(f"CASE WHEN NOT {decoded.known} THEN 1 END AS x{number}")
        else:
            rejected_columns.append(rejected_column(scan, decoded.reason, f"x{number}"))
    windows = WindowColumns()
    for target in targets:
        scan = target.plan.scan
        windows.add(scan, references[scan.relation_id], good[scan.relation_id])
    stages += tuple(windows.stages)
    flags, values = _Columns("f"), _Columns("c")
    partials: dict[str, str] = {}
    views: list[ViewInput] = []
    for target in targets:
        scan = target.plan.scan
        columns = _with_row_functions(scan, windows.references(scan) or references[scan.relation_id])
        drawn = {each: f"d{len(views)}_{number}" for number, each in enumerate(drawn_by(target.plan))}
        columns = {**columns, **{each.name: name for each, name in drawn.items()}}
        rows = unnest_rows(scan.unnests, columns, good[scan.relation_id])
        if not views:  # those that make several rows of a record make the same: see spread_key
            stages += rows.stages
        if drawn:  # a stage of its own: Spark never repeats what is not deterministic, and so each row has one value
            stages += (tuple(f"{each.spark} AS {name}" for each, name in drawn.items()),)
        batch = _TargetColumns(target, decodings[scan.relation_id], rows, windows, flags, values, partials)
        views.append(_VIEW_INPUTS[type(target.state)](batch, target.state))
    if any(text != name for text, name in flags.by_text.items()):
        stages += (tuple(flags.selected()),)
    keys = list(dict.fromkeys(key for view in views for key in view.group_columns))
    flag_names = tuple(flags.by_text.values())
    kept = [*flag_names, *(f"NOT {decoded.known}" for decoded in decodings.values())]
    # A watermark is moved by what a view leaves out, too.
    whole = bool(windows.events) or any(view.event is not None for view in views)
    return Program(
        stages=stages,
        flags=flag_names,
        columns=(*values.selected(), *windows.events, *rejected_columns),
        rejected=tuple(rejected),
        group_columns=(*keys, *(name for _, name in rejected)),
        partial_columns=tuple(PartialColumn(name, text) for text, name in partials.items()),
        views=tuple(views),
        keep=None if whole or set(flag_names) & set(good.values()) else " OR ".join(kept) or "false",
        trial=trial,
        ordered=any(view.is_ordered for view in views),
        texts=tuple(sorted(values.texts)),
        functions=tuple(dict.fromkeys(each for decoded in decodings.values() for each in decoded.functions)),
        own_functions=tuple(dict.fromkeys(each for target in targets for each in called(target.plan))),
    )


def _with_row_functions(scan: Scan, columns: Mapping[str, str]) -> Mapping[str, str]:
    if scan.derived is not None:
        return columns
    time = f"unix_millis(timestamp_micros({event_us(scan, columns)}))"  # rounded down before 1970, too
    return {**columns, ROW_TIME.name: time, ROW_KEY.name: _ROW_KEY, ROW_METADATA: METADATA}


def rejected_column(scan: Scan, reason: str, name: str) -> str:
    """What is kept of a rejected record; NULL of any other."""
    if format_of(scan.value_format).typed_by_spark:
        fields = ", ".join(parquet_column(c.name) for c in scan.value_columns)
        raw = f"cast(to_json(struct({fields})) as binary)"
    else:
        raw = "value"
    return (
        f"CASE WHEN {reason} IS NOT NULL THEN named_struct('position', nullif(position, ''), "
        f"'raw', substring({raw}, 1, {REJECTED_RAW_BYTES_MAX}), 'raw_bytes', octet_length({raw}), "
        f"'reason', {reason}) END AS {name}"
    )


class _TargetColumns:
    """The columns of a batch that one target asks for, by the expressions of its plan."""

    def __init__(
        self,
        target: Target,
        decoded: DecodedScan,
        rows: UnnestedRows,
        windows: WindowColumns,
        flags: _Columns,
        values: _Columns,
        partials: dict[str, str],
    ) -> None:
        self.target = target
        self.scan = target.plan.scan
        self.decoded = decoded
        self.windows = windows
        self.name = values.name
        self._rows = rows
        self._flags = flags
        self._values = values
        self._partials = partials
        self.resolve: Callable[[str], str] = rows.columns.__getitem__
        where = target.plan.where
        if where is None:
            self.flag = flags.plain(rows.good)
        else:
            condition = lower_spark.lower(where, self.resolve)
            self.flag = flags.name(f"coalesce(CASE WHEN {rows.good} THEN {condition} END, false)")

    def value(self, expression: Expression, condition: str | None = None) -> str:
        return self._values.name_of(_guarded(expression, self.resolve, self.flag, condition), expression.type)

    def outputs(self) -> tuple[str, ...]:
        return tuple(self.value(output.expression) for output in self.target.plan.outputs)

    def known(self) -> str:
        """The flag of the records that are not rejected, also of those that only take a key away."""
        return self._flags.plain(self.decoded.known)

    def event(self) -> str:
        """The event time of each record, whether the target wants it or not."""
        return self.name(f"CASE WHEN {self._rows.record} THEN {event_us(self.scan, self._rows.columns)} END")

    def row_event(self) -> str:
        return self.name(event_us(self.scan, self._rows.columns))

    def mark(self) -> str | None:
        """The watermark that each row of a log brings; None where its log has none."""
        return self.name(self.resolve(ROW_MARK)) if has_marks(self.scan) else None

    def partial(self, text: str) -> str:
        return self._partials.setdefault(text, f"s{len(self._partials)}")

    def key(self, expression: Expression) -> str:
        return self._values.name_of(_key(expression, self.resolve, self.flag), expression.type)

    def argument(self, call: AggregateCall) -> str:
        flag, resolve = self.flag, self.resolve
        condition = None if call.filter is None else lower_spark.lower(call.filter, resolve)
        if call.argument is None:
            return self.name(f"CASE WHEN {flag} AND ({condition}) THEN 1 END")
        guard = flag if condition is None else f"{flag} AND ({condition})"
        if call.function is Aggregate.ARRAY_AGG:  # where NULL is a value, what is left out must differ from it
            return self.name(f"CASE WHEN {guard} THEN array({lower_spark.lower(call.argument, resolve)}) END")
        if call.function in TIMED:
            return self.name(_timed(lower_spark.lower(call.argument, resolve), _event_time(self.scan, resolve), guard))
        return self.value(call.argument, condition)

    def primary_key(self) -> tuple[str, ...]:
        return tuple(map(self.name, self.decoded.primary_key))

    def changes(self, rows: KeyedRows, columns: tuple[str, ...]) -> ChangeInput:
        """Over a changelog: every record that is not rejected counts, also one that only takes its key away."""
        primary_key = (*self.primary_key(), *map(self.name, self._rows.ordinals))
        identity = rows.identity_of(primary_key)
        return ChangeInput(primary_key, self.known(), self.flag, columns, identity, rows.ordinals)


def _appended(batch: _TargetColumns, state: AppendState) -> ViewInput:
    outputs = batch.outputs()
    if state.aging is None:
        return ViewInput(batch.target, batch.flag, outputs=outputs)
    event = batch.event()
    return ViewInput(batch.target, batch.flag, outputs=(*outputs, event), event=event)


def _sent(batch: _TargetColumns, state: SentRows) -> ViewInput:
    return ViewInput(batch.target, batch.flag, outputs=batch.outputs())


def _fed(batch: _TargetColumns, state: FeedState) -> ViewInput:
    outputs = (*batch.outputs(), batch.row_event(), batch.name("record_time"))
    event = None if state.side.watched is None else batch.event()
    view = ViewInput(batch.target, batch.flag, outputs=outputs, event=event, mark=batch.mark())
    return _with_deletions(batch, state, view) if batch.scan.kind == CHANGELOG else view


def _with_deletions(batch: _TargetColumns, state: FeedState, view: ViewInput) -> ViewInput:
    """The side of a join that is a changelog: a deletion has nothing but its primary key."""
    known = batch.known()
    if isinstance(state.join, ChangelogTables) or state.side.primary_key:
        return replace(view, known=known, primary_key=batch.primary_key())
    decoded = batch.decoded
    columns = {**decoded.columns, **dict(zip(batch.scan.primary_key, decoded.primary_key, strict=True))}
    count = len(state.side.key_types)
    keys = [lower_spark.lower(output.expression, columns.__getitem__) for output in batch.target.plan.outputs[:count]]
    return replace(view, outputs=(*map(batch.name, keys), *view.outputs[count:]), known=known)


def _keyed(batch: _TargetColumns, state: KeyedRows) -> ViewInput:
    outputs = batch.outputs()
    return ViewInput(batch.target, batch.flag, outputs=outputs, changes=batch.changes(state, outputs))


def _grouped(batch: _TargetColumns, state: UpsertState) -> ViewInput:
    view, windowing = _of_groups(batch), state.windowing
    if windowing is None:
        return view
    mark, keys = batch.mark(), view.keys
    event = batch.windows.event(batch.scan)
    judging = Judging(event, batch.flag, keys[windowing.start_key], keys[windowing.end_key], mark)
    return replace(view, judging=judging)


def _retracted(batch: _TargetColumns, state: RetractedState) -> ViewInput:
    view = _of_groups(batch)
    columns = contributed(state, view.keys, view.arguments, view.values)
    return replace(view, changes=batch.changes(state.rows, columns))


def _of_groups(batch: _TargetColumns) -> ViewInput:
    target, flag = batch.target, batch.flag
    plan = target.plan
    assert isinstance(plan, Aggregation)  # noqa: S101 - it has groups
    arguments: list[str] = []
    partials: list[tuple[str, ...]] = []
    for call in target.calls:
        if call.measure.values is not None:
            arguments.append("")
            partials.append(())
            continue
        argument = batch.argument(call.call)
        arguments.append(argument)
        partials.append(tuple(batch.partial(text) for text in _partial_texts(call, argument, flag)))
    keys = tuple(batch.key(key) for key in state_keys(plan))
    count = batch.partial(f"count(CASE WHEN {flag} THEN 1 END)")
    time = _event_time(plan.scan, batch.resolve)
    values = tuple(
        (*([batch.name(time)] if keeps_times(call) else []), batch.argument(call)) for call in target.value_calls
    )
    return ViewInput(target, flag, keys, tuple(arguments), count, tuple(partials), values, sets=plan.grouping_sets)


_VIEW_INPUTS: Mapping[type, Callable[[_TargetColumns, Any], ViewInput]] = {
    AppendState: _appended,
    SentRows: _sent,
    FeedState: _fed,
    KeyedRows: _keyed,
    UpsertState: _grouped,
    RetractedState: _retracted,
}
"""By kind of state, what a view asks of a batch."""


def _event_time(scan: Scan, resolve: Callable[[str], str]) -> str:
    """A number that grows with the event time."""
    column = next((each for each in scan.columns if each.name == scan.timestamp), None)
    if column is None:
        return "unix_micros(record_time)"
    text = resolve(column.name)
    return text if column.type.kind is Kind.BIGINT else f"unix_micros(cast({text} as timestamp))"


def _timed(value: str, time: str, guard: str) -> str:
    """Value and time as one value that orders by time; NULL where either is."""
    # Fields of a type that may be NULL: Arrow makes a NULL structure of NULLs, and refuses it where a field may not be.
    fields = (
        f"'t', CASE WHEN {time} IS NOT NULL THEN {time} END",
        f"'v', CASE WHEN {value} IS NOT NULL THEN {value} END",
    )
    pair = f"CASE WHEN {value} IS NOT NULL AND {time} IS NOT NULL THEN named_struct({', '.join(fields)}) END"
    return f"CASE WHEN {guard} THEN {pair} END"


def _key(expression: Expression, resolve: Callable[[str], str], flag: str) -> str:
    text = _guarded(expression, resolve, flag, None)
    if expression.type.kind in (Kind.FLOAT, Kind.DOUBLE):
        # One zero: PostgreSQL groups -0 with 0, and a primary key would not.
        return f"CASE WHEN {text} = 0 THEN cast(0 as {lower_spark.spark_type(expression.type)}) ELSE {text} END"
    return text


def _guarded(expression: Expression, resolve: Callable[[str], str], flag: str, condition: str | None) -> str:
    """What may fail is evaluated only where its view wants the record; plain columns are shared by all views."""
    text = lower_spark.lower(expression, resolve)
    if condition is None and all(isinstance(n, (ColumnReference, FieldAccess, Literal)) for n in walk(expression)):
        return text
    guard = flag if condition is None else f"{flag} AND ({condition})"
    return f"CASE WHEN {guard} THEN {text} END"


def _partial_texts(call: MeasureCall, argument: str, flag: str) -> list[str]:
    """Spark aggregates in the order of the measure's state columns."""
    mine = f"CASE WHEN {flag} THEN {argument} END"
    kind = call.measure.kind
    if kind is Measure.COUNT:
        return [f"count({mine})"]
    if kind is Measure.SUM:
        return [f"sum({_summand(call, mine)})"]
    if kind is Measure.MOMENTS:
        number = f"cast({mine} as double)"
        return [f"count({mine})", f"avg({number})", f"var_pop({number}) * count({mine})"]
    return [f"{kind.value}({mine})"]


def _summand(call: MeasureCall, mine: str) -> str:
    """Sums are taken in the type of the merged value, so that a partial sum cannot overflow before it."""
    merged = call.measure.type
    if merged == "BIGINT":
        return f"cast({mine} as bigint)"
    if merged.startswith("DECIMAL"):
        return f"cast({mine} as {merged.lower()})"
    return f"cast({mine} as double)"
