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
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position, RecordOrder
from spark_sinks.postgresql import positions as at
from spark_sinks.postgresql import slots
from spark_sinks.postgresql.capture import Capture
from spark_sinks.postgresql.changes import ChangeRecords, KnownTable, known_now
from spark_sinks.postgresql.connections import Connection, connect, reported, stopping
from spark_sinks.postgresql.frames import PLACE, Frames
from spark_sinks.postgresql.health import TableHealth, behind_slot, slot_gone, slot_lost
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
_DROP_PAUSE_S = 0.1


class PostgresReader:
    """A :class:`spark_sinks.base.SourceReader` over one table, and what keeps its history (``held``)."""

    logged = None

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
    ) -> None:
        """``keyed``: records are rows of a changelog. The slot is named after the folder ``work``, which is the
        pipeline's."""
        self._store = store
        self._options = options
        self._entity = entity
        self._work = work
        self._keyed = keyed
        self._timeout_s = timeout_s
        self._record_bytes_max = record_bytes_max
        self.slot = slots.PREFIX + work.name.replace("-", "_").lower()[:46]
        self._lock = threading.RLock()
        self._given_up = threading.Event()
        self._admin: Connection | None = None
        self._admin_lock = threading.Lock()
        self._spool: Spool | None = None
        self._capture: Capture | None = None
        self._origin: Origin | None = None
        self._table: KnownTable | None = None
        self._read = 0  # the LSN that the live reader has come to
        self._wanted = 0  # the LSN that somebody waits for
        self._seen = 0  # the spool's version when it was last asked
        self._pins: dict[str, tuple[int, float]] = {}  # starts of queries that are being made: LSN, until when
        self._snapshots = SnapshotFiles(work / "snapshots")
        self._unclaimed: set[str] = set()  # snapshots that no position is in yet
        self._frames = Frames(work / "frames")
        self._batch_end: Position = {}
        self._warned_at = 0.0
        self.positions = PostgresPositions(self._count, self._limited)
        self.health = TableHealth(
            store,
            entity,
            self.slot,
            ask=self._ask,
            known=lambda: self._table if self._keyed else None,
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
            with reported(self._store):
                state = slots.look(self._admin, self.slot)
                table = find_table(self._admin, self._entity)
        self._warn(state)
        return state, table

    def _warn(self, state: slots.ServerState) -> None:
        """Before the server's disk fills."""
        held = 0 if state.slot is None else state.slot.retained
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

    # --- opening ----------------------------------------------------------------------------------------------------
    def _opened(self, *, create_within_s: float | None = None) -> Spool:
        """The spool, which begins where the slot does. Without ``create_within_s`` the slot must be there."""
        with self._lock:
            if self._spool is not None:
                return self._spool
        connection = self._connect()
        try:
            with reported(self._store):
                state = slots.look(connection, self.slot)
                table = find_table(connection, self._entity)
            if table is None:
                raise no_entity(self._store, self._entity)
            check_identity(self._store, table)
            if self._keyed:
                check_key(self._store, table)
            start = self._slot_start(connection, state, table, create_within_s)
        finally:
            connection.close()
        with self._lock:
            if self._spool is None:
                self._table = known = self._known(table)
                self._origin = Origin(state.system, table.oid, known.shape if self._keyed else 0)
                self._spool = Spool(self._work / "spool", start)
                records = ChangeRecords(
                    known,
                    self._spool,
                    keyed=self._keyed,
                    record_bytes_max=self._record_bytes_max,
                    numbers=self._numbers_now,
                )
                self._capture = Capture(self._stream, self.slot, self._spool, records, lambda: self._read)
                self._capture.ask(self._wanted)
            return self._spool

    def _slot_start(
        self, connection: Connection, state: slots.ServerState, table: SourceTable, create_within_s: float | None
    ) -> int:
        if state.slot is not None and state.slot.wal_status != "lost":
            return state.slot.confirmed
        if create_within_s is None:
            raise slot_gone(self._store, self.slot) if state.slot is None else slot_lost(self._store, self.slot)
        if state.slot is not None:
            slots.drop(self._store, connection, self.slot)
        slots.ensure_publication(self._store, connection, self.slot, table)
        stream = self._stream()
        try:
            with stream.connection.answering_within(create_within_s):
                lsn, _ = slots.create_slot(self._store, stream.connection, self.slot, temporary=False, export=False)
        finally:
            stream.close()
        return lsn

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
        spool = self._spool
        if spool is None or spool.end <= start:
            return None
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

    def adopt(self, position: Position, *, fresh: bool) -> Position:
        """A query that begins with the latest changes begins now: the slot has all that commits from here on."""
        if position.get("start") != "latest":
            return position
        known = self._spool
        spool = self._opened(create_within_s=START_TIMEOUT_S)
        if known is None and fresh:
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
            if self._origin is None:
                raise stopping()
            lsn = max(lsn, spool.start)  # it may have been released in between
            self._pins[uuid.uuid4().hex] = (lsn, time.monotonic() + PIN_S)
            return self._origin.at(lsn)

    # --- history ----------------------------------------------------------------------------------------------------
    def is_settled(self, position: Position) -> bool:
        return at.is_settled(position)

    def settle(self, position: Position, assign: Callable[[Position], None]) -> None:
        """The present rows, and where the changes behind them begin."""
        if at.is_settled(position):
            assign(position)
            return
        self._renew()
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

    def _renew(self) -> None:
        """Where the slot is gone, or the table is another one: nobody can go on from what was read, and a view that
        begins with the present rows has a new slot."""
        if self._spool is None:
            return
        state, table = self._ask()
        assert self._origin is not None  # noqa: S101 - it is open
        lost = state.slot is None or state.slot.wal_status == "lost" or state.system != self._origin.system
        if lost or (table is not None and table.oid != self._origin.table):
            self._end_reading()
            self._drop_slot()

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
        name = f"{self.slot[:50]}_{uuid.uuid4().hex[:8]}"
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

    def _drop_slot(self) -> None:
        connection = self._connect()
        try:
            deadline = time.monotonic() + self._timeout_s
            while True:
                try:
                    slots.drop(self._store, connection, self.slot)
                    return
                except SqlError as error:  # the server may not have noticed yet that nobody reads
                    if error.sqlstate != sqlstates.OBJECT_IN_USE or time.monotonic() > deadline:
                        raise
                if self._given_up.wait(_DROP_PAUSE_S):
                    raise stopping()
        finally:
            connection.close()

    # --- rounds -----------------------------------------------------------------------------------------------------
    def wait(self, timeout_s: float) -> None:
        spool = self._spool
        if spool is None:
            time.sleep(min(timeout_s, _DROP_PAUSE_S))
        else:
            spool.wait(self._seen, timeout_s)

    def bounded(self, start: Position, end: Position, records: int) -> Position:
        return self.positions.limit(start, end, records)

    def next_batch(self, start: Position, records: int) -> Position:
        spool = self._opened()
        self._check_start(start)
        self._seen = spool.version
        self._read = at.lsn(start)
        self._batch_end = self._end_of_batch(spool, start, records)
        return self._batch_end

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
            return Origin.of(start).at(limited)
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
            found += spool.table(at.lsn(start), at.lsn(end))
        return self._frames.frame(spark, found)

    def _await(self, spool: Spool, lsn: int, deadline: float = float("inf")) -> None:
        """After a restart what was read before comes again. 08006 behind the deadline."""
        while spool.end < lsn:
            seen, problem = spool.version, self._problem()
            if self._given_up.is_set() or spool.closed:
                raise stopping()
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
        with self._lock:
            capture, spool = self._capture, self._spool
            self._capture = self._spool = None
            self._wanted = 0
        if capture is not None:
            capture.stop()
        if spool is not None:
            spool.close()
        with self._admin_lock:
            if self._admin is not None:
                self._admin.close()
                self._admin = None
        self._frames.remove()
