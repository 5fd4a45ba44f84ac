"""Filling: subscribers that stand behind their pipeline are brought up to it, in rounds of bounded size.

A round reads a closed range of the source by a Spark batch and is committed like any batch, so that a view attaches to
the pipeline at an exact position. Views that stand at the same position share their rounds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from sys import maxsize

from pyspark.sql import SparkSession

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.committer import Committer
from mvserver.streaming.evaluator import BatchEvaluator
from mvserver.streaming.roster import Roster
from mvserver.streaming.shares import Share, Work
from mvserver.streaming.spark import SparkGate
from mvserver.streaming.subscribers import Subscriber
from spark_sinks.base import SourceReader
from spark_sinks.duckdb.ledger import encode

_log = logging.getLogger(__name__)

_LOOK_S = 0.2
_RETRY_S = 2.0


class Filler:
    """One thread of a pipeline."""

    def __init__(
        self,
        roster: Roster,
        reader: SourceReader,
        evaluator: BatchEvaluator,
        committer: Committer,
        *,
        session: Callable[[], SparkSession],
        gate: SparkGate,
        stopping: threading.Event,
    ) -> None:
        self._roster = roster
        self._reader = reader
        self._evaluator = evaluator
        self._committer = committer
        self._session = session
        self._gate = gate
        self._stopping = stopping
        self._last_kept = False  # whether the last round was one of views

    def loop(self) -> None:
        """Brings subscribers that stand behind the pipeline up to it, in rounds of bounded size."""
        while not self._stopping.is_set():
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001 - shown as the pipeline's state, and tried again
                _log.exception("views could not be filled")
                with self._roster.lock:
                    self._roster.stalled = str(error)
                self._stopping.wait(_RETRY_S)

    def _turn(self) -> None:
        self._verify_late()
        group = self._next_round()
        if not group:
            try:
                self._settle_targets()
            except SqlError as error:  # a topic made anew, say; the look at the source's health fails its queries
                _log.info("what is left to fill cannot be told: %s", error)
            with self._roster.lock:
                self._roster.changed.wait(_LOOK_S)
            return
        try:
            self._fill_round(group)
        except Exception as error:  # noqa: BLE001 - shown as the queries' state and tried again
            self._fill_failed(group, error)
        finally:
            with self._roster.lock:
                for subscriber in group:
                    subscriber.busy = False

    def _verify_late(self) -> None:
        """Views that came while the pipeline was running."""
        if not self._roster.running:
            return
        try:
            self._roster.verify_new()
        except SqlError as error:
            with self._roster.lock:
                self._roster.stalled = str(error)

    def _next_round(self) -> list[Subscriber]:
        with self._roster.lock:
            if self._roster.position is None or not self._roster.running:
                return []
            behind = [
                s
                for s in self._roster.subscribers.values()
                if s.wants_batches
                and s.takes(0)
                and not s.unverified
                and encode(s.claimed) == encode(s.position)
                and encode(s.claimed) != encode(self._roster.next)
                and not self._reader.reached(s.claimed, self._roster.position)
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

    def _fill_round(self, group: list[Subscriber]) -> None:
        session = self._session()
        start, target = group[0].claimed, self._roster.position
        assert target is not None  # noqa: S101 - rounds begin only when the pipeline stands somewhere
        end = self._reader.limit(start, target, min(self._roster.records_max, group[0].records_max or maxsize))
        end = self._reader.advance(start, end)
        records = self._reader.distance(start, end)
        shares = [Share(s, start, end, records) for s in group]
        with self._roster.lock:
            for subscriber in group:
                subscriber.claimed = end
        with self._gate.admitted():
            part = self._evaluator.evaluate(self._reader.batch(session, start, end), shares, records)
        work = Work(None, [part])
        self._committer.put(work)
        while not work.done.wait(1.0):
            if self._stopping.is_set() or self._roster.error is not None:
                break

    def _fill_failed(self, group: list[Subscriber], error: BaseException) -> None:
        smaller = self._roster.shrink_batches(error)
        cause = self._reader.explain_failure(error, group[0].position)
        if not smaller:
            _log.warning("filling %s failed: %s", [s.query_id for s in group], cause)
        with self._roster.lock:
            for subscriber in group:
                subscriber.claimed = subscriber.position
        if isinstance(cause, SqlError) and cause.sqlstate == sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:
            for subscriber in group:
                self._roster.fail(subscriber, cause)
        elif not smaller:
            with self._roster.lock:
                self._roster.stalled = str(cause)
        if not smaller:
            self._stopping.wait(_RETRY_S)

    def _settle_targets(self) -> None:
        """A query is filled when it reaches what its source had when the query was made, which may be nothing."""
        with self._roster.lock:
            waiting = [s for s in self._roster.subscribers.values() if not s.filled and s.failure is None]
            for subscriber in waiting:
                if subscriber.fill_target is None and self._roster.latest is not None:
                    subscriber.fill_target = self._roster.latest
                    subscriber.fill_records = self._reader.distance(subscriber.position, self._roster.latest)
            done = [s for s in waiting if self._roster.is_filled(s)]
        self._roster.set_filled(done)
