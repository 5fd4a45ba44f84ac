"""One view's history while it is kept: told by the writer what each transaction does, asked by readers for news.

The writer's thread changes it under the commit lock. Readers wait for epochs that are committed. The last of them lie
in memory as long as somebody reads, so that nobody reads a commit from DuckDB; the others are in the log.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from mvserver import limits
from mvserver.errors import SqlError
from spark_sinks.duckdb.changes.change_outbox import GONE, NEW, change_query
from spark_sinks.duckdb.changes.changelog import Register
from spark_sinks.duckdb.history.epochs import KIND, EpochChanges
from spark_sinks.duckdb.history.log import LoggedView
from spark_sinks.duckdb.history.telling_merge import ShownGroups, merge_and_tell
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state.roll_ups import RollUp
from spark_sinks.duckdb.state.state import State
from spark_sinks.duckdb.statements import Statements, Together, table_of


@dataclass(frozen=True)
class Bounds:
    """What is kept of a history. Rows and bytes are those of changes; an update has two rows."""

    seconds: float
    rows: int = limits.HISTORY_ROWS_MAX
    bytes: int = limits.HISTORY_BYTES_MAX


@dataclass(frozen=True)
class Extent:
    """What is there: changes after ``first_seq`` - 1, of commits after ``since``."""

    incarnation: str
    first_seq: int
    last_seq: int
    last_epoch: int
    first_size: int  # bytes that went before the first change, and up to the last one
    last_size: int
    since: dt.datetime
    last_at: dt.datetime

    @property
    def rows(self) -> int:
        return self.last_seq - self.first_seq + 1

    @property
    def bytes(self) -> int:
        return self.last_size - self.first_size


class History:
    """Implements :class:`spark_sinks.duckdb.changes.capture.Keeper`. ``always``: it is kept whether somebody reads or
    not."""

    others: Sequence[State] = ()

    def __init__(
        self, statements: Statements, view: LoggedView, extent: Extent, bounds: Bounds, *, always: bool
    ) -> None:
        """``statements`` are those of the writer."""
        self._statements = statements
        self.view = view
        self.extent = extent
        self.bounds = bounds
        self.always = always
        self._new: list[pa.Table] = []  # of the transaction that is open
        self._new_rows = self._new_bytes = 0
        self._left_out = False  # the transaction has changed more than may be kept
        self._grows = True  # the last merge put in new groups
        self._trimmed: Extent | None = None
        self._now = extent.last_at
        self._oldest: dt.datetime | None = None  # of a change; None: not looked at
        self._looked_at = 0.0
        self._condition = threading.Condition()
        self._tail: deque[EpochChanges] = deque()
        self._tail_bytes = 0
        self._readers = 0
        self._left_at = time.monotonic()
        self._ended: SqlError | None = None

    # --- a transaction of the writer ----------------------------------------------------------------------------------
    def shown(self, *, changed_only: bool) -> str:
        return self.view.changed_rows if changed_only else self.view.rows

    def keep(self, cursor: duckdb.DuckDBPyConnection, register: Register, newest: dt.datetime | None) -> None:
        """What a merge did to the rows that it touches."""
        keys = self.view.key_names
        query = change_query(keys, self.view.values)
        order = ", ".join([*keys, "op DESC"])
        self._append(table_of(cursor, f"{query} ORDER BY {order}"))

    def keep_rows(self, cursor: duckdb.DuckDBPyConnection, register: Register, query: str, *, gone: bool) -> None:
        """Rows that came, or went, as they are; of a view whose rows do not replace each other."""
        kind, values = GONE if gone else NEW, ", ".join(self.view.values)
        self._append(table_of(cursor, f"SELECT '{kind}' AS op, {values} FROM ({query})"))

    def merge(self, roll_up: RollUp, groups: ShownGroups) -> pa.Table:
        """A merge that tells what it does; the keys (g0 ...) whose rows it may have changed."""
        told = merge_and_tell(self._statements, roll_up, groups, grows=self._grows)
        self._grows = told.grew
        self._append(told.changes)
        return told.keys

    def _append(self, rows: pa.Table) -> None:
        if rows.num_rows == 0:
            return
        too_many = self._new_rows + rows.num_rows > self.bounds.rows
        if self._left_out or too_many or self._new_bytes + rows.nbytes > self.bounds.bytes:
            self._left_out = True
            self._new.clear()
            self._new_rows += rows.num_rows
            return
        self._new.append(rows)
        self._new_rows += rows.num_rows
        self._new_bytes += rows.nbytes

    @property
    def changes(self) -> Sequence[pa.Table] | None:
        """Of the transaction that is open: op, the keys, c0, c1 ...; None where they are more than may be kept."""
        return None if self._left_out else tuple(self._new)

    @property
    def touched(self) -> bool:
        return self._new_rows > 0

    def begin(self, now: dt.datetime) -> None:
        self._new.clear()
        self._new_rows = self._new_bytes = 0
        self._left_out = False
        self._trimmed = None
        # later than the last commit, also where the clock has gone back: times tell commits apart
        self._now = max(now, self.extent.last_at + dt.timedelta(microseconds=1))

    def finish(self, cursor: duckdb.DuckDBPyConnection, closing: Together) -> None:
        """Before the COMMIT: removes what is too old or too much, and writes what is new. Where the history ends is
        told by its last change; only a removal is noted, with the end that it had then."""
        known = extent = self.extent
        if self.touched:
            extent = Extent(
                extent.incarnation, extent.first_seq, extent.last_seq + self._new_rows, extent.last_epoch + 1,
                extent.first_size, extent.last_size + self._new_bytes, extent.since, self._now,
            )  # fmt: skip
        trimmed = self._emptied(cursor, extent) if self._left_out else self._trim(cursor, extent)
        if trimmed is not extent:
            self._note_extent(trimmed)
        if self._new:
            self._write(self._new_table, known.last_seq + 1, extent, closing)
        if trimmed is not known:
            self._trimmed = trimmed

    def _write(self, rows: pa.Table, first: int, extent: Extent, closing: Together) -> None:
        numbers = pa.array(range(first, first + rows.num_rows), pa.int64())
        columns = ", ".join((*self.view.key_names, *self.view.values))
        name = closing.name(rows.append_column("_seq", numbers))
        closing.add(
            f"INSERT INTO {qualified(self.view.table)} SELECT $1, _seq, $2, $3, op, {columns} FROM {name}",
            [extent.last_epoch, self._now, extent.last_size],
        )

    def _note_extent(self, extent: Extent) -> None:
        self._statements.execute(
            'UPDATE "_ledger".view_histories SET first_seq = $2, last_seq = $3, last_epoch = $4, first_size = $5, '
            "last_size = $6, since = $7, last_at = $8 WHERE query_id = $1",
            [self.view.query_id, extent.first_seq, extent.last_seq, extent.last_epoch, extent.first_size,
             extent.last_size, extent.since, extent.last_at],
        )  # fmt: skip

    @property
    def _new_table(self) -> pa.Table:
        return self._new[0] if len(self._new) == 1 else pa.concat_tables(self._new)

    def _emptied(self, cursor: duckdb.DuckDBPyConnection, extent: Extent) -> Extent:
        """One commit has changed more than may be kept: the history goes on behind it."""
        cursor.execute(f"DELETE FROM {qualified(self.view.table)}")
        self._oldest = None
        return Extent(
            extent.incarnation, extent.last_seq + 1, extent.last_seq, extent.last_epoch, extent.last_size,
            extent.last_size, extent.last_at, extent.last_at,
        )  # fmt: skip

    def _trim(self, cursor: duckdb.DuckDBPyConnection, extent: Extent) -> Extent:
        """Whole epochs, in steps: of what is only too old, so many rows at a time."""
        horizon = self._now - dt.timedelta(seconds=self.bounds.seconds)
        last_too_many = extent.last_seq - self.bounds.rows
        last_too_large = extent.last_size - self.bounds.bytes
        too_much = extent.rows > self.bounds.rows or extent.bytes > self.bounds.bytes
        if extent.rows == 0 or not (too_much or self._is_due(cursor, horizon)):
            return extent
        table = qualified(self.view.table)
        ((epoch,),) = cursor.execute(
            f"SELECT max(_epoch) FROM {table} WHERE (_at < $1 AND _seq < $2) OR _seq <= $3 OR _size <= $4",
            [horizon, extent.first_seq + limits.HISTORY_TRIMMED_ROWS, last_too_many, last_too_large],
        ).fetchall()
        if epoch is None:
            return extent
        ((seq, at, size),) = cursor.execute(
            f"SELECT max(_seq), max(_at), max(_size) FROM {table} WHERE _epoch <= $1", [epoch]
        ).fetchall()
        cursor.execute(f"DELETE FROM {table} WHERE _epoch <= $1", [epoch])
        self._oldest = None
        return Extent(
            extent.incarnation, seq + 1, extent.last_seq, extent.last_epoch, size, extent.last_size, at, extent.last_at
        )

    def _is_due(self, cursor: duckdb.DuckDBPyConnection, horizon: dt.datetime) -> bool:
        """Whether the oldest change is too old; asked of the log once a second at most."""
        if self._oldest is None:
            if time.monotonic() - self._looked_at < limits.HISTORY_LOOK_S:
                return False
            self._looked_at = time.monotonic()
            ((self._oldest,),) = cursor.execute(f"SELECT min(_at) FROM {qualified(self.view.table)}").fetchall()
        return self._oldest is not None and self._oldest < horizon

    def committed(self) -> None:
        """The transaction is made: readers may have what it did."""
        if self._trimmed is None:
            return
        with self._condition:
            if self.touched and not self._left_out and self._readers:
                rows = self._named(self._new_table)
                self._tail.append(
                    EpochChanges(
                        self.extent.incarnation, self._trimmed.last_epoch, self._now, self.extent.last_seq + 1, rows
                    )
                )
                self._tail_bytes += rows.nbytes
            elif self.touched:
                self._forget_tail()  # it has no holes
            while self._tail and self._tail_bytes > limits.HISTORY_TAIL_BYTES_MAX:
                self._tail_bytes -= self._tail.popleft().rows.nbytes
            self.extent = self._trimmed
            self._condition.notify_all()
        self.rolled_back()

    def rolled_back(self) -> None:
        self._new.clear()
        self._new_rows = self._new_bytes = 0
        self._trimmed = None

    def reword(self, view: LoggedView) -> None:
        """The same view in the words of another version."""
        self.view = view

    def end(self, error: SqlError) -> None:
        """It is kept no more."""
        with self._condition:
            self._ended = self._ended or error
            self._forget_tail()
            self._condition.notify_all()

    def _forget_tail(self) -> None:
        self._tail.clear()
        self._tail_bytes = 0

    def _named(self, rows: pa.Table) -> pa.Table:
        shown = rows.select(["op", *self.view.values])
        return shown.rename_columns([KIND, *(name for name, _ in self.view.columns)]).combine_chunks()

    # --- readers ------------------------------------------------------------------------------------------------------
    def join(self) -> bool:
        """Another reader; False where the history is kept no more."""
        with self._condition:
            if self._ended is not None:
                return False
            self._readers += 1
            return True

    def leave(self) -> None:
        with self._condition:
            self._readers -= 1
            self._left_at = time.monotonic()
            if self._readers == 0:
                self._forget_tail()

    @property
    def readers(self) -> int:
        return self._readers

    @property
    def is_unwanted(self) -> bool:
        """Nobody has read for as long as it is kept for who comes back."""
        with self._condition:
            away = time.monotonic() - self._left_at
            return not self.always and self._readers == 0 and away > self.bounds.seconds

    @property
    def ended(self) -> SqlError | None:
        return self._ended

    def wait_behind(self, seq: int, seconds: float | None, given_up: Callable[[], bool]) -> bool:
        """Whether there are changes behind number ``seq``, or the history has ended: now, or within this time."""
        with self._condition:
            self._condition.wait_for(
                lambda: self.extent.last_seq > seq or self._ended is not None or given_up(), seconds
            )
            return self.extent.last_seq > seq or self._ended is not None

    def wake(self) -> None:
        """Whoever waits looks whether it has to give up."""
        with self._condition:
            self._condition.notify_all()

    def recent(self, seq: int) -> Sequence[EpochChanges] | None:
        """The epochs behind number ``seq``, where they lie in memory."""
        with self._condition:
            if not self._tail or self._tail[0].first_seq > seq + 1:
                return None
            return [epoch.after(seq) for epoch in self._tail if epoch.last_seq > seq]
