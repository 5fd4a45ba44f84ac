"""The status of a view's query: its state, and whether its content is whole."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from mvserver import moments, sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.api import Backfill, PipelineState, PipelineStatus, QueryState, QueryStatus
from mvserver.streaming.pipeline.pipeline import Pipeline
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.spark.state import SparkState
from spark_sinks.base import KeptHistory, Position, SourceReader

WRITING = "a query that writes is read in batches"


@dataclass(frozen=True)
class ViewName:
    """A view and its query, for messages."""

    name: str
    query_id: str


def view_status(query_id: str, subscriber: Subscriber, pipeline: Pipeline, spark: SparkState) -> QueryStatus:
    state, error = _state(subscriber, pipeline, spark)
    latest = pipeline.latest
    lag = lag_of(subscriber, pipeline)
    backfill = _backfill(subscriber, pipeline)
    return QueryStatus(
        query_id=query_id,
        state=state,
        error=error,
        note=subscriber.note,
        rows_in_per_s=subscriber.rate_in.per_second(),
        rows_out_per_s=subscriber.rate_out.per_second(),
        rows_in=rows_in_of(subscriber, pipeline),
        rejected=subscriber.rejected,
        position=json.dumps(subscriber.position, sort_keys=True),
        latest_position=json.dumps(latest or {}, sort_keys=True),
        lag_records=lag,
        freshness_ms=subscriber.freshness_ms,
        last_change_at=subscriber.last_change_at,
        last_confirmed_at=shown(pipeline.confirmed_at(subscriber)),
        caught_up=state is QueryState.RUNNING and lag == 0,
        epoch=subscriber.epoch,
        filled_share=None if backfill is None else backfill.share,
        filled=subscriber.filled,
        lane=pipeline.lane,
        lane_reason=pipeline.lane_reason,
        backfill=backfill,
    )


def shown(moment: float | None) -> float | None:
    """As the system's clock tells it."""
    return None if moment is None else moments.by_the_clock(moment)


def rows_in_of(subscriber: Subscriber, pipeline: Pipeline) -> int | None:
    """Records since the server's start; None where the source does not count them."""
    return subscriber.records_in if pipeline.reader.positions.counts_records else None


def pipeline_status(pipeline: Pipeline, source_id: str, spark: SparkState) -> PipelineStatus:
    subscribers = pipeline.subscribers
    state, error = _pipeline_state(pipeline, any(s.wants_batches for s in subscribers), spark)
    return PipelineStatus(
        id=pipeline.id,
        source_id=source_id,
        state=state,
        generation=pipeline.generation,
        queries=len(subscribers),
        position=_text(pipeline.position),
        latest_position=_text(pipeline.latest),
        records_per_s=pipeline.records_per_s,
        error=error,
        lane=pipeline.lane,
        lane_reason=pipeline.lane_reason,
        kept=kept_for(pipeline.reader),
    )


def kept_for(reader: SourceReader) -> KeptHistory | None:
    return None if reader.held is None else reader.held.kept()


def sink_pipeline_status(
    status: QueryStatus, source_id: str, generation: int, kept: KeptHistory | None
) -> PipelineStatus:
    """Of a query that writes, which has a pipeline of its own."""
    state = PipelineState.IDLE if status.state is QueryState.TERMINATED else PipelineState(status.state.value)
    return PipelineStatus(
        id=status.query_id,
        source_id=source_id,
        state=state,
        generation=generation,
        queries=1,
        position=status.position if status.position != "{}" else None,
        latest_position=status.latest_position if status.latest_position != "{}" else None,
        records_per_s=status.rows_in_per_s,
        error=status.error,
        lane_reason=WRITING,
        kept=kept,
    )


