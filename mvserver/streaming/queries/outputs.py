"""Queries whose rows are written elsewhere as they change: their state is a view's, with an outbox and a relay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from catalog.model import Query, Relation
from mvserver import sqlstates
from mvserver.compiler import lower_duckdb
from mvserver.compiler.changelogs import written_key
from mvserver.compiler.plans import ContinuousPlan
from mvserver.errors import SqlError
from mvserver.streaming.api import QueryState, QueryStatus
from mvserver.streaming.batch.record_encoding import RecordEncoder
from mvserver.streaming.pipeline.subscribers import Subscriber, stands_for
from mvserver.streaming.queries.outbox_relay import OutboxRelay, Output
from mvserver.streaming.queries.outgoing import Form, Pace
from mvserver.streaming.queries.record_form import RecordForm
from mvserver.streaming.queries.table_form import TableForm
from mvserver.table_shapes import table_shape
from mvserver.views.targets import Target
from spark_sinks.base import TableSink, TransactionalSink
from spark_sinks.duckdb.changes.changelog import KeyedRows
from spark_sinks.duckdb.changes.outbox import Outbox
from spark_sinks.duckdb.changes.sent_rows import SentRows
from spark_sinks.duckdb.ledger.ledger import SubscriberRow
from spark_sinks.duckdb.writer import Writer
from spark_sinks.table_options import TableOptions

MATERIALIZED_VIEW = "materialized_view"


class Outlet(Protocol):
    """What takes the rows of an outbox on."""

    @property
    def is_congested(self) -> bool: ...

    @property
    def failure(self) -> str | None:
        """Why nothing will be taken any more."""


@dataclass
class OutputSubscriber(Subscriber):
    """Takes no more while what it has made waits to be sent."""

    relay: Outlet | None = None

    @property
    def obstacle(self) -> str | None:
        own, relay = super().obstacle, self.relay
        if own is not None or relay is None or relay.failure is None or self.query_terminated:
            return own
        return stands_for(self.target.query_id, relay.failure)

    @property
    def is_congested(self) -> bool:
        return self.relay is not None and self.relay.is_congested


def known_subscriber(row: SubscriberRow, target: Target, relay: Outlet | None = None) -> OutputSubscriber:
    """One that goes on where the ledger has it."""
    return OutputSubscriber(
        target, row.version, row.position, target.plan.scan.error_handling,
        filled=row.filled, failure=row.failure, note=row.note, epoch=row.epoch, relay=relay,
    )  # fmt: skip


def keeps_rows(query: Query, sink: Relation) -> bool:
    """Whether its rows are kept in DuckDB; else they go straight to its stream or table."""
    return query.kind == MATERIALIZED_VIEW or bool(sink.key_columns)


def view_id_of(query: Query) -> str:
    """What its state and its DuckDB view are named after: several queries may write to one changelog or table."""
    return query.sink_id if query.kind == MATERIALIZED_VIEW else query.id


def with_outbox(target: Target) -> Target:
    plan = target.plan
    columns = tuple((output.name, lower_duckdb.duckdb_type(output.type)) for output in plan.outputs)
    state = target.state
    ordinals = state.ordinals if isinstance(state, KeyedRows) else 0
    outbox = Outbox(target.query_id, target.view_id, state.table, written_key(plan), columns, ordinals)
    return replace(target, outbox=outbox)


def sending(target: Target) -> Target:
    """Of a query that writes rows to a stream or table and keeps none."""
    target = with_outbox(target)
    assert target.outbox is not None  # noqa: S101 - just made
    return replace(target, state=SentRows(target.outbox))


def record_form(
    plan: ContinuousPlan, sink: Relation, open_sink: Callable[[], TransactionalSink], *, text_keys: bool = False
) -> RecordForm:
    """Of the records of a stream or changelog. ``text_keys``: the keys that its store takes are texts."""
    encoder = RecordEncoder(
        columns={output.name: output.type for output in plan.outputs},
        key=sink.key_columns or sink.columns_of("key.columns"),
        key_format=sink.property("key.format") or "json",
        excluded=sink.columns_of("value.columns.exclude"),
        text_keys=text_keys,
        folders=sink.columns_of("partition.columns"),
    )
    return RecordForm(open_sink, encoder)


def table_form(table: Relation, open_sink: Callable[[Callable[[], bool]], TableSink]) -> TableForm:
    """Of the rows of a table."""
    options = TableOptions.of(dict(table.properties))
    pace = Pace(options.commit_rows_max, options.commit_interval_s)
    return TableForm(open_sink, table_shape(table.columns, table.key_columns), pace)


def relay_of(target: Target, query: Query, form: Form, writer: Writer, reached: Callable[[str], None]) -> OutboxRelay:
    if target.outbox is None:
        raise SqlError(sqlstates.INTERNAL_ERROR, f"query {query.id} has no outbox")
    return OutboxRelay(Output(target.outbox, form), writer, reached)


def output_status(status: QueryStatus, subscriber: Subscriber, relay: OutboxRelay) -> QueryStatus:
    """The query's own failure comes first, then that of its relay, then those of other queries; where all are well, how
    its relay does."""
    status = replace(status, rows_out_per_s=relay.rate.per_second())
    if status.state is QueryState.TERMINATED or subscriber.query_failure is not None:
        return status
    if relay.failure is not None:
        return replace(status, state=QueryState.FAILED, error=relay.failure, caught_up=False)
    if status.state is QueryState.FAILED:
        return status
    if relay.problem is not None:
        return replace(status, state=QueryState.STALLED, error=relay.problem, caught_up=False)
    return status
