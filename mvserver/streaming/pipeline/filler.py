"""Filling: subscribers that stand behind their pipeline are brought up to it, in rounds of bounded size.

A round reads a closed range of the source by a Spark batch and is committed like any batch, so that a view attaches to
the pipeline at an exact position. Views that stand at the same position share their rounds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from sys import maxsize

from pyspark.sql import SparkSession

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from mvserver.streaming.pipeline.committer import Committer
from mvserver.streaming.pipeline.evaluated_batch import EvaluatedBatch, Share
from mvserver.streaming.pipeline.evaluator import BatchEvaluator
from mvserver.streaming.pipeline.generation import round_end
from mvserver.streaming.pipeline.rounds import RoundSize
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.source_watch import explained
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.spark.batch_watch import BatchUnwanted
from mvserver.streaming.spark.guard import Range, SparkGuard, Unguarded
from mvserver.streaming.spark.session import SparkGate
from mvserver.streaming.spark.state import SparkLostError
from spark_sinks.base import Position, SourceReader
from spark_sinks.duckdb.ledger.ledger import encode

_log = logging.getLogger(__name__)

_LOOK_S = 0.2
_RETRY_S = 2.0
_SLOTS_SHARE = 2  # beside live batches a round has one in so many of Spark's task slots
_REST_SHARE = 3  # and after it they have all so many times as long as it took,
_REST_S_MAX = 3.0  # but no longer than this


class Filler:
    """One thread of a pipeline."""

    def __init__(
        self,
        state: RunningState,
        reader: SourceReader,
        evaluator: BatchEvaluator,
        committer: Committer,
        *,
        session: Callable[[Callable[[], bool]], SparkSession],
        gate: SparkGate,
        end_of_look: Callable[[int], Position | None],
        stopping: threading.Event,
        pipeline_id: str = "",
        guard: SparkGuard | None = None,
        cores: int | None = None,
    ) -> None:
        """``cores`` bound the tasks of a round, where Spark has more slots than that."""
        self._pipeline_id = pipeline_id
        self._guard = Unguarded() if guard is None else guard
        self._state = state
        self._reader = reader
        self._evaluator = evaluator
        self._committer = committer
        self._session = session
        self._gate = gate
        self._end_of_look = end_of_look
        self._stopping = stopping
        self._cores = cores
        self.size = RoundSize()
        self._last_kept = False  # whether the last round was one of views

    def loop(self) -> None:
        """Brings subscribers that stand behind the pipeline up to it, in rounds of bounded size."""
        while not self._stopping.is_set():
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001 - shown as the pipeline's state, and tried again
                self._state.notice(error)
                _log.exception("views could not be filled")
                self._state.met(words_of(error), self._unfilled())
                self._stopping.wait(_RETRY_S)

    def _turn(self) -> None:
        self._verify_late()
        try:
            self._settle_targets()
        except SqlError as error:  # a topic made anew, say; the look at the source's health fails its queries
            _log.info("what is left to fill cannot be told: %s", error)
        group = self._next_round()
        if not group:
            with self._state.lock:
                self._state.changed.wait(_LOOK_S)
            return
        rest_s = 0.0
        try:
            rest_s = self._fill_round(group)
        except Exception as error:  # noqa: BLE001 - shown as the queries' state and tried again
            self._fill_failed(group, error)
        finally:
            with self._state.lock:
                for subscriber in group:
                    subscriber.busy = False
        self._stopping.wait(rest_s)  # a live batch may take them in meanwhile

    def _verify_late(self) -> None:
        """Views that came while the pipeline was running."""
        if not self._state.running:
            return
        try:
            self._state.verify_new()
        except SqlError as error:
            self._state.met(str(error), [s for s in self._state.wanted() if s.unverified])
            self._stopping.wait(_RETRY_S)  # the source has just been asked

    def _unfilled(self) -> list[Subscriber]:
        return [s for s in self._state.wanted() if s.unverified or not s.filled]

    def _next_round(self) -> list[Subscriber]:
        with self._state.lock:
            if self._state.position is None or not self._state.running:
                return []
            for subscriber in self._state.subscribers.values():
                if subscriber.stalled and not subscriber.unverified and self._is_level(subscriber):
                    subscriber.stalled = None  # nothing is left to be filled
            behind = [
                s
                for s in self._state.subscribers.values()
                if s.wants_batches
                and s.takes(0)
                and not s.unverified
                and encode(s.claimed) == encode(s.position)
                and encode(s.claimed) != encode(self._state.next)
                and not self._reader.positions.reached(s.claimed, self._state.position)
                and not self._state.leaves_to_batch(s)
            ]
            if not behind:
                return []
            # Views and push queries take turns: the small rounds of these hold up the large ones of those little.
            behind.sort(key=lambda s: s.kept == self._last_kept)
            self._last_kept = behind[0].kept
            first = encode(behind[0].claimed)
            group = [s for s in behind if encode(s.claimed) == first and s.kept == self._last_kept]
            for subscriber in group:
                subscriber.busy = True
            return group

    def _is_level(self, subscriber: Subscriber) -> bool:
        position = self._state.position
        return position is not None and self._reader.positions.reached(subscriber.position, position)

    def _fill_round(self, group: list[Subscriber]) -> float:
        """Returns how many seconds are to be left to live batches now."""
        session = self._session(self._stopping.is_set)
        with self._guard.noticing(session):
            return self._fill_round_in(session, group)

    def _fill_round_in(self, session: SparkSession, group: list[Subscriber]) -> float:
        start, target = group[0].claimed, self._state.position
        assert target is not None  # noqa: S101 - rounds begin only when the pipeline stands somewhere
        beside = self._gate.has_live_work()
        tasks_max = max(1, session.sparkContext.defaultParallelism // _SLOTS_SHARE) if beside else self._cores
        end = round_end(self._reader, start, target, self._records_max(group[0], target, beside=beside))
        records = self._reader.positions.distance(start, end)
        shares = [Share(s, start, end, records) for s in group]
        with self._state.lock:
            for subscriber in group:
                subscriber.claimed = end
                subscriber.left_by_round = self._reader.positions.distance(end, target)
        whole = Range(self._pipeline_id, self._reader.positions, start, end)
        with self._guard.evaluating(session, whole, self._gate.admitted_round(), self._stopping.is_set):
            began = time.monotonic()
            frame = self._reader.batch(session, start, end)
            part = self._evaluator.evaluate(frame, shares, records, tasks_max=tasks_max)
            evaluation_s = time.monotonic() - began
        self._state.grow_batches(records)
        batch = EvaluatedBatch(None, [part])
        self._committer.put(batch)
        while not batch.done.wait(1.0):
            if self._stopping.is_set() or self._state.error is not None:
                return 0.0
        if beside and group[0].kept:
            self.size.measured(records, evaluation_s, batch.commit_s)
            return min(_REST_S_MAX, _REST_SHARE * evaluation_s)
        return 0.0

    def _records_max(self, first: Subscriber, target: Position, *, beside: bool) -> int:
        """Of the next round for ``first`` and those that stand with it."""
        wanted = self._guard.records_max(self._pipeline_id, self._state.records_max)
        records_max = min(wanted, first.records_max or maxsize)
        if not beside or not first.kept:
            return records_max
        left = first.left_by_round
        came_in = 0 if left is None else max(0, self._reader.positions.distance(first.claimed, target) - left)
        return min(records_max, self.size.next(came_in))

    def _fill_failed(self, group: list[Subscriber], error: BaseException) -> None:
        if isinstance(error, BatchUnwanted):
            with self._state.lock:
                for subscriber in group:
                    subscriber.claimed = subscriber.position
            return
        if self._stopping.is_set():
            return
        lost = isinstance(error, SparkLostError)  # which all queries show as long as Spark is not there
        if not lost:
            self._state.notice(error)
        smaller = not lost and self._state.shrink_batches(error, group)
        with self._state.lock:
            for subscriber in group:
                subscriber.claimed = subscriber.position
                subscriber.left_by_round = None
        cause = explained(self._reader, error, group[0].position)
        if not smaller and not lost:
            _log.warning("filling %s failed: %s", [s.query_id for s in group], words_of(cause))
        lasts = isinstance(cause, SqlError) and cause.sqlstate == sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE
        if isinstance(cause, SqlError) and lasts and not smaller:
            for subscriber in group:
                self._state.fail(subscriber, cause)
        elif not smaller and not lost:
            self._state.met(words_of(cause), group)
        if not smaller and not lost:
            self._stopping.wait(_RETRY_S)

    def _settle_targets(self) -> None:
        """A query is filled when it reaches what its source had when the query was made, which may be nothing."""
        with self._state.lock:
            waiting = [s for s in self._state.subscribers.values() if not s.filled and s.failure is None]
            for subscriber in waiting:
                if subscriber.fill_target is not None:
                    continue
                end = self._end_of_look(subscriber.fill_look)
                if end is not None:
                    subscriber.fill_target = end
                    subscriber.fill_records = self._reader.positions.distance(subscriber.position, end)
            done = [s for s in waiting if self._state.is_filled(s)]
        self._state.set_filled(done)
