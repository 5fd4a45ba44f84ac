"""The commit thread of a pipeline: evaluated batches become DuckDB transactions, in their order."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Sequence

from mvserver import sqlstates
from mvserver.compiler.plans import ErrorHandling
from mvserver.errors import SqlError, words_of
from mvserver.streaming.batch.evaluate import Evaluated
from mvserver.streaming.pipeline.evaluated_batch import EvaluatedBatch, Share
from mvserver.streaming.pipeline.pace import Pace
from mvserver.streaming.pipeline.partition_watermarks import presence, standing, watched_state
from mvserver.streaming.pipeline.running_state import RunningState
from spark_sinks.base import SourceReader
from spark_sinks.duckdb.batch_plans import Advance, BatchCommit, Move, Presence, TableMerge
from spark_sinks.duckdb.ledger.ledger import RejectedRow, encode
from spark_sinks.duckdb.writer import MergeError, Writer

_log = logging.getLogger(__name__)

_QUEUE_BATCHES = 1  # one batch merges while the next is evaluated; more would only hold memory


class Committer:
    """``committed`` learns of the query ids whose views changed."""

    def __init__(
        self,
        state: RunningState,
        reader: SourceReader,
        writer: Writer,
        committed: Callable[[Sequence[str]], None],
    ) -> None:
        self._state = state
        self._reader = reader
        self._writer = writer
        self._committed = committed
        self._queue: queue.Queue[EvaluatedBatch | None] = queue.Queue(_QUEUE_BATCHES)
        self.pace = Pace()

    def put(self, batch: EvaluatedBatch) -> None:
        """Waits for room. Given up where the generation has ended with an error: it begins again from the ledger."""
        while self._state.error is None:
            try:
                self._queue.put(batch, timeout=0.2)
            except queue.Full:
                continue
            self.pace.queued()
            return
        batch.done.set()  # the error may be gone before who waits for the batch looks for it

    def await_writer(self, timeout_s: float) -> None:
        """Returns when nobody commits, or behind the timeout. Records that are taken then are newer when they are
        committed than those that were taken before another pipeline's commit, and waited for it."""
        if self._writer.commit_lock.acquire(timeout=timeout_s):
            self._writer.commit_lock.release()

    def settle(self) -> None:
        """Returns when all that was put is committed or given up."""
        self._queue.join()

    def finish(self) -> None:
        """Ends the loop behind what was put."""
        self._queue.put(None)

    def loop(self) -> None:
        while True:
            batch = self._queue.get()
            try:
                if batch is None:
                    return
                self.pace.began()
                began = time.monotonic()
                if self._state.error is None:
                    with self._state.stall.at_work():
                        self._commit(batch)
            except Exception as error:  # noqa: BLE001 - ends the generation, which starts again from the ledger
                self._writer.damage.notice(error)
                _log.exception("a commit failed")
                if batch is not None and batch.entry is None:
                    self._state.met(words_of(error), batch.subscribers)
                self._state.error = error
            finally:
                if batch is not None:
                    self.pace.ended()
                    batch.commit_s = time.monotonic() - began
                    batch.done.set()
                self._queue.task_done()

    def _commit(self, batch: EvaluatedBatch) -> None:
        start = batch.start
        if start is not None:
            self._reader.confirm(start)
        shares = self._write(batch)
        written = set(map(id, shares))
        filled = []
        with self._state.lock:
            self._state.rate.add(batch.records)
            if batch.entry is not None:
                self._state.position = batch.entry.end
                self._state.stall.committed()
            for evaluated, part in batch.parts:
                delivered = {delivery.query_id: delivery.rows for delivery in evaluated.deliveries}
                for share in part:
                    if id(share) not in written:
                        continue
                    subscriber = share.subscriber
                    rejected = evaluated.rejected_counts.get(subscriber.target.plan.scan.relation_id, 0)
                    subscriber.committed(share.end, share.records, evaluated.rows, rejected, evaluated.newest_s)
                    if subscriber.query_id in delivered:
                        subscriber.deliver(delivered[subscriber.query_id])
                    if not subscriber.filled and self._state.is_filled(subscriber):
                        filled.append(subscriber)
            self._state.changed.notify_all()
        self._state.set_filled(filled)
        self._committed([share.subscriber.query_id for share in shares])

    def _write(self, batch: EvaluatedBatch) -> list[Share]:
        """The shares that are in DuckDB now. Who takes part is decided under the lock of the transaction: whoever has
        taken a query away, and then waited for that lock, meets no batch of it any more."""
        with self._writer.commit_lock:
            while True:
                commit, shares = self._commit_of(batch)
                try:
                    self._writer.commit(commit)
                except MergeError as failed:
                    for share in shares:
                        if share.subscriber.query_id == failed.query_id:
                            self._state.fail(share.subscriber, failed.error)
                    continue
                self._note_partitions(commit, shares)
                return shares

    def _note_partitions(self, commit: BatchCommit, shares: Sequence[Share]) -> None:
        noted = {each.query_id: each.partitions for each in commit.presences}
        with self._state.lock:
            for subscriber in (share.subscriber for share in shares if share.subscriber.query_id in noted):
                subscriber.partitions = noted[subscriber.query_id]

    def _commit_of(self, batch: EvaluatedBatch) -> tuple[BatchCommit, list[Share]]:
        """The transaction of a batch for the subscribers that still stand where it begins for them."""
        merges: list[TableMerge] = []
        rejected: list[RejectedRow] = []
        moves: list[Move] = []
        kept: list[Share] = []
        stopped: list[tuple[Share, SqlError]] = []
        with self._state.lock:
            for evaluated, part in batch.parts:
                taking = []
                for share in part:
                    if not self._still_wants(share):
                        share.subscriber.claimed = share.subscriber.position  # it catches up from where it stands
                        continue
                    refused = self._stopped_by_rejected(share, evaluated)
                    if refused is not None:
                        stopped.append((share, refused))
                        continue
                    taking.append(share)
                left_out = frozenset(s.subscriber.query_id for s in part) - {s.subscriber.query_id for s in taking}
                merges.extend(evaluated.without(left_out).merges)
                keeping = {
                    s.subscriber.target.plan.scan.relation_id
                    for s in part
                    if s.subscriber.kept and s.subscriber.policy is not ErrorHandling.IGNORE
                }
                rejected.extend(row for row in evaluated.rejected if row.relation_id in keeping)
                moves.extend(Move((s.subscriber.query_id,), s.end) for s in taking if s.subscriber.kept)
                kept.extend(taking)
        for share, refused in stopped:
            self._state.fail(share.subscriber, refused)
        advances, presences = self._advances(kept), self._presences(kept)
        commit = BatchCommit(
            batch.entry, tuple(merges), tuple(rejected), _joined(moves), advances=advances, presences=presences
        )
        return commit, kept

    def _presences(self, shares: Sequence[Share]) -> tuple[Presence, ...]:
        """The partitions of the sides that do not know them."""
        with self._state.lock:
            found = [presence(share.subscriber, share.end, self._reader) for share in shares]
        return tuple(each for each in found if each is not None)

    def _advances(self, shares: Sequence[Share]) -> tuple[Advance, ...]:
        """The partitions behind the watermark of each windowed view."""
        found = []
        with self._state.lock:
            for share in shares:
                subscriber = share.subscriber
                state = watched_state(subscriber.target)
                if state is not None:
                    subscriber.standing = standing(subscriber, share.end, self._reader, self._state)
                    found.append(Advance(subscriber.standing, state, subscriber.target.keeper))
        return tuple(found)

    def _still_wants(self, share: Share) -> bool:
        subscriber = share.subscriber
        return (
            subscriber.failure is None
            and self._state.has(subscriber)
            and encode(subscriber.position) == encode(share.start)
        )

    def _stopped_by_rejected(self, share: Share, evaluated: Evaluated) -> SqlError | None:
        subscriber = share.subscriber
        relation_id = subscriber.target.plan.scan.relation_id
        if subscriber.policy is not ErrorHandling.TERMINATE or not evaluated.rejected_counts.get(relation_id):
            return None
        skip = subscriber.skip_rejected_until
        if skip is not None and self._reader.positions.reached(skip, share.end):
            return None
        first = next(row for row in evaluated.rejected if row.relation_id == relation_id)
        return SqlError(
            sqlstates.DATA_EXCEPTION,
            f"record {first.position} cannot be decoded",
            detail=first.reason + ".",
            hint=f"RESTART QUERY {subscriber.query_id} SKIP REJECTED goes past it.",
        )


def _joined(moves: Sequence[Move]) -> tuple[Move, ...]:
    """One move for all subscribers that come to the same position."""
    by_position: dict[str, list[Move]] = {}
    for move in moves:
        by_position.setdefault(encode(move.position), []).append(move)
    return tuple(
        Move(tuple(query_id for move in same for query_id in move.query_ids), same[0].position)
        for same in by_position.values()
    )
