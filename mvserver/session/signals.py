"""Signals from one session to another: pg_cancel_backend and pg_terminate_backend."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from mvserver import sqlstates
from mvserver.dialect.signals import Signal
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.session.state import SessionState

_WHAT = {"cancel": ("cancel", "query", "canceled"), "terminate": ("terminate", "process", "terminated")}


def send(state: SessionState, result: Result, signals: Sequence[tuple[int, Signal]]) -> Iterator[pa.RecordBatch]:
    """The rows of a result, with whether each process that a column names was signalled in that column's place."""
    for batch in list(result.batches):  # read to the end before anything is sent: it may be the own session's
        for place, signal in signals:
            sent = [_sent(state, signal, process) for process in batch.column(place).to_pylist()]
            batch = batch.set_column(place, batch.schema.field(place).name, pa.array(sent, pa.bool_()))
        yield batch


def _sent(state: SessionState, signal: Signal, process: Any) -> bool | None:
    """Raises SqlError 42501, and the end of the own session by itself. None for NULL, as in PostgreSQL."""
    if process is None:
        return None
    other = state.sessions.by_process(process)
    if other is None:
        state.context.warning(f"PID {process} is not a PostgreSQL backend process")
        return False
    _check(state, signal, other.session_role)
    if signal == "cancel":
        other.cancel()
        return True
    ended = SqlError(sqlstates.ADMIN_SHUTDOWN, "terminating connection due to administrator command", severity="FATAL")
    if other.id == state.session_id:
        raise ended
    # It waits for the statement that the other one runs to notice that it is cancelled.
    threading.Thread(target=other.terminate, args=(ended,), name=f"end-session-{other.id}", daemon=True).start()
    return True


def _check(state: SessionState, signal: Signal, role: str) -> None:
    directory = state.services.directory
    own, others = directory.role(state.context.role), directory.role(role)
    if others is None or (own is not None and own.superuser):  # a dropped role's session ends anyway
        return
    verb, what, done = _WHAT[signal]
    if others.superuser:
        raise SqlError(sqlstates.INSUFFICIENT_PRIVILEGE, f"must be a superuser to {verb} superuser {what}")
    if not directory.is_member(state.context.role, others):
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            f"must be a member of the role whose {what} is being {done} or member of pg_signal_backend",
        )
