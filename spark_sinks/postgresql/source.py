"""One table as Spark reads it: its rows at a place of the log, then the changes that commit behind it, each once.

A slot of the pipeline's own keeps the changes until they are released, which is after they are in the ledger. They are
received once, into a spool, and read from there by the live batches and by the rounds of views that stand behind. A
view that begins with the present rows has a snapshot of its own, from a temporary slot, and goes on from its LSN.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import KeptHistory, Position, RecordOrder
from spark_sinks.postgresql import positions as at
from spark_sinks.postgresql import slots, timelines
from spark_sinks.postgresql.capture import Capture
from spark_sinks.postgresql.changes import ChangeRecords, KnownTable, known_now
from spark_sinks.postgresql.connections import Connection, connect, reported, stopping
from spark_sinks.postgresql.frames import PLACE, Frames
from spark_sinks.postgresql.health import TableHealth, behind_slot, left_behind
from spark_sinks.postgresql.held_slot import HeldSlot
from spark_sinks.postgresql.limits import (
    PIN_S,
    POSTGRES_TIMEOUT_S,
    SLOT_LAG_WARNING_BYTES,
    SLOT_TIMEOUT_S,
    START_TIMEOUT_S,
)
from spark_sinks.postgresql.options import PostgresOptions
from spark_sinks.postgresql.positions import Origin, PostgresPositions
from spark_sinks.postgresql.replication import ReplicationStream
from spark_sinks.postgresql.snapshot import SnapshotFiles, position_in
from spark_sinks.postgresql.spool import Spool
from spark_sinks.postgresql.tables import SourceTable, check_identity, check_key, find_table, no_entity

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger(__name__)
_PAUSE_S = 0.1


class PostgresReader:
    """A :class:`spark_sinks.base.SourceReader` over one table, and what keeps its history (``held``)."""

    logged = schemas = live = None

    def __init__(
        self,
        store: str,
        options: PostgresOptions,
        entity: str,
        work: Path,
        *,
        keyed: bool,
        timeout_s: float = POSTGRES_TIMEOUT_S,
        record_bytes_max: int,
        slot: str | None = None,
    ) -> None:
        """``keyed``: records are rows of a changelog. The ``slot`` is as a statement names it, or after the folder
        ``work``, which is the pipeline's."""
        self._store = store
        self._options = options
        self._entity = entity
        self._work = work
        self._keyed = keyed
        self._timeout_s = timeout_s
        self._record_bytes_max = record_bytes_max
        self._opening = threading.RLock()  # one thread makes the slot and the spool, or takes them away
        self._lock = threading.RLock()
        self._given_up = threading.Event()
        self._held_slot = HeldSlot(store, slot, work, timeout_s=timeout_s, given_up=self._given_up)
        self.slot, self._publication = self._held_slot.name, self._held_slot.publication
        self._admin: Connection | None = None
        self._admin_lock = threading.Lock()
        self._spool: Spool | None = None
        self._capture: Capture | None = None
        self._origin: Origin | None = None
        self._is_stale = False  # the spool has what the server's log does not have any more
        self._former: dict[int, Mapping[int, int]] = {}  # of a timeline: those that it comes from
        self._table: KnownTable | None = None
        self._source: SourceTable | None = None  # as it was when the spool was begun
        self._read = 0  # the LSN that the live reader has come to
        self._wanted = 0  # the LSN that somebody waits for
        self._seen = 0  # the spool's version when it was last asked
        self._pins: dict[str, tuple[int, float]] = {}  # starts of queries that are being made: LSN, until when
        self._snapshots = SnapshotFiles(work / "snapshots")
        self._unclaimed: set[str] = set()  # snapshots that no position is in yet
        self._frames = Frames(work / "frames")
        self._batch_end: Position = {}
        self._warned_at = 0.0
        self._retained: int | None = None  # bytes of the log that the slot holds back, at the last look
        self.positions = PostgresPositions(self._count, self._limited)
        self.health = TableHealth(
            store,
            entity,
            self.slot,
            self._publication,
            ask=self._ask,
            known=lambda: self._table if self._keyed else None,
            former=self._former_timelines,
            is_published=self._held_slot.is_published,
            problem=self._problem,
            wanted=self._want,
            check_start=self._check_start,
        )

    @property
    def rounds(self) -> PostgresReader:
        return self

    @property
    def held(self) -> PostgresReader:
        return self

    # --- the server -------------------------------------------------------------------------------------------------
    def _ask(self) -> tuple[slots.ServerState, SourceTable | None]:
        with self._admin_lock:
            if self._admin is None or self._admin.closed or self._admin.broken:
                self._admin = self._connect()
            try:
                state = slots.look(self._store, self._admin, self.slot, self._publication)
                with reported(self._store):
                    table = find_table(self._admin, self._entity)
            except SqlError:
                capture = self._capture
                if self._admin.broken and capture is not None:  # and not where it is merely slow
                    capture.connect_again()
                raise
        self._warn(state)
        return state, table

    def _warn(self, state: slots.ServerState) -> None:
        """Before the server's disk fills."""
        self._retained = None if state.slot is None else state.slot.retained
        held = self._retained or 0
        if held > SLOT_LAG_WARNING_BYTES and time.monotonic() - self._warned_at > 60:
            self._warned_at = time.monotonic()
            _log.warning(
                "replication slot %s of store %s holds back %s MB of the server's log",
                self.slot, self._store, held // 1_000_000,
            )  # fmt: skip

    def _connect(self) -> Connection:
        return connect(
            self._store,
            self._options,
            timeout_s=self._timeout_s,
            statement_timeout_s=self._timeout_s,
            given_up=self._given_up.is_set,
        )

    def _stream(self, given_up: Callable[[], bool] | None = None) -> ReplicationStream:
        return ReplicationStream(
            self._store, self._options, timeout_s=self._timeout_s, given_up=given_up or self._given_up.is_set
        )

    def _continued(self, given_up: Callable[[], bool]) -> ReplicationStream:
        """For the capture, each time that it connects: what is sent next follows what the spool has."""
        stream = self._stream(given_up)
        try:
            self._check_continues(stream, slots.look(self._store, stream.connection, self.slot, self._publication))
        except BaseException:
            stream.close()
            raise
        return stream

    def _check_continues(self, stream: ReplicationStream, state: slots.ServerState) -> None:
        with self._lock:
            spool, origin, table = self._spool, self._origin, self._source
        if spool is None or origin is None or table is None:
            raise stopping()
        if state.system == origin.system and state.timeline != origin.timeline:
            with reported(self._store):
                former = timelines.former(stream.connection, state.timeline)
            self._follow(state.timeline, left_behind(self._store, origin.at(spool.end), state.timeline, former))
        lacking = self.health.missing(origin.on(state.timeline).at(spool.end), state)
        if lacking is not None:
            raise lacking
        start = self._held_slot.start(state, table)
        if isinstance(start, SqlError):
            raise start

    def _follow(self, timeline: int, lacking: SqlError | None) -> None:
        """The server is on another timeline now. Where that lacks some of what was received, all is received anew, and
        each position is judged by itself."""
        with self._lock:
            if lacking is None and self._origin is not None:
                self._origin = self._origin.on(timeline)
                return
            self._is_stale = True
        raise self._read_anew()

    def _read_anew(self) -> SqlError:
        return SqlError(
            sqlstates.CONNECTION_FAILURE,
            f'the changes of table "{self._entity}" of store "{self._store}" are received anew',
            detail="Its slot was made anew, or its server does not have all that was received.",
        )

    def _former_timelines(self, timeline: int) -> Mapping[int, int]:
        known = self._former.get(timeline)
        if known is None:
            stream = self._stream()
            try:
                with reported(self._store):
                    known = self._former[timeline] = timelines.former(stream.connection, timeline)
            finally:
                stream.close()
        return known

    # --- opening ----------------------------------------------------------------------------------------------------
    @contextmanager
    def _turn_to_open(self, within_s: float) -> Iterator[None]:
        if not self._opening.acquire(timeout=within_s):
            raise SqlError(
                sqlstates.OBJECT_IN_USE,
                f'table "{self._entity}" of store "{self._store}" is still busy',
                detail="Another query over it is about to begin, and waits for the transactions that run there.",
                hint="Try again.",
            )
        try:
            yield
        finally:
            self._opening.release()

    def _opened(self, *, create_within_s: float | None = None) -> Spool:
        """The spool, which begins where the slot does. Without ``create_within_s`` the slot must be there."""
        return self._opened_or_made(create_within_s)[0]

    def _opened_or_made(self, create_within_s: float | None) -> tuple[Spool, bool]:
        """Also whether the slot was made by this call, so that nothing of the past is in it."""
        with self._lock:
            if self._spool is not None and not self._is_stale:
                return self._spool, False
        with self._turn_to_open(SLOT_TIMEOUT_S if create_within_s is None else create_within_s):
            with self._lock:
                if self._spool is not None and not self._is_stale:
                    return self._spool, False
            if self._given_up.is_set():
                raise stopping()
            if self._is_stale:
                self._end_reading()
            return self._open(create_within_s)

    def _open(self, create_within_s: float | None) -> tuple[Spool, bool]:
        connection = self._connect()
        try:
            state = slots.look(self._store, connection, self.slot, self._publication)
            with reported(self._store):
                table = find_table(connection, self._entity)
            if table is None:
                raise no_entity(self._store, self._entity)
            check_identity(self._store, table)
            if self._keyed:
                check_key(self._store, table)
            found = self._held_slot.start(state, table)
            if not isinstance(found, SqlError):
                start, made = found, False
            elif create_within_s is None:
                raise found
            else:
                start, made = self._made_slot(connection, table, create_within_s), True
        finally:
            connection.close()
        with self._lock:
            self._source = table
            self._table = known = self._known(table)
            self._origin = Origin(state.system, table.oid, known.shape if self._keyed else 0, state.timeline)
            self._spool = Spool(self._work / "spool", start)
            records = ChangeRecords(
                known,
                self._spool,
                keyed=self._keyed,
                record_bytes_max=self._record_bytes_max,
                numbers=self._numbers_now,
            )
            self._capture = Capture(
                self._continued, self.slot, self._publication, self._spool, records, lambda: self._read
            )
            self._capture.ask(self._wanted)
            return self._spool, made

    def _made_slot(self, connection: Connection, table: SourceTable, within_s: float) -> int:
        stream = self._stream()
        try:
            return self._held_slot.make(connection, stream, table, within_s)
        finally:
            stream.close()

    def _known(self, table: SourceTable) -> KnownTable:
        """What was known of the table when a view of it was last begun, so that a change since then is noticed after a
        restart, too. Nothing is known of a table that is read for the first time."""
        now = known_now(self._options.database, table)
        path = self._work / "table.json"
        if not path.exists():
            self._keep(now)
            return now
        kept = json.loads(path.read_text("utf-8"))
        if kept["oid"] != table.oid:
            return replace(now, shape=int(kept["shape"]) + 1)
        types = {name: int(oid) for name, oid in kept["types"].items()}
        numbers = {name: int(number) for name, number in kept.get("numbers", now.numbers).items()}
        return replace(now, key=tuple(kept["key"]), types=types, numbers=numbers, shape=int(kept["shape"]))

    def _numbers_now(self) -> Mapping[str, int]:
        """Of the table's columns; none of a table that is gone or is another one, which is noticed elsewhere."""
        _, table = self._ask()
        if table is None or self._origin is None or table.oid != self._origin.table:
            return {}
        return known_now(self._options.database, table).numbers

    def _keep(self, known: KnownTable) -> None:
        self._work.mkdir(parents=True, exist_ok=True)
        path = self._work / "table.json"
        aside = path.with_suffix(".new")
        kept = {
            "oid": known.oid,
            "key": known.key,
            "types": dict(known.types),
            "numbers": dict(known.numbers),
            "shape": known.shape,
        }
        aside.write_text(json.dumps(kept), "utf-8")
        aside.replace(path)

    def _problem(self) -> SqlError | None:
        capture = self._capture
        return None if capture is None else capture.problem

    # --- positions --------------------------------------------------------------------------------------------------
    def _count(self, start: int, end: int) -> int | None:
        spool = self._spool
        return None if spool is None else spool.count(start, end)

    def _limited(self, start: int, end: int, records: int) -> int | None:
        """Not beyond a transaction that nobody may read. Who stands before it is told why when he reads."""
        spool = self._spool
        if spool is None or spool.end <= start:
            return None
        barrier = spool.barrier(start)
        if barrier is not None and barrier.commit_lsn > start:
            end = min(end, barrier.commit_lsn)
        return spool.limited(start, min(end, spool.end), records)

    def _want(self, lsn: int) -> None:
        self._wanted = max(self._wanted, lsn)
        spool, capture = self._spool, self._capture
        if spool is None or capture is None:
            return
        if spool.end < lsn:
            capture.ask(lsn)
        else:
            spool.wake()

    def _check_start(self, start: Position) -> None:
        """55000 where not all that is behind a settled position can be read."""
        spool = self._opened()
        self._check_origin(start)
        self._check_timeline(start)
        if at.lsn(start) < spool.start:
            raise behind_slot(self._store, self.slot, at.lsn(start), spool.start)
        if at.in_snapshot(start):
            self._snapshots.batches(str(start["snapshot"]), 0, 0)

    def _check_origin(self, position: Position) -> None:
        if self._origin is not None and Origin.of(position) != self._origin:
            raise SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                f'table "{self._entity}" of store "{self._store}" is another one than was read',
                detail="It was dropped and created again, or its server is another one.",
                hint="REFRESH MATERIALIZED VIEW builds a view anew from the present rows.",
            )

    def _check_timeline(self, position: Position) -> None:
        origin = self._origin
        if origin is not None and Origin.of(position).timeline != origin.timeline:
            former = self._former_timelines(origin.timeline)
            lacking = left_behind(self._store, position, origin.timeline, former)
            if lacking is not None:
                raise lacking

    def adopt(self, position: Position, *, fresh: bool) -> Position:
        """A query that begins with the latest changes begins now: the slot has all that commits from here on."""
        if position.get("start") != "latest":
            return position
        self._renew(START_TIMEOUT_S)
        spool, made = self._opened_or_made(START_TIMEOUT_S)
        if made:
            return self._pinned(spool, spool.start)
        state, table = self._ask()
        self._want(state.flushed)
        # Not at the end of the log itself, which may lie within a commit: the server would leave that one out.
        self._await(spool, state.flushed, time.monotonic() + START_TIMEOUT_S)
        lsn = spool.end
        if table is not None and self._origin is not None and table.oid == self._origin.table:
            self._learn(table, lsn)
        return self._pinned(spool, lsn)

    def _pinned(self, spool: Spool, lsn: int) -> Position:
        """For a query that is being made."""
        with self._lock:
            origin = self._origin
            if self._spool is not spool or origin is None:
                raise self._read_anew()
            lsn = max(lsn, spool.start)  # it may have been released in between
            self._pins[uuid.uuid4().hex] = (lsn, time.monotonic() + PIN_S)
            return origin.at(lsn)

    # --- history ----------------------------------------------------------------------------------------------------
    def is_settled(self, position: Position) -> bool:
        return at.is_settled(position)

    def settle(self, position: Position, assign: Callable[[Position], None]) -> None:
        """The present rows, and where the changes behind them begin."""
        if at.is_settled(position):
            assign(position)
            return
        self._renew(SLOT_TIMEOUT_S)
        spool = self._opened(create_within_s=SLOT_TIMEOUT_S)
        pin = uuid.uuid4().hex
        with self._lock:
            self._pins[pin] = (spool.start, float("inf"))
        try:
            settled = self._taken()
            with self._lock:
                assign(settled)
                self._unclaimed.discard(str(settled.get("snapshot")))
        finally:
            with self._lock:
                del self._pins[pin]

    def _renew(self, within_s: float) -> None:
        """Where the slot is gone or does not have all, or the table is another one: nobody can go on from what was
        read, and a view that begins now has a new slot."""
        if self._spool is None:
            return
        with self._turn_to_open(within_s):
            state, table = self._ask()
            with self._lock:
                spool, origin = self._spool, self._origin
            if spool is None or origin is None or table is None:
                return
            start = self._held_slot.start(state, table)
            is_lost = isinstance(start, SqlError) or start > spool.end or state.system != origin.system
            if is_lost or table.oid != origin.table:
                self._end_reading()
                self._drop_slot(forgotten=False)

    def _taken(self) -> Position:
        snapshot_id = uuid.uuid4().hex[:12]
        with self._lock:
            self._unclaimed.add(snapshot_id)  # before it is there: what nobody needs is removed
        try:
            return self._copied(snapshot_id)
        except BaseException:
            with self._lock:
                self._unclaimed.discard(snapshot_id)
            raise

    def _copied(self, snapshot_id: str) -> Position:
        stream, copy = self._stream(), None
        name = f"{self._publication[:50]}_{uuid.uuid4().hex[:8]}"
        try:
            with stream.connection.answering_within(SLOT_TIMEOUT_S):
                exported = slots.create_slot(self._store, stream.connection, name, temporary=True, export=True)
            copy = connect(
                self._store,
                self._options,
                timeout_s=self._timeout_s,
                statement_timeout_s=0,
                given_up=self._given_up.is_set,
            )
            made, table = self._snapshots.write(
                self._store,
                copy,
                self._entity,
                exported,
                snapshot_id,
                keyed=self._keyed,
                key_of=lambda found: found.key,
                record_bytes_max=self._record_bytes_max,
                stopped=self._given_up.is_set,
            )
        finally:
            if copy is not None:
                copy.close()
            stream.close()
        with self._lock:
            if self._origin is None:
                raise stopping()
            self._check_origin(replace(self._origin, table=table.oid).at(made.lsn))
        self._learn(table, made.lsn)
        with self._lock:
            if not made.rows:
                self._unclaimed.discard(snapshot_id)  # no position is in it
            return position_in(made, self._origin.at(made.lsn))

    def _learn(self, table: SourceTable, lsn: int) -> None:
        """A view begins at that LSN, with the table as it is there."""
        with self._lock:
            capture, before = self._capture, self._table
            if self._origin is None or before is None or capture is None:
                raise stopping()
            known = self._table = before.followed_by(known_now(self._options.database, table))
            self._keep(known)
            self._origin = replace(self._origin, shape=known.shape if self._keyed else 0)
        if self._keyed and known.shape != before.shape:
            capture.begin_again(known, lsn)
        else:
            capture.know(known)

    def release(self, positions: Callable[[], Sequence[Position]]) -> None:
        """All that is before the least of them is durable."""
        with self._lock:
            spool, capture = self._spool, self._capture
            if spool is None or capture is None:
                return
            settled = [position for position in positions() if at.is_settled(position)]
            now = time.monotonic()
            self._pins = {name: pin for name, pin in self._pins.items() if pin[1] > now}
            lsns = [*(at.lsn(position) for position in settled), *(lsn for lsn, _ in self._pins.values())]
            if not settled:
                return
            referenced = {str(position["snapshot"]) for position in settled if at.in_snapshot(position)}
            for snapshot_id in self._snapshots.all():
                if snapshot_id not in referenced and snapshot_id not in self._unclaimed:
                    self._snapshots.remove(snapshot_id)
            least = min(lsns)
            if least > spool.start and least <= spool.end:
                spool.release(least)
                capture.ask()

    def kept(self) -> KeptHistory:
        return KeptHistory(self.slot, self._retained)

    def forget(self) -> None:
        """The slot and the publication go. Where the server does not answer they stay, and its log with them."""
        self.close()
        try:
            self._drop_slot()
        except SqlError:
            _log.warning(
                "replication slot %s of store %s may still be there, with its publication", self.slot, self._store
            )
            raise

    def _drop_slot(self, *, forgotten: bool = True) -> None:
        connection = self._connect()
        try:
            self._held_slot.drop(connection, forgotten=forgotten)
        finally:
            connection.close()

    # --- rounds -----------------------------------------------------------------------------------------------------
    def wait(self, timeout_s: float) -> None:
        spool = self._spool
        if spool is None:
            time.sleep(min(timeout_s, _PAUSE_S))
        else:
            spool.wait(self._seen, timeout_s)

    def bounded(self, start: Position, end: Position, records: int) -> Position:
        if not at.in_snapshot(start) and at.lsn(end) > at.lsn(start):
            self._check_start(start)
            spool = self._opened()
            self._await(spool, at.lsn(start) + 1)
            barrier = spool.barrier(at.lsn(start))
            if barrier is not None and at.lsn(start) >= barrier.commit_lsn:
                raise barrier.error.with_traceback(None)
        return self.positions.limit(start, end, records)

    def next_batch(self, start: Position, records: int) -> Position:
        spool = self._opened()
        self._check_start(start)
        self._seen = spool.version
        self._read = at.lsn(start)
        end = self._end_of_batch(spool, start, records)
        self._check_open(spool)
        self._batch_end = end
        return end

    def _check_open(self, spool: Spool) -> None:
        """After it was read: one that was closed meanwhile has nothing in it, and says so by no error."""
        if self._spool is not spool:
            raise self._read_anew()

    def _end_of_batch(self, spool: Spool, start: Position, records: int) -> Position:
        if at.in_snapshot(start):
            return self.positions.limit(start, at.behind_snapshot(start), records)
        lsn, end = at.lsn(start), spool.end
        barrier = spool.barrier(lsn)
        if barrier is not None:
            if lsn >= barrier.commit_lsn:
                raise barrier.error.with_traceback(None)
            end = min(end, barrier.commit_lsn)
        limited = spool.limited(lsn, end, records) if end > lsn else None
        # The end of the log moves with other tables, too: only where somebody waits for it that is a batch.
        if limited is not None and (spool.count(lsn, limited) or self._wanted > lsn or barrier is not None):
            with self._lock:
                timeline = Origin.of(start).timeline if self._origin is None else self._origin.timeline
            return Origin.of(start).on(timeline).at(limited)
        problem = self._problem()
        if problem is not None:
            raise problem.with_traceback(None)
        return start

    def batch_end(self, checkpoint: str, batch_id: int, start: Position) -> Position:
        return self._batch_end

    def batch(self, spark: SparkSession, start: Position, end: Position) -> DataFrame:
        self._check_start(start)
        found: list[pa.RecordBatch] = []
        if at.in_snapshot(start):
            same = at.in_snapshot(end) and end["snapshot"] == start["snapshot"]
            last = int(end["row"]) if same else int(start["rows"])
            found += self._snapshots.batches(str(start["snapshot"]), int(start["row"]), last)
        if not at.in_snapshot(end) and at.lsn(end) > at.lsn(start):
            spool = self._opened()
            self._await(spool, at.lsn(end))
            barrier = spool.barrier(at.lsn(start))
            if barrier is not None and at.lsn(end) > barrier.commit_lsn:
                raise barrier.error.with_traceback(None)
            found += spool.table(at.lsn(start), at.lsn(end))
            self._check_open(spool)
        return self._frames.frame(spark, found)

    def _await(self, spool: Spool, lsn: int, deadline: float = float("inf")) -> None:
        """After a restart what was read before comes again. 08006 behind the deadline."""
        while spool.end < lsn:
            seen, problem = spool.version, self._problem()
            if self._given_up.is_set():
                raise stopping()
            self._check_open(spool)
            if problem is not None:
                raise problem.with_traceback(None)
            if time.monotonic() > deadline:
                raise SqlError(
                    sqlstates.CONNECTION_FAILURE,
                    f'store "{self._store}" does not answer in time',
                    detail="Its changes have not come to the end of its log yet.",
                )
            spool.wait(seen, 1.0)

    def stream(
        self, spark: SparkSession, start: Position, *, records_per_trigger: int
    ) -> AbstractContextManager[DataFrame]:
        raise SqlError(sqlstates.INTERNAL_ERROR, "a table has no Spark stream", detail=f"Table {self._entity}.")

    def confirm(self, position: Position) -> None:
        """A table has its oid: what comes of another one of the same name is never taken for its own."""

    @property
    def record_order(self) -> RecordOrder:
        return RecordOrder("'0'", PLACE)

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        return [position for position, _ in records]

    def give_up(self) -> None:
        """Whoever waits for the server ends soon."""
        self._given_up.set()
        with self._lock:
            spool = self._spool
        if spool is not None:
            spool.wake()

    def close(self) -> None:
        """It may be opened again."""
        self._given_up.set()
        self._end_reading()
        self._given_up.clear()

    def _end_reading(self) -> None:
        """Of what is received, and of who receives it: the slot has it all."""
        with self._lock:
            capture, spool = self._capture, self._spool
            self._capture = self._spool = None
            self._is_stale = False
            self._wanted = self._read = 0
        if capture is not None:
            capture.stop()
        if spool is not None:
            spool.close()
        with self._admin_lock:
            if self._admin is not None:
                self._admin.close()
                self._admin = None
        self._frames.remove()
