"""A pipeline: one Spark streaming query over one scanned entity, and the views that hang on it.

The Spark callback evaluates a batch and hands it to the commit thread, so that DuckDB merges while Spark reads on.
Spark may then have committed more to its checkpoint than DuckDB holds; that is harmless, because every start is a new
checkpoint generation that begins at the ledger's position.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from mvserver import limits, sqlstates
from mvserver.errors import SqlError, words_of
from mvserver.streaming.batch.evaluate import Evaluated
from mvserver.streaming.live.choice import LaneChoice
from mvserver.streaming.live.ended import LaneEnded, LiveRefused
from mvserver.streaming.live.lanes import NO_LANES, LiveLanes, Slots
from mvserver.streaming.live.run import LiveRun, LiveServices
from mvserver.streaming.pipeline.attempts import attempts
from mvserver.streaming.pipeline.committer import Committer
from mvserver.streaming.pipeline.evaluated_batch import EvaluatedBatch, Share
from mvserver.streaming.pipeline.evaluator import BatchEvaluator
from mvserver.streaming.pipeline.filler import Filler
from mvserver.streaming.pipeline.generation import run_batches
from mvserver.streaming.pipeline.log_batches import LogBatches
from mvserver.streaming.pipeline.partition_watermarks import close_idle
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.source_watch import SourceWatch, explained, health_of
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.spark.batch_watch import BatchUnwanted
from mvserver.streaming.spark.guard import Range, SparkGuard, Unguarded
from mvserver.streaming.spark.isolation import IsolatedError
from mvserver.streaming.spark.session import SparkGate
from mvserver.streaming.spark.state import SparkLostError
from spark_sinks.base import Position, Positions, SourceReader
from spark_sinks.duckdb.ledger.ledger import LedgerEntry, encode
from spark_sinks.duckdb.writer import Writer

_log = logging.getLogger(__name__)

HEALTH_INTERVAL_S = 3.0
_FULL = 2  # a batch of more than one part in so many of the most records is one of a backlog
_LOOK_S = 1.0  # while nobody reads: what makes a query wait may pass without a word
LASTING = frozenset(  # causes that another try does not mend
    {sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, sqlstates.DATATYPE_MISMATCH, sqlstates.DATA_CORRUPTED}
)


@dataclass(frozen=True)
class PipelineServices:
    """What a pipeline is given: effects at the edges."""

    writer: Writer
    gate: SparkGate
    session: Callable[[Callable[[], bool]], SparkSession]  # waits for Spark, or until it need not
    work_directory: Path
    records_per_trigger: int
    committed: Callable[[Sequence[str]], None]  # query ids whose views changed
    failed: Callable[[], None] = lambda: None  # some queries have failed
    reached: Callable[[str], None] = lambda step: None
    health_interval_s: float = HEALTH_INTERVAL_S
    batch_timeout_s: float = limits.BATCH_TIMEOUT_S
    guard: SparkGuard = field(default_factory=Unguarded)
    live: LiveLanes = NO_LANES


class Pipeline:
    """Runs from ``start`` to ``stop``; subscribers come and go meanwhile."""

    def __init__(self, pipeline_id: str, reader: SourceReader, services: PipelineServices) -> None:
        self.id = pipeline_id
        self.reader = reader
        self._services = services
        self._stopping = threading.Event()
        self._state = RunningState(
            reader,
            services.writer,
            records_max=services.records_per_trigger,
            failed=services.failed,
            is_suspect=lambda: services.guard.is_suspect(pipeline_id),
        )
        self._evaluator = BatchEvaluator(
            reader,
            self._state.fail,
            timeout_s=services.batch_timeout_s,
            still_wants=self._still_wants,
            noticed=self._noticed,
        )
        self._log_batches = None if reader.logged is None else LogBatches(reader, reader.logged)
        self._committer = Committer(self._state, reader, services.writer, services.committed)
        self._watch = SourceWatch(
            self._state,
            reader,
            interval_s=services.health_interval_s,
            stopping=self._stopping,
            looked=self._looked,
        )
        self._filler = Filler(
            self._state,
            reader,
            self._evaluator,
            self._committer,
            pipeline_id=pipeline_id,
            session=services.session,
            gate=services.gate,
            guard=services.guard,
            end_of_look=self._watch.answer,
            stopping=self._stopping,
            cores=services.live.cores,
        )
        self._lane = LaneChoice(
            reader, self._state, services.live, is_suspect=lambda: services.guard.is_suspect(pipeline_id)
        )
        self._generation = 0
        self._threads: list[threading.Thread] = []

    # --- life -------------------------------------------------------------------------------------------------------
    @property
    def started(self) -> bool:
        return bool(self._threads)

    def start(self, position: Position | None) -> None:
        """``position`` is the ledger's; None where it has none, and the subscribers' own positions decide."""
        self._state.position = position
        for name, target in (
            ("run", self._run),
            ("commit", self._committer.loop),
            ("fill", self._filler.loop),
            ("health", self._watch.loop),
        ):
            thread = threading.Thread(target=target, name=f"{name}-{self.id[:8]}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def give_up(self) -> None:
        """It stops soon, and nothing is waited for."""
        self._stopping.set()
        self.reader.give_up()
        self._watch.stop()
        self._committer.pace.wake()
        with self._state.lock:
            self._state.changed.notify_all()

    def stop(self) -> None:
        """Between batches; what was evaluated is committed."""
        self.give_up()
        for thread in self._threads:
            if thread.name.startswith("commit"):
                continue
            thread.join()
        self._committer.finish()
        for thread in self._threads:
            thread.join()
        self.reader.close()

    @property
    def subscribers(self) -> Sequence[Subscriber]:
        return self._state.all()

    @property
    def stalled(self) -> str | None:
        """Why the source does not answer, or a query does not run at this moment."""
        return self._state.stalled

    def stalled_of(self, subscriber: Subscriber) -> str | None:
        """The same of one of its queries."""
        return self._state.stalled_of(subscriber)

    @property
    def standstill(self) -> str | None:
        """The same as a sentence."""
        return self._state.standstill()

    @property
    def latest(self) -> Position | None:
        """The source's end when it was last asked."""
        return self._state.latest

    @property
    def running(self) -> bool:
        return self._state.running

    @property
    def generation(self) -> int:
        """0 before the first one of this process."""
        return self._generation

    @property
    def lane(self) -> str:
        """``live`` or ``batch``."""
        return self._lane.lane

    @property
    def lane_reason(self) -> str | None:
        """Why it is not live."""
        return self._lane.reason

    @property
    def position(self) -> Position | None:
        return self._state.known_position()

    @property
    def records_per_s(self) -> float:
        return self._state.rate.per_second()

    def ask_end(self) -> int:
        """Asks the source where it ends from now on; :meth:`end_answered` has what it says, as :meth:`wait` tells."""
        return self._watch.ask()

    def end_answered(self, number: int) -> Position | None:
        return self._watch.answer(number)

    def confirmed_at(self, subscriber: Subscriber) -> float | None:
        """The latest moment of which the view is known to have all that its source had."""
        return self._watch.confirmed_at(subscriber)

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        return self._state.wait(condition, timeout_s)

    def awaiting(self, end: Position | None) -> AbstractContextManager[None]:
        """As long as somebody waits until all before ``end`` is committed, and the live lane hastens; None: until that
        end is known."""
        return self._state.awaiting(end)

    def add(self, subscriber: Subscriber) -> None:
        with self._state.lock:
            if not subscriber.filled:
                subscriber.fill_look = self._watch.ask()  # what was last seen may be older than the query
            self._state.add(subscriber)

    def remove(self, query_id: str) -> Subscriber | None:
        """The subscriber gets no further batch; one under way leaves it out at its commit."""
        with self._state.lock:
            removed = self._state.subscribers.pop(query_id, None)
            self._evaluator.forget()
            return removed

    def fail(self, subscriber: Subscriber, error: SqlError) -> None:
        """It fails where it stands; the others go on."""
        self._state.fail(subscriber, error)

    def restart_subscriber(self, query_id: str, *, skip_rejected: bool) -> None:
        with self._state.lock:
            subscriber = self._state.subscribers[query_id]
            subscriber.failure, subscriber.terminated, subscriber.stalled = None, False, None
            subscriber.claimed = subscriber.position
            if self._state.stands_elsewhere(subscriber):
                subscriber.unverified = True  # it fails alone, before a batch meets it
            subscriber.skip_rejected_until = (self._state.next or self._state.latest) if skip_rejected else None
            self._state.changed.notify_all()
        with self._services.writer.transaction() as ledger:
            ledger.set_failure(query_id, None)

    def terminate(self, query_id: str) -> None:
        with self._state.lock:
            self._state.subscribers[query_id].terminated = True

    # --- the Spark query --------------------------------------------------------------------------------------------
    def _run(self) -> None:
        for _ in attempts(self._stopping):
            self._await_reader()
            if self._stopping.is_set():
                return
            try:
                self._run_generation()
            except Exception as error:  # noqa: BLE001 - whatever ended the query is shown as its cause
                self._noted(error)

    def _await_reader(self) -> None:
        """Until somebody wants what is read."""
        with self._state.lock:
            while not self._stopping.is_set() and not self._state.wanted():
                self._state.changed.wait(_LOOK_S)

    def _run_generation(self) -> None:
        session = self._services.session(self._stopping.is_set)
        try:
            with self._services.guard.noticing(session):
                while self._run_generation_in(session):
                    pass
        finally:
            self._state.running = False

    def _run_generation_in(self, session: SparkSession) -> bool:
        """Whether it ended for the other lane alone, which goes on at once."""
        guard = self._services.guard
        self._committer.settle()  # what was evaluated is committed or given up: the ledger is the truth from here
        if self._state.error is not None:
            self._state.follow_ledger(self.id)
        self._state.error = None  # what ended the last generation explains nothing that fails from here on
        self._state.verify_new()
        with self._state.lock:
            wanted = [s.position for s in self._state.subscribers.values() if s.wants_batches and not s.unverified]
            if not wanted:
                return False  # those who were waited for cannot be read for
            if self._state.position is None:
                self._state.position = self.reader.positions.initial(wanted)
            position = self._state.next = self._state.position
            for subscriber in self._state.subscribers.values():
                subscriber.claimed = subscriber.position
            slots = len(self.reader.positions.partitions(position)) if self._lane.obstacle() is None else 0
            subscribers = list(self._state.wanted())
        self._committer.pace.begin()
        with self._services.writer.transaction() as ledger:
            self._generation = ledger.begin_generation(self.id, position)
        checkpoint = self._services.work_directory / self.id / f"checkpoint-{self._generation}"
        taken = self._services.live.take(slots) if slots else None
        if taken is not None:
            try:
                return self._run_live(session, position, checkpoint, subscribers, taken)
            finally:
                taken.give_back()
        self._lane.batches_began()

        def on_batch(frame: Callable[[], DataFrame], batch_id: int) -> None:
            with self._state.stall.at_work():
                self._take_batch(session, frame, batch_id, str(checkpoint))

        records_max, running = guard.records_max(self.id, self._state.records_max), self._set_running

        def ended() -> bool:
            return self._is_over(session) or self._may_have_more(records_max) or self._may_go_live()

        run_batches(
            session, self.reader, position, checkpoint,
            records_per_trigger=records_max, on_batch=on_batch, ended=ended, running=running,
        )  # fmt: skip
        if self._state.error is not None:
            raise self._state.error
        self._state.running = again = not self._is_over(session) and self._may_go_live()
        return again

    def _is_over(self, session: SparkSession) -> bool:
        over = self._stopping.is_set() or self._state.error is not None or not self._state.wanted()
        return over or not self._services.guard.is_current(session)

    def _may_go_live(self) -> bool:
        return self._lane.obstacle() is None

    def _run_live(
        self,
        session: SparkSession,
        position: Position,
        checkpoint: Path,
        subscribers: Sequence[Subscriber],
        slots: Slots,
    ) -> bool:
        """What ends it besides the pipeline itself is shown, and left to the batch lane: that meets it again where it
        is more than a reason to leave this one."""
        services = LiveServices(
            pipeline_id=self.id,
            state=self._state,
            reader=self.reader,
            committer=self._committer,
            ended=lambda: self._is_over(session),
            takes=self._takes,
            evaluated=self._live_evaluated,
            reached=self._services.reached,
            addresses=self._services.live.addresses,
            gives_up=slots.give_up,
        )
        began, cause = time.monotonic(), None
        try:
            LiveRun(services, self._generation, position, subscribers).run(session, checkpoint, self._live_began)
        except LaneEnded as ended:
            cause = ended
        except Exception as error:  # noqa: BLE001 - the batch lane meets it again, and tells whose failure it is
            cause = LaneEnded(words_of(error))
        finally:
            self._lane.live_ended(cause, time.monotonic() - began)
        if isinstance(cause, LiveRefused):
            self._lane.refused(subscribers)
        if cause is not None:
            _log.info("pipeline %s leaves the live lane: %s", self.id, cause.reason)
        if self._state.error is not None:
            raise self._state.error
        return not self._is_over(session)

    def _live_began(self) -> None:
        self._lane.live_began()
        self._set_running(True)

    def _live_evaluated(self, seconds: float) -> None:
        self._services.gate.has_seen_live()
        self._filler.size.live_evaluated(seconds)

    def _may_have_more(self, records_max: int) -> bool:
        """Whether batches were kept small for a time that is over."""
        wanted = self._state.records_max
        return records_max < wanted and records_max < self._services.guard.records_max(self.id, wanted)

    def _set_running(self, running: bool) -> None:
        self._state.running = running

    def _noted(self, error: Exception) -> None:
        """The thread goes on whatever hinders it in telling whose failure it was."""
        try:
            self._note_failure(error)
        except Exception as hindrance:  # noqa: BLE001 - shown as the cause, and the generation is tried again
            self._state.notice(hindrance)
            _log.exception("what ended pipeline %s could not be noted: %s", self.id, words_of(error))
            self._state.met(words_of(error))

    def _note_failure(self, error: BaseException) -> None:
        if self._stopping.is_set() or isinstance(error, BatchUnwanted):
            return
        if isinstance(error, SparkLostError):  # all queries show it as long as Spark is not there
            _log.info("pipeline %s stopped: %s", self.id, error.detail)
            return
        if self._state.shrink_batches(error):
            return
        if self._state.notice(error):  # no query is to blame
            self._state.met(words_of(error))
            return
        if isinstance(error, IsolatedError):
            self._committer.settle()  # the batches before it count; the queries fail behind them
        known = self._state.known_position()
        if known is None:
            return
        cause = explained(self.reader, self._state.error or error, known)
        health = health_of(self.reader, known)
        _log.warning("pipeline %s stopped: %s (source %s: %s)", self.id, cause, health.state, health.cause)
        if health.state == "stalled":
            self._state.stall.silent(health.cause or words_of(cause))
        elif health.state == "ok":
            self._state.met(words_of(cause))  # tried again; a cause that stays is shown as long
        if health.state == "failed":
            self._state.fail_at(known, health.cause or words_of(cause))
        elif isinstance(cause, SqlError) and cause.sqlstate in LASTING:
            self._state.fail_at(known, words_of(cause))

    def _take_batch(
        self, session: SparkSession, frame: Callable[[], DataFrame], batch_id: int, checkpoint: str
    ) -> None:
        positions, start = self.reader.positions, self._state.next
        end = self.reader.batch_end(checkpoint, batch_id, start)
        with self._state.lock:
            records = positions.distance(start, end)
            self._lane.batch_taken(records)
            live = [s for s in self._state.subscribers.values() if self._takes(s, start) and s.takes(records)]
            joining = [
                s
                for s in self._state.subscribers.values()
                if s not in live and self._state.joins(s, start) and s.takes(positions.distance(s.claimed, end))
            ]
            shares = [Share(s, start, end, records) for s in live]
            others = [Share(s, s.claimed, positions.advance(s.claimed, end), records) for s in joining]
            for share in (*shares, *others):
                share.subscriber.claimed = share.end
            self._state.next = end
            self._state.last_batch_at = time.monotonic()
        parts = self._evaluated(session, frame, shares, others, Range(self.id, positions, start, end))
        entry = LedgerEntry(self.id, self._generation, batch_id, start, end, records)
        self._services.reached("after spark")
        self._committer.pace.evaluated()
        self._committer.put(EvaluatedBatch(entry, parts))
        if self._is_backlog(records):
            self._committer.pace.release()
        else:
            self._committer.pace.await_turn(lambda: self._stopping.is_set() or self._state.error is not None)
        self._services.reached("before spark commit")

    def _evaluated(
        self,
        session: SparkSession,
        frame: Callable[[], DataFrame],
        shares: list[Share],
        others: Sequence[Share],
        whole: Range,
    ) -> list[tuple[Evaluated, list[Share]]]:
        """Each of the ``others`` has a range of its own."""
        in_duckdb = None if self._log_batches is None else self._log_batches.evaluate([*shares, *others])
        if in_duckdb is not None:
            return in_duckdb
        records, services = self.reader.positions.distance(whole.start, whole.end), self._services
        read = replace(whole, start=_least(self.reader.positions, [whole.start, *(share.start for share in others)]))
        with services.guard.evaluating(session, read, services.gate.admitted(), self._stopping.is_set):
            began = time.monotonic()
            tasks_max = self._services.live.cores
            parts = [self._evaluator.evaluate(frame(), shares, records, tasks_max=tasks_max)]
            for share in others:
                own = self._frame_of(session, share)
                if own is not None:
                    span = self.reader.positions.distance(share.start, share.end)
                    parts.append(self._evaluator.evaluate(own, [share], span, tasks_max=tasks_max))
            evaluation_s = time.monotonic() - began
        if not self._is_backlog(records):
            self._filler.size.live_evaluated(evaluation_s)
        self._state.grow_batches(records)
        return parts

    def _frame_of(self, session: SparkSession, share: Share) -> DataFrame | None:
        """What a view lacks that joins the batch. One that cannot have it fails alone: the others have read on."""
        try:
            return self.reader.batch(session, share.start, share.end)
        except SqlError as error:
            if error.sqlstate not in LASTING:
                raise
            self._state.fail(share.subscriber, error)
            return None

    def _still_wants(self, subscriber: Subscriber) -> bool:
        """Whether a batch that takes long goes on for it."""
        return not self._stopping.is_set() and self._state.has(subscriber) and not subscriber.query_terminated

    def _noticed(self, words: str, shares: Sequence[Share]) -> None:
        self._state.met(words, [share.subscriber for share in shares if share.subscriber.busy])

    def _is_backlog(self, records: int) -> bool:
        return records * _FULL > self._state.records_max

    def _looked(self) -> None:
        self._close_idle()
        self._state.release(self.id)

    def _close_idle(self) -> None:
        """A window may close although nothing comes any more."""
        try:
            moved = close_idle(self._state, self.reader, self._services.writer)
        except Exception as error:  # noqa: BLE001 - the next look tries again, and a batch meets the same cause
            self._state.notice(error)
            _log.warning("watermarks of pipeline %s were not moved: %s", self.id, error)
            return
        if moved:
            self._services.committed(moved)

    def _takes(self, subscriber: Subscriber, start: Position) -> bool:
        """Not while a round of its history is under way, which could be committed after this batch."""
        ready = subscriber.wants_batches and not subscriber.unverified and not subscriber.busy
        return ready and encode(subscriber.claimed) == encode(start)


def _least(positions: Positions, starts: Sequence[Position]) -> Position:
    """Where the earliest of these begins: all that is read together is behind it."""
    least = starts[0]
    for start in starts[1:]:
        if positions.reached(least, start):
            least = start
    return least