def wait_filled(
    view: ViewName, subscriber: Subscriber, pipeline: Pipeline, deadline: float, spark: Callable[[], SparkState]
) -> None:
    """Returns when the view has had its source's whole history once; ``deadline`` by the monotonic clock."""
    left_s = max(0.0, deadline - time.monotonic())
    pipeline.wait(lambda: subscriber.filled or subscriber.cause is not None or subscriber.terminated, left_s)
    refuse_empty(view, subscriber, None)
    if subscriber.filled:
        return
    if subscriber.terminated:
        raise unavailable(view, QueryState.TERMINATED, None)
    if subscriber.cause is not None:
        raise unavailable(view, QueryState.FAILED, subscriber.cause)
    backfill = _backfill(subscriber, pipeline)
    share = 0.0 if backfill is None else backfill.share
    interruption = spark().interruption
    cause = f" {pipeline.standstill}" if pipeline.standstill else ""
    cause = cause if interruption is None else f" {interruption}."
    raise SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'materialized view "{view.name}" is still being filled',
        detail=f"{share:.0%} of its source's history is read.{cause}",
        hint="SET mv.read_while_filling = on reads what is there.",
    )


def refuse_empty(view: ViewName, subscriber: Subscriber, spark_problem: str | None) -> None:
    """55000 for a view that has nothing because its query failed before it took anything: no rows would be no answer.
    What it took before it failed is an answer, of an earlier moment."""
    cause = subscriber.cause or (None if subscriber.filled else spark_problem)
    if cause is not None and not subscriber.terminated and not subscriber.has_begun:
        raise unavailable(view, QueryState.FAILED, cause)


def unavailable(view: ViewName, state: QueryState, cause: str | None) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'materialized view "{view.name}" has no complete content',
        detail=f"Its query {view.query_id} is {state.value}{f': {cause}' if cause else '.'}",
        hint=f"RESTART QUERY '{view.query_id}' goes on where it stands; REFRESH MATERIALIZED VIEW {view.name} rebuilds "
        "it from what is left in its source.",
    )


def _state(subscriber: Subscriber, pipeline: Pipeline, spark: SparkState) -> tuple[QueryState, str | None]:
    if subscriber.terminated:
        return QueryState.TERMINATED, None
    if subscriber.cause is not None:
        return QueryState.FAILED, subscriber.cause
    if spark.problem is not None:
        return QueryState.FAILED, spark.problem
    if spark.starting:
        return QueryState.STARTING, None
    if spark.interruption is not None:
        return QueryState.STALLED, spark.interruption
    stalled = pipeline.stalled_of(subscriber)
    if stalled is not None:
        return QueryState.STALLED, stalled
    if not pipeline.running:
        return QueryState.STARTING, None
    return (QueryState.RUNNING if subscriber.filled else QueryState.FILLING), None


def _pipeline_state(pipeline: Pipeline, wanted: bool, spark: SparkState) -> tuple[PipelineState, str | None]:
    if spark.problem is not None:
        return PipelineState.FAILED, spark.problem
    if not wanted:
        return PipelineState.IDLE, None
    if spark.starting:
        return PipelineState.STARTING, None
    if spark.interruption is not None:
        return PipelineState.STALLED, spark.interruption
    if pipeline.stalled is not None:
        return PipelineState.STALLED, pipeline.stalled
    return (PipelineState.RUNNING if pipeline.running else PipelineState.STARTING), None


def lag_of(subscriber: Subscriber, pipeline: Pipeline) -> int | None:
    """How many records it has yet to read, as far as that is known."""
    latest = pipeline.latest
    if latest is None:
        return None
    try:
        return pipeline.reader.positions.distance(subscriber.position, latest)
    except SqlError as error:
        if error.sqlstate != sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:
            raise
        return None  # the topic was made anew: nothing lies between a place in the one and a place in the other


def _backfill(subscriber: Subscriber, pipeline: Pipeline) -> Backfill | None:
    if subscriber.filled or subscriber.fill_target is None:
        return None
    left = pipeline.reader.positions.distance(subscriber.position, subscriber.fill_target)
    whole = max(subscriber.fill_records or 0, left)
    rate = subscriber.rate_in.per_second()
    return Backfill(whole, whole - left, left / rate if rate > 0 else None)


def _text(position: Position | None) -> str | None:
    return None if position is None else json.dumps(position, sort_keys=True)
