"""What is said of a view's query: its state, and whether its content is whole."""

from __future__ import annotations

import json
import time

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.api import QueryState, QueryStatus
from mvserver.streaming.pipeline import Pipeline
from mvserver.streaming.subscribers import Subscriber


def view_status(
    query_id: str, subscriber: Subscriber, pipeline: Pipeline, spark: tuple[bool, str | None]
) -> QueryStatus:
    """``spark``: whether it is still starting, and why it will not start."""
    state, error = _state(subscriber, pipeline, spark)
    latest = pipeline.latest
    lag = None if latest is None else pipeline.reader.distance(subscriber.position, latest)
    return QueryStatus(
        query_id=query_id,
        state=state,
        error=error,
        note=subscriber.note,
        rows_in_per_s=subscriber.rate_in.per_second(),
        rows_out_per_s=subscriber.rate_out.per_second(),
        rows_in=subscriber.records_in,
        rejected=subscriber.rejected,
        position=json.dumps(subscriber.position, sort_keys=True),
        latest_position=json.dumps(latest or {}, sort_keys=True),
        lag_records=lag,
        freshness_ms=subscriber.freshness_ms,
        last_change_at=subscriber.last_change_at,
        last_confirmed_at=subscriber.last_confirmed_at,
        caught_up=state is QueryState.RUNNING and lag == 0,
        epoch=subscriber.epoch,
        filled_share=_filled_share(subscriber, pipeline),
    )


def wait_filled(query_id: str, subscriber: Subscriber, pipeline: Pipeline, deadline: float) -> None:
    """Returns when the view has had its source's whole history once; ``deadline`` by the monotonic clock."""
    left_s = max(0.0, deadline - time.monotonic())
    pipeline.wait(lambda: subscriber.filled or subscriber.failure is not None, left_s)
    if subscriber.filled:
        return
    if subscriber.failure is not None:
        raise unavailable(query_id, subscriber.failure)
    share = _filled_share(subscriber, pipeline) or 0.0
    cause = f" The source does not answer: {pipeline.stalled}." if pipeline.stalled else ""
    raise SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the materialized view is still being filled",
        detail=f"{share:.0%} of its source's history is read.{cause}",
        hint="SET mv.read_while_filling = on reads what is there.",
    )


def unavailable(query_id: str, cause: str) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the materialized view has no complete content",
        detail=f"Its query {query_id} is FAILED: {cause}",
        hint="REFRESH MATERIALIZED VIEW rebuilds it from what is left in its source.",
    )


def _state(subscriber: Subscriber, pipeline: Pipeline, spark: tuple[bool, str | None]) -> tuple[QueryState, str | None]:
    is_starting, spark_problem = spark
    if subscriber.terminated:
        return QueryState.TERMINATED, None
    if subscriber.failure is not None:
        return QueryState.FAILED, subscriber.failure
    if spark_problem is not None:
        return QueryState.FAILED, spark_problem
    if is_starting:
        return QueryState.STARTING, None
    if pipeline.stalled is not None:
        return QueryState.STALLED, pipeline.stalled
    if not pipeline.running:
        return QueryState.STARTING, None
    return (QueryState.RUNNING if subscriber.filled else QueryState.FILLING), None


def _filled_share(subscriber: Subscriber, pipeline: Pipeline) -> float | None:
    if subscriber.filled or subscriber.fill_target is None:
        return None
    left = pipeline.reader.distance(subscriber.position, subscriber.fill_target)
    whole = subscriber.fill_records or left
    return 1.0 if whole == 0 else max(0.0, min(1.0, 1 - left / whole))
