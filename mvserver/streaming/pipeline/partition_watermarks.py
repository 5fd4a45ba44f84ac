"""The partitions that a watermark waits for, of a windowed view and of a join's side: at each commit, and when one
becomes idle."""

from __future__ import annotations

from mvserver.compiler.derived import has_marks
from mvserver.streaming.pipeline.idleness import Idleness
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.views.targets import Target
from spark_sinks.base import Position, SourceReader
from spark_sinks.duckdb.batch_plans import Advance, Presence
from spark_sinks.duckdb.joins.join_sides import FeedState, JoinTables
from spark_sinks.duckdb.state.state import State, watermark_rule
from spark_sinks.duckdb.state.windows import Standing
from spark_sinks.duckdb.writer import MergeError, Writer


def watched_state(target: Target) -> State | None:
    """The state of a view that has a watermark; None for another."""
    return target.state if watermark_rule(target.state) is not None else None


def standing(subscriber: Subscriber, end: Position, reader: SourceReader, running: RunningState) -> Standing:
    """When the view has read up to ``end``. Under the pipeline's lock."""
    rows = reader.logged
    if rows is not None and rows.log.marked:
        return Standing(subscriber.query_id, (), log=rows.log, seq=int(end["seq"]))
    if subscriber.idleness is None:
        timeout_ms = subscriber.target.plan.scan.idle_timeout_ms
        subscriber.idleness = Idleness(None if timeout_ms is None else timeout_ms / 1000)
    read = reader.positions.partitions(end)
    ends = None if running.latest is None else reader.positions.partitions(running.latest)
    idle = subscriber.idleness.idle(read, ends, running.latest_at)
    return Standing(subscriber.query_id, tuple(sorted(read)), idle)


def presence(subscriber: Subscriber, end: Position, reader: SourceReader) -> Presence | None:
    """The partitions that the side of a join waits for when it has read up to ``end``; None where it knows them, and
    for whatever waits for none. Under the pipeline's lock."""
    state = subscriber.target.state
    if not isinstance(state, FeedState) or not isinstance(state.join, JoinTables) or state.side.low is not None:
        return None
    partitions = tuple(sorted(reader.positions.partitions(end)))
    if partitions == subscriber.partitions:
        return None
    return Presence(subscriber.query_id, state.join, state.index, partitions)


def close_idle(running: RunningState, reader: SourceReader, writer: Writer) -> list[str]:
    """Moves the watermarks that an idle partition holds back, and those over logs to which no rows come; gives the
    queries whose views may have changed. No batch does it where nothing comes."""
    moved = []
    for subscriber in running.wanted():
        state = watched_state(subscriber.target)
        scan = subscriber.target.plan.scan
        if state is None or (scan.idle_timeout_ms is None and not has_marks(scan)):
            continue
        with writer.commit_lock:  # as for a batch: nobody takes it away meanwhile
            if _moves(subscriber, state, running, reader, writer):
                moved.append(subscriber.query_id)
    return moved


def _moves(subscriber: Subscriber, state: State, running: RunningState, reader: SourceReader, writer: Writer) -> bool:
    with running.lock:
        now = standing(subscriber, subscriber.position, reader, running)
        known = frozenset() if subscriber.standing is None else subscriber.standing.idle  # none since it has started
    if not running.has(subscriber) or (now.log is None and known == now.idle):
        return False
    try:
        moves = writer.advance(Advance(now, state, subscriber.target.keeper))
    except MergeError as failed:
        running.fail(subscriber, failed.error)
        return False
    with running.lock:
        subscriber.standing = now
        subscriber.epoch += moves
    return moves
