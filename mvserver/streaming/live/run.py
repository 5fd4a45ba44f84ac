"""One live run: Spark's tasks send rows as records come, and what has come for a moment is one commit.

A run begins at the ledger's position and is a generation like any other. Its rows are made by the trial program of a
batch and go through the same door: an evaluated batch in row mode. Whatever is not plain ends the run, before anything
of it counts, and the batch lane reads on from the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from mvserver.streaming.batch.evaluate import (
    NOTHING,
    Evaluated,
    SchemasWanted,
    WholeProgramNeeded,
    combined,
    evaluate_arrived,
)
from mvserver.streaming.live.choice import BEHIND_LIVE_RECORDS
from mvserver.streaming.live.ended import LaneEnded, TaskGone
from mvserver.streaming.live.passage import Passage
from mvserver.streaming.live.pause import CommitPause
from mvserver.streaming.live.programs import live_programs
from mvserver.streaming.live.row_server import RowServer, rows_of
from mvserver.streaming.live.spark_query import LiveQuery
from mvserver.streaming.pipeline.committer import Committer
from mvserver.streaming.pipeline.evaluated_batch import EvaluatedBatch, Share
from mvserver.streaming.pipeline.evaluator import known_schemas
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.subscribers import Subscriber
from spark_sinks.base import LiveReading, Position, SourceReader
from spark_sinks.duckdb.ledger.ledger import LedgerEntry, encode

POLL_S = 0.2
PATIENCE_S = 0.005  # that a pause is longer, where somebody waits for records that have not come
TAKE_S = 0.001  # between two looks whether what somebody waits for has come
LOOK_S = 0.5  # how often the run looks at Spark's query and at the source's end
QUIET_S = 0.2  # so long without rows: what the source says to have may be no records
SILENT_S = 20.0  # records that the source has, and that do not come for so long, are left to batches
UNANSWERED_MAX = 5  # questions that a busy source did not answer in time, before the run leaves it at that
DRAIN_S = 5.0  # how long tasks may take to end
BEGIN_S = 60.0  # how long Spark may take until its tasks are there


@dataclass(frozen=True)
class LiveServices:
    """What a run is given by its pipeline."""

    pipeline_id: str
    state: RunningState
    reader: SourceReader
    committer: Committer
    ended: Callable[[], bool]
    takes: Callable[[Subscriber, Position], bool]
    evaluated: Callable[[float], None]  # how long an evaluation took
    reached: Callable[[str], None]
    addresses: tuple[str, str]  # by which tasks reach the server, and at which it listens for them
    gives_up: Callable[[], bool]  # its task slots, where executors have gone


class LiveRun:
    def __init__(
        self, services: LiveServices, generation: int, start: Position, subscribers: Sequence[Subscriber]
    ) -> None:
        live = services.reader.live
        assert live is not None  # noqa: S101 - else the choice is the batch lane
        self._live: LiveReading = live
        self._services = services
        self._generation = generation
        self._position = start
        self._passage = Passage(services.reader.positions.partitions(start))
        self._subscribers = list(subscribers)
        self._pause = CommitPause()
        self._batch_id = 0
        self._last_rows = time.monotonic()
        self._looked = 0.0
        self._looked_at: Position | None = None  # the end of which is known that records are before it
        self._behind = self._unanswered = 0
        targets = [subscriber.target for subscriber in subscribers]
        schemas = known_schemas(services.reader, (target.plan.scan for target in targets))
        self._programs = live_programs(targets, schemas)

    def run(self, session: SparkSession, checkpoint: Path, began: Callable[[], None]) -> None:
        """Until the pipeline ends it. Raises LaneEnded with what else has ended it; ``began`` is called when Spark's
        tasks are there."""
        server = RowServer(*self._services.addresses)
        try:
            with self._live.stream(session, self._position) as frame:
                rows = self._programs.frame(frame, self._services.reader.record_order)
                query = LiveQuery(session, rows, server, checkpoint)
                try:
                    self._take_rows(server, query, began)
                finally:
                    query.stop()
                    server.drain(DRAIN_S)
        finally:
            server.close()

    # --- the loop ---------------------------------------------------------------------------------------------------
    def _take_rows(self, server: RowServer, query: LiveQuery, began: Callable[[], None]) -> None:
        deadline, under_way = time.monotonic() + BEGIN_S, False
        while not self._services.ended():
            try:
                server.poll(POLL_S)
                if not under_way and server.tasks >= len(self._passage.places):
                    under_way = True
                    self._last_rows = time.monotonic()
                    began()
                if server.ready:
                    self._commit_rows(self._gather(server))
            except TaskGone as gone:
                raise query.failure(soon=True) or gone from gone
            now = time.monotonic()
            if now - self._looked >= LOOK_S:
                self._looked = now
                self._look(query)
            if not under_way and now > deadline:
                raise LaneEnded(f"Spark's tasks did not begin within {BEGIN_S:g} s")

    def _gather(self, server: RowServer) -> list[pa.RecordBatch]:
        """The rows that have come when the pause behind the last commit is over, and no other pipeline commits. The
        pause ends where somebody waits for records, and these are there."""
        admitted: list[pa.RecordBatch] = []
        committed = self._services.reader.positions.partitions(self._position)
        awaited = partial(self._awaited, committed)
        while not self._services.ended() and (left_s := self._left_s()) > 0:
            if not self._services.state.wait(lambda: bool(awaited()), left_s):
                continue
            admitted += self._taken(server)
            if any(_has_come(end, self._passage.places) for end in awaited()):
                break
            time.sleep(min(left_s, TAKE_S))  # tasks that have rows at any time are not asked without end
            server.poll(self._left_s())
        self._services.committer.await_writer(POLL_S)
        server.poll(0)  # what other tasks have then comes along
        return admitted + self._taken(server)

    def _left_s(self) -> float:
        """Of the pause; it is longer where somebody waits."""
        patience_s = PATIENCE_S if self._services.state.awaited else 0.0
        return min(POLL_S, self._pause.left_s(time.monotonic() - patience_s))

    def _awaited(self, committed: Mapping[str, int]) -> list[Mapping[str, int]]:
        """The ends of partitions that somebody waits for, and that are not committed."""
        with self._services.state.lock:
            known = self._services.state.awaited.known()
        ends = map(self._services.reader.positions.partitions, known)
        return [end for end in ends if not _has_come(end, committed)]

    def _taken(self, server: RowServer) -> list[pa.RecordBatch]:
        if not server.ready:
            return []
        self._last_rows = time.monotonic()
        return [rows for rows in map(self._passage.admit, server.take()) if rows.num_rows]

    def _commit_rows(self, admitted: Sequence[pa.RecordBatch]) -> None:
        began = time.monotonic()
        self._services.reached("live rows")
        if admitted:
            evaluated = self._evaluated(rows_of(admitted))
            self._services.evaluated(time.monotonic() - began)
            self._commit(evaluated, self._live.position(self._position, self._passage.places))

    def _evaluated(self, rows: pa.Table) -> Evaluated:
        try:
            reader = self._services.reader
            return combined([evaluate_arrived(part, program, reader) for program, part in self._programs.parts(rows)])
        except WholeProgramNeeded:
            raise LaneEnded("a record needs a closer look than the live lane takes") from None
        except SchemasWanted as wanted:
            raise LaneEnded(f"{wanted}", at_once=True) from None

    def _commit(self, evaluated: Evaluated, end: Position) -> None:
        """Puts it before the commit thread, and waits for it: what comes meanwhile is the next commit."""
        services, state, start = self._services, self._services.state, self._position
        with state.lock:
            records = services.reader.positions.distance(start, end)
            taking = [s for s in self._subscribers if services.takes(s, start) and s.takes(records)]
            shares = [Share(s, start, end, records) for s in taking]
            for share in shares:
                share.subscriber.claimed = end
            state.next = end
            state.last_batch_at = time.monotonic()
        left_out = frozenset(s.query_id for s in self._subscribers) - {s.query_id for s in taking}
        entry = LedgerEntry(services.pipeline_id, self._generation, self._batch_id, start, end, records)
        batch = EvaluatedBatch(entry, [(evaluated.without(left_out), shares)])
        services.reached("after spark")
        services.committer.put(batch)
        while not batch.done.wait(POLL_S):
            if state.error is not None:
                return
        self._pause.committed(time.monotonic(), batch.commit_s)
        self._batch_id += 1
        self._position = end

    # --- looks ------------------------------------------------------------------------------------------------------
    def _look(self, query: LiveQuery) -> None:
        """Raises LaneEnded where the lane does not carry what it has to any more."""
        failure = query.failure()
        if failure is not None:
            raise failure
        if self._services.gives_up():
            raise LaneEnded("executors have gone whose task slots it needs", at_once=True)
        state = self._services.state
        with state.lock:
            wanted, latest, start = state.wanted(), state.latest, encode(self._position)
            gone = [s for s in self._subscribers if not state.has(s) or s.query_terminated or s.cause is not None]
            if gone:  # whose expressions the tasks go on to evaluate
                raise LaneEnded("a query was taken away", at_once=True)
            known = set(map(id, self._subscribers))
            others = [s for s in wanted if id(s) not in known or encode(s.claimed) != start]
            if others:  # one whose client lags will lag again
                raise LaneEnded("some of its queries are behind the others", at_once=all(s.kept for s in others))
        if latest is not None:
            self._compare(latest)

    def _compare(self, latest: Position) -> None:
        """With the source's end at its last look."""
        positions = self._services.reader.positions
        if not positions.partitions(latest).keys() <= self._passage.places.keys():
            raise LaneEnded("partitions were added to the topic", at_once=True)
        left = positions.distance(self._position, latest)
        if not left:
            self._behind = 0
            return
        silent_s = time.monotonic() - self._last_rows
        if silent_s >= QUIET_S and latest != self._looked_at and not self._passage.is_within_a_record:
            self._pass_over(latest)
        elif silent_s >= SILENT_S:
            raise LaneEnded(f"no record came for {SILENT_S:g} s, although there are some")
        if left > BEHIND_LIVE_RECORDS:
            self._behind += 1
            if self._behind * LOOK_S > 2.0:
                raise LaneEnded(f"it fell behind by about {left} records")
        else:
            self._behind = 0

    def _pass_over(self, latest: Position) -> None:
        """A topic may end with what is no record: then the source says to have more than will ever come."""
        end = self._live.passed(self._position, latest)
        if end is None and self._unanswered < UNANSWERED_MAX:
            self._unanswered += 1
            return
        self._unanswered = 0
        self._looked_at = latest
        if end is None:
            return
        if encode(end) == encode(self._position):
            return
        self._passage = Passage(self._services.reader.positions.partitions(end))
        self._commit(NOTHING, end)


def _has_come(end: Mapping[str, int], places: Mapping[str, int]) -> bool:
    return all(places.get(partition, 0) >= place for partition, place in end.items())
