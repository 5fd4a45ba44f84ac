"""The relay: sends on what the outbox of a query holds, in order and exactly once.

Each transaction of the sink carries the number of the last row in it. After any stop the relay reads that number back
and goes on behind it, whatever the outbox still holds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from mvserver import limits, sqlstates
from mvserver.errors import SqlError, words_of
from mvserver.streaming.pipeline.attempts import attempts
from mvserver.streaming.pipeline.subscribers import Rate
from mvserver.streaming.queries.outgoing import Form, Writing, outbox_position
from spark_sinks.base import Position, RefusedLetterError
from spark_sinks.duckdb.changes import outbox as outboxes
from spark_sinks.duckdb.changes.outbox import Outbox, Pending
from spark_sinks.duckdb.writer import Writer

_log = logging.getLogger(__name__)

_BATCH_ROWS = 10_000  # of a write, unless the sink says otherwise
_LOOK_S = 5.0  # commits wake it; this is for those that were missed
_RENEW_S = 86_400.0  # brokers forget a group's position some days after its last commit


@dataclass(frozen=True)
class Output:
    """What is sent and how."""

    outbox: Outbox
    form: Form


class OutboxRelay:
    """One thread for one query."""

    def __init__(self, output: Output, writer: Writer, reached: Callable[[str], None] = lambda step: None) -> None:
        self._output = output
        self._writer = writer
        self._reached = reached
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._sent = 0
        self._written_at = time.monotonic()
        self._waiting = 0
        self._rows_max = output.form.pace.rows_max or _BATCH_ROWS
        self._incarnation = ""  # of the outbox, which is not made anew while it is sent
        self.rate = Rate()
        self.problem: str | None = None  # why nothing is sent at the moment
        self.failure: str | None = None  # why nothing will be

    def start(self) -> None:
        self._stopping.clear()
        self.problem = self.failure = None
        self._thread = threading.Thread(target=self._run, name=f"relay-{self._output.outbox.query_id[:8]}", daemon=True)
        self._thread.start()

    def give_up(self) -> None:
        """It stops soon, and nothing is waited for."""
        self._stopping.set()
        self._wake.set()

    def stop(self) -> None:
        self.give_up()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def committed(self) -> None:
        """There may be more to send."""
        self._wake.set()

    @property
    def is_congested(self) -> bool:
        """The query had better not add to what waits to be sent: nothing is sent at the moment, or too much waits."""
        return self.problem is not None or self.failure is not None or self._waiting > limits.OUTBOX_ROWS_MAX

    def _run(self) -> None:
        for _ in attempts(self._stopping):
            try:
                self._measure()
                self._send_all()
            except Exception as error:  # noqa: BLE001 - shown as the query's state, and tried again
                if self._stopping.is_set():
                    return
                self._writer.damage.notice(error)
                _log.warning("relay of query %s stopped: %s", self._output.outbox.query_id, error)
                self.problem = words_of(error)
                if isinstance(error, RefusedLetterError):
                    self.failure = self.problem
            if self.failure is not None:
                return

    def _send_all(self) -> None:
        """Until it is stopped, or something fails."""
        sink = self._output.form.open(self._stopping.is_set)
        try:
            self._incarnation = self._read_incarnation()
            sent = self._committed(sink.committed_position(expected=self._sent > 0))
            if sent is None:
                return
            self._sent = sent
            self._forget()
            while not self._stopping.is_set():
                pending = self._next()
                if pending is None:
                    self._rest(sink)
                else:
                    self._send(sink, pending)
                self.problem = None
                if pending is not None and len(pending.deleted) < self._rows_max:
                    self._stopping.wait(self._output.form.pace.interval_s)
        finally:
            sink.close()

    def _committed(self, position: Position | None) -> int | None:
        """The number of the last row that was sent; None where it belongs to another outbox."""
        if position is None:
            return 0
        if position.get("outbox") == self._incarnation:
            return int(position["seq"])
        self.failure = str(
            SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                "what the query has written belongs to a state that was lost",
                detail="The rows of the query were built again from its source; what of them is written is not known.",
                hint="Drop the query and create it anew with another topic or table.",
            )
        )
        return None

    def _send(self, sink: Writing, pending: Pending) -> None:
        self._reached("before relay")
        sink.send(pending, self._incarnation)
        self._reached("after relay")
        self._sent, self._written_at = pending.last, time.monotonic()
        self.rate.add(len(pending.deleted))
        self._forget()

    def _rest(self, sink: Writing) -> None:
        if self._sent and time.monotonic() - self._written_at > _RENEW_S:
            sink.renew(outbox_position(self._incarnation, self._sent))
            self._written_at = time.monotonic()
        self._wake.wait(_LOOK_S)
        self._wake.clear()

    # --- the outbox -------------------------------------------------------------------------------------------------
    def _next(self) -> Pending | None:
        with self._writer.read_cursor() as cursor:
            pending = outboxes.pending(cursor, self._output.outbox, self._sent, self._rows_max)
        if pending is None or len(pending.deleted) < self._rows_max:
            self._waiting = 0
        else:
            self._measure()
        return pending

    def _measure(self) -> None:
        with self._writer.read_cursor() as cursor:
            self._waiting = outboxes.length(cursor, self._output.outbox)

    def _read_incarnation(self) -> str:
        with self._writer.read_cursor() as cursor:
            return outboxes.incarnation(cursor, self._output.outbox)

    def _forget(self) -> None:
        self._writer.forget_sent(self._output.outbox, self._sent)
