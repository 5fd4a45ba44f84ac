"""A pipeline: one Spark streaming query over one scanned entity, and the views that hang on it.

The Spark callback evaluates a batch and hands it to the commit thread, so that DuckDB merges while Spark reads on.
Spark may then have committed more to its checkpoint than DuckDB holds; that is harmless, because every start is a new
checkpoint generation that begins at the ledger's position.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from mvserver import sqlstates
from mvserver.compiler.plans import ErrorHandling
from mvserver.errors import SqlError
from mvserver.streaming.evaluate import Evaluated, WholeProgramNeeded, evaluate_partials, evaluate_rows
from mvserver.streaming.generation import run_generation
from mvserver.streaming.program import Program, build_program
from mvserver.streaming.spark import SparkGate
from mvserver.streaming.spark_errors import is_data_error, sql_error
from mvserver.streaming.subscribers import Subscriber
from mvserver.streaming.targets import Target
from spark_sinks.base import Position, SourceReader
from spark_sinks.duckdb.ledger import LedgerEntry, RejectedRow, encode
from spark_sinks.duckdb.state import UpsertState
from spark_sinks.duckdb.writer import Commit, MergeError, Move, TableMerge, Writer

_log = logging.getLogger(__name__)

ROW_MODE_RECORDS_MAX = 20_000  # below, shipping evaluated records is cheaper than a shuffle (measured)
REDUCTION_WORTH = 0.5  # partial rows per record above which grouping in Spark does not pay
TRIAL_PAUSE_BATCHES = 50  # after a batch that needed the whole decoder, this many go straight to it
JOIN_RECORDS_MAX = 50_000  # a view this close to a batch's start is taken in with it
RETRY_DELAYS_S = (0.5, 1.0, 2.0, 5.0, 10.0)
HEALTH_INTERVAL_S = 3.0
_QUEUE_BATCHES = 1  # one batch merges while the next is evaluated; more would only hold memory


@dataclass(frozen=True)
class Share:
    """What one subscriber gets out of a batch: from ``start`` to ``end`` of its own reading."""

    subscriber: Subscriber
    start: Position
    end: Position
    records: int


@dataclass
class _Work:
    """An evaluated batch on its way to the commit thread."""

    entry: LedgerEntry | None
    parts: list[tuple[Evaluated, list[Share]]]
    done: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class PipelineServices:
    """What a pipeline is given: effects at the edges."""

    writer: Writer
    gate: SparkGate
    session: Callable[[], SparkSession]  # waits until Spark is up
    work_directory: Path
    records_per_trigger: int
    committed: Callable[[Sequence[str]], None]  # query ids whose views changed
    reached: Callable[[str], None] = lambda step: None
    health_interval_s: float = HEALTH_INTERVAL_S


class Pipeline:
    """Runs from ``start`` to ``stop``; subscribers come and go meanwhile."""

    def __init__(self, pipeline_id: str, reader: SourceReader, services: PipelineServices) -> None:
        self.id = pipeline_id
        self.reader = reader
        self._services = services
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._subscribers: dict[str, Subscriber] = {}
        self._programs: dict[tuple[str, ...], Program] = {}
        self._position: Position | None = None
        self._next: Position = {}
        self._generation = 0
        self._work: queue.Queue[_Work | None] = queue.Queue(_QUEUE_BATCHES)
        self._error: BaseException | None = None
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._reduction = 0.0
        self._large_batches = 0
        self._trial_pause = 0
        self.stalled: str | None = None
        self.latest: Position | None = None
        self.running = False

    # --- life -------------------------------------------------------------------------------------------------------
    @property
    def started(self) -> bool:
        return bool(self._threads)

    def start(self, position: Position | None) -> None:
        """``position`` is the ledger's; None where it has none, and the subscribers' own positions decide."""
        self._position = position
        for name, target in (
            ("run", self._run),
            ("commit", self._commit_loop),
            ("fill", self._fill_loop),
            ("health", self._health_loop),
        ):
            thread = threading.Thread(target=target, name=f"{name}-{self.id[:8]}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Between batches; what was evaluated is committed."""
        self._stopping.set()
        with self._lock:
            self._changed.notify_all()
        for thread in self._threads:
            if thread.name.startswith("commit"):
                continue
            thread.join()
        self._work.put(None)
        for thread in self._threads:
            thread.join()
        self.reader.close_stream()

    @property
    def subscribers(self) -> Sequence[Subscriber]:
        with self._lock:
            return list(self._subscribers.values())

    def add(self, subscriber: Subscriber) -> None:
        with self._lock:
            self._subscribers[subscriber.query_id] = subscriber
            self._changed.notify_all()

    def remove(self, query_id: str) -> None:
        """The subscriber gets no further batch; one under way leaves it out at its commit."""
        with self._lock:
            self._subscribers.pop(query_id, None)
            self._programs.clear()

    def restart_subscriber(self, query_id: str, *, skip_rejected: bool) -> None:
        with self._lock:
            subscriber = self._subscribers[query_id]
            subscriber.failure, subscriber.terminated = None, False
            subscriber.claimed = subscriber.position
            subscriber.skip_rejected_until = self._next if skip_rejected else None
            self._changed.notify_all()
        with self._services.writer.transaction() as ledger:
            ledger.set_failure(query_id, None)

    def terminate(self, query_id: str) -> None:
        with self._lock:
            self._subscribers[query_id].terminated = True

    # --- the Spark query --------------------------------------------------------------------------------------------
    def _run(self) -> None:
        attempt = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                self._run_generation()
            except Exception as error:  # noqa: BLE001 - whatever ended the query is shown as its cause
                self._note_failure(error)
            if time.monotonic() - began > 60:
                attempt = 0
            delay = RETRY_DELAYS_S[min(attempt, len(RETRY_DELAYS_S) - 1)]
            attempt += 1
            self._stopping.wait(delay)

    def _run_generation(self) -> None:
        session = self._services.session()
        self._work.join()  # what was evaluated is committed or given up: the ledger is the truth from here
        self._verify_new()
        with self._lock:
            wanted = [s.position for s in self._subscribers.values() if s.wants_batches]
            if not wanted:
                self._changed.wait(RETRY_DELAYS_S[1])  # nobody to read for
                return
            if self._position is None:
                self._position = self.reader.initial(wanted)
            position = self._next = self._position
            self._error = None
            for subscriber in self._subscribers.values():
                subscriber.claimed = subscriber.position
        with self._services.writer.transaction() as ledger:
            self._generation = ledger.begin_generation(self.id, position)
        checkpoint = self._services.work_directory / self.id / f"checkpoint-{self._generation}"
        run_generation(
            session,
            self.reader,
            position,
            checkpoint,
            records_per_trigger=self._services.records_per_trigger,
            on_batch=lambda frame, batch_id: self._take_batch(frame, batch_id, str(checkpoint)),
            ended=lambda: self._stopping.is_set() or self._error is not None or not self._wanted(),
            running=self._set_running,
        )
        if self._error is not None:
            raise self._error

    def _set_running(self, running: bool) -> None:
        self.running = running

    def _verify_new(self) -> None:
        """A view whose state was lost is rebuilt only where its source still has all that it was made of."""
        for subscriber in [s for s in self.subscribers if s.unverified and s.wants_batches]:
            try:
                self.reader.check_history(subscriber.position)
            except SqlError as error:
                if error.sqlstate != sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:
                    raise
                subscriber.fail(error)
                with self._services.writer.transaction() as ledger:
                    ledger.set_failure(subscriber.query_id, subscriber.failure)
            subscriber.unverified = False

    def _note_failure(self, error: BaseException) -> None:
        if self._stopping.is_set():
            return
        known = self._known_position()
        if known is None:
            return
        cause = self.reader.explain_failure(self._error or error, known)
        health = self.reader.health(known)
        _log.warning("pipeline %s stopped: %s (source %s: %s)", self.id, cause, health.state, health.cause)
        with self._lock:
            if health.state == "stalled":
                self.stalled = health.cause
            elif health.state == "ok":
                self.stalled = str(cause)  # tried again; a cause that stays is shown as long
        if health.state == "failed":
            self._fail_at(known, health.cause or str(cause))

    def _fail_at(self, position: Position, cause: str) -> None:
        """The source does not have what comes next at ``position``: the queries that stand there fail, durably. The
        pipeline begins anew where the others need it to, or waits until one does."""
        with self._lock:
            failed = [
                s for s in self._subscribers.values() if s.wants_batches and encode(s.position) == encode(position)
            ]
            for subscriber in failed:
                subscriber.failure = cause
            if self._position is not None and encode(self._position) == encode(position):
                self._position = None
                self._error = SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, cause)
            self._changed.notify_all()
        if failed:
            _log.warning("queries %s failed: %s", [s.query_id for s in failed], cause)
            with self._services.writer.transaction() as ledger:
                for subscriber in failed:
                    ledger.set_failure(subscriber.query_id, cause)

    def _take_batch(self, frame: DataFrame, batch_id: int, checkpoint: str) -> None:
        start = self._next
        end = self.reader.batch_end(checkpoint, batch_id, start)
        with self._lock:
            records = self.reader.distance(start, end)
            live = [s for s in self._subscribers.values() if self._takes(s, start)]
            joining = [s for s in self._subscribers.values() if s not in live and self._joins(s, start)]
            shares = [Share(s, start, end, records) for s in live]
            others = [Share(s, s.claimed, self.reader.advance(s.claimed, end), records) for s in joining]
            for share in (*shares, *others):
                share.subscriber.claimed = share.end
            self._next = end
        parts = []
        with self._services.gate.admitted():
            evaluated, kept = self._evaluate(frame, shares, records)
            parts.append((evaluated, kept))
            for share in others:
                span = self.reader.distance(share.start, end)
                own = self.reader.batch(self._services.session(), share.start, end)
                parts.append(self._evaluate(own, [share], span))
        entry = LedgerEntry(self.id, self._generation, batch_id, start, end, records)
        self._services.reached("after spark")
        self._enqueue(_Work(entry, parts))
        self._services.reached("before spark commit")

    def _takes(self, subscriber: Subscriber, start: Position) -> bool:
        """Not while a round of its history is under way, which could be committed after this batch."""
        ready = subscriber.wants_batches and not subscriber.unverified and not subscriber.busy
        return ready and encode(subscriber.claimed) == encode(start)

    def _joins(self, subscriber: Subscriber, start: Position) -> bool:
        if not subscriber.wants_batches or subscriber.busy or subscriber.unverified:
            return False
        return self.reader.distance(subscriber.claimed, start) <= JOIN_RECORDS_MAX

    def _enqueue(self, work: _Work) -> None:
        while not self._stopping.is_set() and self._error is None:
            try:
                self._work.put(work, timeout=0.2)
            except queue.Full:
                continue
            return
        if self._stopping.is_set():
            self._work.put(work)

    # --- evaluation -------------------------------------------------------------------------------------------------
    def _evaluate(self, frame: DataFrame, shares: list[Share], records: int) -> tuple[Evaluated, list[Share]]:
        """Evaluates all; where a record's value fails an expression, each alone, and the culprits fail alone."""
        try:
            return self._evaluate_together(frame, shares, records), shares
        except Exception as error:
            if not shares or not is_data_error(error):
                raise
            good = []
            for share in shares:
                try:
                    self._evaluate_together(frame, [share], records)
                except Exception as own:
                    if not is_data_error(own):
                        raise
                    self._fail_subscriber(share, sql_error(own))
                else:
                    good.append(share)
            return self._evaluate_together(frame, good, records), good

    def _evaluate_together(self, frame: DataFrame, shares: Sequence[Share], records: int) -> Evaluated:
        targets = [share.subscriber.target for share in shares]
        if not targets:
            return Evaluated((), (), {}, 0, None)
        if self._trial_pause == 0:
            try:
                return self._run_programs(frame, targets, records, trial=True)
            except WholeProgramNeeded:
                self._trial_pause = TRIAL_PAUSE_BATCHES
        else:
            self._trial_pause -= 1
        return self._run_programs(frame, targets, records, trial=False)

    def _run_programs(self, frame: DataFrame, targets: Sequence[Target], records: int, *, trial: bool) -> Evaluated:
        if records <= ROW_MODE_RECORDS_MAX or not self._grouping_pays():
            return evaluate_rows(frame, self._program(targets, trial), self.reader)
        upserts = [t for t in targets if isinstance(t.state, UpsertState)]
        appends = [t for t in targets if not isinstance(t.state, UpsertState)]
        if not upserts:
            return evaluate_rows(frame, self._program(appends, trial), self.reader)
        evaluated = evaluate_partials(frame, self._program(upserts, trial), self.reader)
        self._reduction = evaluated.rows / max(1, records)
        if appends:
            rows = evaluate_rows(frame, self._program(appends, trial), self.reader)
            # Rejected records are those of both jobs; the ledger keeps each once by its position.
            evaluated = Evaluated(
                (*evaluated.merges, *rows.merges),
                (*evaluated.rejected, *rows.rejected),
                {**rows.rejected_counts, **evaluated.rejected_counts},
                evaluated.rows + rows.rows,
                evaluated.newest_s or rows.newest_s,
            )
        return evaluated

    def _grouping_pays(self) -> bool:
        """By the last measured reduction; looked at again now and then, since data change."""
        self._large_batches += 1
        return self._reduction < REDUCTION_WORTH or self._large_batches % 20 == 0

    def _program(self, targets: Sequence[Target], trial: bool) -> Program:
        key = (str(trial), *(f"{t.query_id}:{t.state.table}" for t in targets))
        program = self._programs.get(key)
        if program is None:
            if len(self._programs) > 50:
                self._programs.clear()
            program = self._programs[key] = build_program(targets, trial=trial)
        return program

    def _fail_subscriber(self, share: Share, error: SqlError) -> None:
        _log.warning("query %s failed: %s", share.subscriber.query_id, error)
        with self._lock:
            share.subscriber.fail(error)
            share.subscriber.claimed = share.subscriber.position
            self._changed.notify_all()

    # --- commits ----------------------------------------------------------------------------------------------------
    def _commit_loop(self) -> None:
        while True:
            work = self._work.get()
            try:
                if work is None:
                    return
                if self._error is None:
                    self._commit(work)
            except Exception as error:  # noqa: BLE001 - ends the generation, which starts again from the ledger
                _log.exception("commit of pipeline %s failed", self.id)
                self._error = error
            finally:
                if work is not None:
                    work.done.set()
                self._work.task_done()

    def _commit(self, work: _Work) -> None:
        if work.entry is not None:
            self.reader.confirm(work.entry.start)
        while True:
            commit, shares = self._commit_of(work)
            try:
                self._services.writer.commit(commit)
            except MergeError as failed:
                for share in shares:
                    if share.subscriber.query_id == failed.query_id:
                        self._fail_subscriber(share, failed.error)
                continue
            break
        filled = []
        with self._lock:
            if work.entry is not None:
                self._position = work.entry.end
                self.stalled = None
            for evaluated, part in work.parts:
                for share in part:
                    if share not in shares:
                        continue
                    subscriber = share.subscriber
                    rejected = evaluated.rejected_counts.get(subscriber.target.plan.scan.relation_id, 0)
                    subscriber.committed(share.end, share.records, evaluated.rows, rejected, evaluated.newest_s)
                    if not subscriber.filled and self._is_filled(subscriber):
                        filled.append(subscriber)
            self._changed.notify_all()
        self._set_filled(filled)
        self._services.committed([share.subscriber.query_id for share in shares])

    def _commit_of(self, work: _Work) -> tuple[Commit, list[Share]]:
        """The transaction of a batch for the subscribers that still stand where it begins for them."""
        merges: list[TableMerge] = []
        rejected: list[RejectedRow] = []
        moves: list[Move] = []
        kept: list[Share] = []
        failures: list[tuple[str, str]] = []
        with self._lock:
            for evaluated, part in work.parts:
                taking = []
                for share in part:
                    subscriber = share.subscriber
                    if not self._still_wants(share):
                        subscriber.claimed = subscriber.position  # it catches up from where it stands
                        continue
                    stopped = self._stopped_by_rejected(share, evaluated)
                    if stopped is not None:
                        failures.append((subscriber.query_id, str(stopped)))
                        self._fail_subscriber(share, stopped)
                        continue
                    taking.append(share)
                left_out = frozenset(s.subscriber.query_id for s in part) - {s.subscriber.query_id for s in taking}
                merges.extend(evaluated.without(left_out).merges)
                if any(self._keeps_rejected(s, evaluated) for s in part):
                    rejected.extend(evaluated.rejected)
                moves.extend(Move((s.subscriber.query_id,), s.end) for s in taking)
                kept.extend(taking)
            failures.extend(
                (s.subscriber.query_id, s.subscriber.failure)
                for _, part in work.parts
                for s in part
                if s.subscriber.failure is not None and s.subscriber.query_id in self._subscribers
            )
        return Commit(work.entry, tuple(merges), tuple(rejected), _joined(moves), tuple(failures)), kept

    def _still_wants(self, share: Share) -> bool:
        subscriber = share.subscriber
        return (
            subscriber.failure is None
            and self._subscribers.get(subscriber.query_id) is subscriber
            and encode(subscriber.position) == encode(share.start)
        )

    def _stopped_by_rejected(self, share: Share, evaluated: Evaluated) -> SqlError | None:
        subscriber = share.subscriber
        relation_id = subscriber.target.plan.scan.relation_id
        if subscriber.policy is not ErrorHandling.TERMINATE or not evaluated.rejected_counts.get(relation_id):
            return None
        skip = subscriber.skip_rejected_until
        if skip is not None and self.reader.reached(skip, share.end):
            return None
        first = next(row for row in evaluated.rejected if row.relation_id == relation_id)
        return SqlError(
            sqlstates.DATA_EXCEPTION,
            f"record {first.position} cannot be decoded",
            detail=first.reason + ".",
            hint=f"RESTART QUERY {subscriber.query_id} SKIP REJECTED goes past it.",
        )

    def _keeps_rejected(self, share: Share, evaluated: Evaluated) -> bool:
        return bool(evaluated.rejected) and share.subscriber.policy is not ErrorHandling.IGNORE

    def _is_filled(self, subscriber: Subscriber) -> bool:
        target = subscriber.fill_target
        return target is not None and self.reader.reached(subscriber.position, target)

    def _set_filled(self, subscribers: Sequence[Subscriber]) -> None:
        if not subscribers:
            return
        with self._services.writer.transaction() as ledger:
            for subscriber in subscribers:
                ledger.set_filled(subscriber.query_id)
        with self._lock:
            for subscriber in subscribers:
                subscriber.filled = True
            self._changed.notify_all()

    # --- filling ----------------------------------------------------------------------------------------------------
    def _fill_loop(self) -> None:
        """Brings subscribers that stand behind the pipeline up to it, in rounds of bounded size."""
        while not self._stopping.is_set():
            self._verify_late()
            group = self._next_round()
            if not group:
                self._settle_targets()
                with self._lock:
                    self._changed.wait(0.2)
                continue
            try:
                self._fill_round(group)
            except Exception as error:  # noqa: BLE001 - shown as the queries' state and tried again
                self._fill_failed(group, error)
            finally:
                with self._lock:
                    for subscriber in group:
                        subscriber.busy = False

    def _verify_late(self) -> None:
        """Views that came while the pipeline was running."""
        if not self.running:
            return
        try:
            self._verify_new()
        except SqlError as error:
            with self._lock:
                self.stalled = str(error)

    def _next_round(self) -> list[Subscriber]:
        with self._lock:
            if self._position is None or not self.running:
                return []
            behind = [
                s
                for s in self._subscribers.values()
                if s.wants_batches
                and not s.unverified
                and encode(s.claimed) == encode(s.position)
                and encode(s.claimed) != encode(self._next)
                and not self.reader.reached(s.claimed, self._position)
            ]
            if not behind:
                return []
            first = encode(behind[0].claimed)
            group = [s for s in behind if encode(s.claimed) == first]
            for subscriber in group:
                subscriber.busy = True
            return group

    def _fill_round(self, group: list[Subscriber]) -> None:
        session = self._services.session()
        start, target = group[0].claimed, self._position
        assert target is not None  # noqa: S101 - rounds begin only when the pipeline stands somewhere
        end = self.reader.limit(start, target, self._services.records_per_trigger)
        end = self.reader.advance(start, end)
        records = self.reader.distance(start, end)
        shares = [Share(s, start, end, records) for s in group]
        with self._lock:
            for subscriber in group:
                subscriber.claimed = end
        with self._services.gate.admitted():
            part = self._evaluate(self.reader.batch(session, start, end), shares, records)
        work = _Work(None, [part])
        self._enqueue(work)
        while not work.done.wait(1.0):
            if self._stopping.is_set() or self._error is not None:
                break

    def _fill_failed(self, group: list[Subscriber], error: BaseException) -> None:
        cause = self.reader.explain_failure(error, group[0].position)
        _log.warning("filling %s failed: %s", [s.query_id for s in group], cause)
        gone = isinstance(cause, SqlError) and cause.sqlstate == sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE
        with self._lock:
            for subscriber in group:
                subscriber.claimed = subscriber.position
                if gone:
                    subscriber.failure = str(cause)
            if not gone:
                self.stalled = str(cause)
        self._stopping.wait(RETRY_DELAYS_S[2])

    def _settle_targets(self) -> None:
        """A query is filled when it reaches what its source had when the query was made, which may be nothing."""
        with self._lock:
            waiting = [s for s in self._subscribers.values() if not s.filled and s.failure is None]
            for subscriber in waiting:
                if subscriber.fill_target is None and self.latest is not None:
                    subscriber.fill_target = self.latest
                    subscriber.fill_records = self.reader.distance(subscriber.position, self.latest)
            done = [s for s in waiting if self._is_filled(s)]
        self._set_filled(done)

    # --- health -----------------------------------------------------------------------------------------------------
    def _health_loop(self) -> None:
        while not self._stopping.is_set():
            known = self._known_position()
            if known is None:
                self._stopping.wait(self._services.health_interval_s)
                continue
            health = self.reader.health(known)
            with self._lock:
                if health.latest is not None:
                    self.latest = health.latest
                if health.state == "stalled":
                    self.stalled = health.cause
                elif health.state == "ok":
                    if self.running:
                        self.stalled = None
                    now = time.time()
                    for subscriber in self._subscribers.values():
                        if health.latest is not None and self.reader.reached(subscriber.position, health.latest):
                            subscriber.last_confirmed_at = now
                self._changed.notify_all()
            if health.state == "failed":
                self._fail_at(known, health.cause or "the source failed")
            self._stopping.wait(self._services.health_interval_s)

    def _known_position(self) -> Position | None:
        """Where it stands, or would begin; None while nobody wants to know."""
        with self._lock:
            positions = [s.position for s in self._subscribers.values() if s.wants_batches]
            return (self._position or positions[0]) if positions else None

    def _wanted(self) -> bool:
        with self._lock:
            return any(s.wants_batches for s in self._subscribers.values())

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Until the condition holds, looked at whenever something changes."""
        with self._lock:
            return self._changed.wait_for(condition, timeout_s)


def _joined(moves: Sequence[Move]) -> tuple[Move, ...]:
    """One move for all subscribers that come to the same position."""
    by_position: dict[str, list[Move]] = {}
    for move in moves:
        by_position.setdefault(encode(move.position), []).append(move)
    return tuple(
        Move(tuple(query_id for move in same for query_id in move.query_ids), same[0].position)
        for same in by_position.values()
    )
