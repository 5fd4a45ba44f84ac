"""A continuous query as the streaming room runs it: its plan and its state in DuckDB."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mvserver.compiler import lower_duckdb
from mvserver.compiler.changelogs import over_changelog
from mvserver.compiler.nested import goes_along
from mvserver.compiler.plans import AggregateCall, Aggregation, ContinuousPlan, Groups, Projection, Scan
from mvserver.views.contributions import Contributions
from mvserver.views.measures import MeasureCall, keeps_times, measures, value_calls_of, value_table
from mvserver.views.windowing import aging_of, state_keys, windowing_of
from spark_sinks.duckdb.changes.capture import Keeper
from spark_sinks.duckdb.changes.changelog import KeyedRows, RetractedState
from spark_sinks.duckdb.changes.group_logs import GroupLog
from spark_sinks.duckdb.changes.outbox import Outbox
from spark_sinks.duckdb.changes.sent_rows import SentRows
from spark_sinks.duckdb.joins.join_sides import FeedState
from spark_sinks.duckdb.names import state_name
from spark_sinks.duckdb.state.state import ROWS, AppendState, State, UpsertState


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
    group_log: GroupLog | None = None  # of one whose groups another one aggregates

    @property
    def groups(self) -> UpsertState:
        """The state that an aggregation's columns are finished from."""
        state = self.state.groups if isinstance(self.state, RetractedState) else self.state
        assert isinstance(state, UpsertState)  # noqa: S101 - built together
        return state

    @property
    def row_taker(self) -> AppendState | SentRows | FeedState | None:
        """The state, where it takes the rows of a batch as they are."""
        return self.state if isinstance(self.state, AppendState | SentRows | FeedState) else None

    @property
    def keeper(self) -> Keeper | None:
        """Who is told what a batch does to its rows."""
        return self.outbox or self.group_log


def build_target(query_id: str, view_id: str, version: int, plan: ContinuousPlan) -> Target:
    """The state's tables are named by the view's UUID and definition version."""
    return target_of(query_id, view_id, state_name(view_id, version), plan)


def target_of(query_id: str, view_id: str, table: str, plan: ContinuousPlan) -> Target:
    """``table`` is what the names of the state's tables begin with."""
    if isinstance(plan, Projection):
        types = tuple(lower_duckdb.duckdb_type(o.type) for o in plan.outputs)
        if over_changelog(plan):
            return Target(query_id, view_id, plan, _keyed_rows(table, plan.scan, types))
        return Target(query_id, view_id, plan, AppendState(table, types, aging_of(plan)))
    value_calls = value_calls_of(plan)
    calls = measures(plan, value_calls)
    state = UpsertState(
        table=table,
        key_types=(
            *(lower_duckdb.duckdb_type(k.type) for k in state_keys(plan)),
            *(["INTEGER"] if plan.grouping_sets else []),  # the number of the set
        ),
        measures=tuple(c.measure for c in calls),
        values=tuple(value_table(call) for call in value_calls),
        totals=tuple(number for number, members in enumerate(plan.grouping_sets) if not members),
        windowing=windowing_of(plan),
    )
    if over_changelog(plan):
        return _retracted(Target(query_id, view_id, plan, state, calls, value_calls))
    return Target(query_id, view_id, plan, state, calls, value_calls)


def _retracted(target: Target) -> Target:
    """The same over a changelog, with what each of its rows gives."""
    groups, plan = target.groups, target.plan
    assert isinstance(plan, Aggregation)  # noqa: S101 - it has groups
    kept = Contributions(len(plan.keys))
    arguments = tuple(kept.argument(call.call) for call in target.calls)
    values = tuple(kept.values(call, timed=keeps_times(call)) for call in target.value_calls)
    types = (*groups.key_types[: len(plan.keys)], *(each.type for each in kept.found))
    rows = _keyed_rows(f"{groups.table}{ROWS}", plan.scan, types)
    state = RetractedState(groups, rows, arguments, values, plan.grouping_sets, _end(plan))
    return replace(target, state=state)


def _end(plan: Aggregation) -> str | None:
    """The column of a contribution that is the end of its window, where it goes along with the windows."""
    derived = plan.scan.derived
    if not isinstance(derived, Groups) or derived.window_end is None or not goes_along(plan):
        return None
    return f"p{derived.window_end}"


def until_closed(target: Target) -> Target:
    """The same, whose windows are removed when they take no more records."""
    state = target.state
    if not isinstance(state, UpsertState) or state.windowing is None:
        return target
    windowing = replace(state.windowing, retention_us=state.windowing.closing_us)
    return replace(target, state=replace(state, windowing=windowing))


def _keyed_rows(table: str, scan: Scan, types: tuple[str, ...]) -> KeyedRows:
    """A stored changelog has no NULL in its key; what the server makes may have."""
    columns = {column.name: column.type for column in scan.columns}
    keys = tuple(lower_duckdb.duckdb_type(columns[name]) for name in scan.primary_key)
    ordinals = len(scan.unnests)
    return KeyedRows(table, (*keys, *["BIGINT"] * ordinals), types, scan.derived is not None, ordinals)
