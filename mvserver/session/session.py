"""One client's session, as the wire drives it: texts, prepared statements, portals, transactions, cancel.

Every call takes the session's lock, turns whatever goes wrong into one SqlError, and lets the transaction know of it.
The wire calls from worker threads, one call at a time; ``cancel`` and the idle watch come from others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.observability import loggable_sql, session_id_var
from mvserver.pgwire.backend import Field, Notice, Result, StatementDescription
from mvserver.session.activity import Activity
from mvserver.session.clock import USER_REQUEST, StatementClock
from mvserver.session.dispatch import Dispatcher
from mvserver.session.extensions import ExtensionCalls
from mvserver.session.state import SessionState
from mvserver.sql.statements import Statement

_log = logging.getLogger(__name__)


class Session:
    """Implements ``mvserver.pgwire.backend.WireSession``."""

    def __init__(self, session_id: int, state: SessionState, on_close: Callable[[], None] = lambda: None) -> None:
        self.id = session_id
        self.activity = Activity()
        self.on_terminate: Callable[[SqlError], None] | None = None
        self._state = state
        self._on_close = on_close
        self._lock = threading.RLock()
        self._dispatch = Dispatcher(state, self._fail)
        self._extensions = ExtensionCalls(state.services.extensions, self)
        self._idle_since: float | None = None
        self._idle_watched = False
        self._terminated: SqlError | None = None
        self._closed = False
        state.context.cancelled = self._is_cancelled

    # --- what the wire asks at any time -----------------------------------------------------------------------------
    def parameter_status(self) -> Mapping[str, str]:
        return self._state.settings.reported()

    @property
    def application_name(self) -> str:
        return self._state.settings.current["application_name"]

    def transaction_status(self) -> str:
        return self._state.transaction.status

    def take_notices(self) -> Sequence[Notice]:
        """Those that ``client_min_messages`` lets through; INFO always does, as in PostgreSQL."""
        notices = self._state.context.notices
        if not notices:
            return ()
        least = self._state.settings.current["client_min_messages"]
        refused = {"warning": {"NOTICE"}, "error": {"NOTICE", "WARNING"}}.get(least, set())
        taken = [notice for notice in notices if notice.severity not in refused]
        notices.clear()
        return taken

    # --- simple protocol --------------------------------------------------------------------------------------------
    def simple_query(self, text: str) -> Iterator[Result]:
        try:
            with self._call(text):
                self._state.prepared.discard("")
                self._state.portals.discard("")
                single = self._without_parsing(text)
                statements = [] if single is not None else self._parse(text)
                if len(statements) > 1:
                    self._begin_implicit(of_text=True)
            if single is not None:
                yield single
                single.close()
            elif not statements:
                yield Result("", empty=True)
            for statement in statements:
                with self._call():
                    result = self._dispatch.run(statement, self._new_clock())
                yield result
                result.close()  # one result at a time: the wire has read this one
        except GeneratorExit:
            # the wire stopped before the end: what had begun implicitly does not count
            with self._lock:
                self._state.restore(self._state.transaction.fail())
            raise
        finally:
            self.sync()

    def _without_parsing(self, text: str) -> Result | None:
        """The answer of an extension, or of a SELECT whose plan is known by its text."""
        called = self._extensions.run(text)
        if called is not None:
            return called
        plan = self._dispatch.cached(text)
        return None if plan is None else self._dispatch.run_plan(plan, self._new_clock())

    def _parse(self, text: str) -> Sequence[Statement]:
        services = self._state.services
        try:
            return services.parse(text)
        except SqlError as error:
            if services.rewriter is None or error.sqlstate != sqlstates.SYNTAX_ERROR:
                raise
            # a rewriter may read a dialect that the parser does not
            rewritten = services.rewriter.rewrite(text)
            if rewritten == text:
                raise
            return services.parse(rewritten)

    # --- extended protocol ------------------------------------------------------------------------------------------
    def parse(self, name: str, text: str, parameter_oids: Sequence[int]) -> None:
        with self._call(text):
            if not name:
                self._state.prepared.discard(name)
            self._state.prepared.check_free(name)
            self._state.prepared.add(self._dispatch.prepare(name, text, parameter_oids))

    def describe_statement(self, name: str) -> StatementDescription:
        with self._call():
            prepared = self._state.prepared.get(name)
            return StatementDescription(prepared.parameter_oids, self._dispatch.described(prepared))

    def bind(self, portal: str, statement: str, parameters: Sequence[Any]) -> None:
        with self._call():
            self._state.cursors.check_free(portal)
            self._state.portals.add(portal, self._state.prepared.get(statement), parameters)

    def describe_portal(self, portal: str) -> tuple[Field, ...] | None:
        with self._call():
            cursor = self._state.cursors.find(portal)
            if cursor is not None:
                return cursor.fields
            return self._dispatch.described(self._state.portals.get(portal).prepared)

    def execute(self, portal: str) -> Result:
        with self._call():
            if self._state.cursors.find(portal) is not None:
                raise SqlError(
                    sqlstates.FEATURE_NOT_SUPPORTED,
                    f'cursor "{portal}" cannot be read by the protocol\'s Execute',
                    hint="Use FETCH.",
                )
            found = self._state.portals.get(portal)
            self.activity.query(found.prepared.text)
            self._begin_implicit()
            return self._dispatch.run_prepared(found.prepared, found.parameters, self._new_clock())

    def close_statement(self, name: str) -> None:
        with self._lock:
            self._state.prepared.discard(name)

    def close_portal(self, portal: str) -> None:
        with self._lock:
            self._state.portals.discard(portal)
            self._state.cursors.discard(portal)

    def sync(self) -> None:
        with self._lock:
            if not self._state.transaction.in_block:
                self._dispatch.commands.finish(commit=True)
            self._rest()

    def fail(self) -> None:
        """The wire found an error that no call of ours raised (a parameter that cannot be read, a bad message)."""
        with self._lock:
            self._state.restore(self._state.transaction.fail())

    # --- ending -----------------------------------------------------------------------------------------------------
    def cancel(self) -> None:
        self.cancel_for(USER_REQUEST)

    def cancel_for(self, reason: str) -> None:
        clock = self._state.clock
        if clock is not None:
            clock.cancel(reason)

    def close(self) -> None:
        self.cancel()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._state.transaction.end()
            try:
                self._state.cursors.clear()
                self._dispatch.pulls.close()
            finally:
                self._on_close()

    def terminate(self, error: SqlError) -> None:
        """Ends the session from the server's side: what it holds is freed now, its next call raises ``error``."""
        self.cancel_for(error.message)
        with self._lock:
            if self._terminated is not None or self._closed:
                return
            self._terminated = error
            try:
                self._dispatch.commands.finish(commit=False)
            finally:
                if self.on_terminate is not None:
                    self.on_terminate(error)

    # --- one call ---------------------------------------------------------------------------------------------------
    @contextmanager
    def _call(self, text: str | None = None) -> Iterator[None]:
        with self._lock:
            self._idle_since = None
            token = session_id_var.set(str(self.id))
            try:
                if self._terminated is not None:
                    raise self._terminated
                if text is not None:
                    self.activity.query(text)
                    if _log.isEnabledFor(logging.DEBUG):
                        _log.debug("statement: %s", loggable_sql(text))
                yield
            except SqlError as error:
                self._fail(error)
                raise
            except Exception as error:
                raise self._fail(error) from error
            finally:
                session_id_var.reset(token)

    def _new_clock(self) -> StatementClock:
        timeout_s = self._state.settings.seconds("statement_timeout")
        clock = StatementClock(self._state.services.deadlines, timeout_s, self._began)
        self._state.clock = clock
        return clock

    def _began(self, clock: StatementClock) -> None:
        """A statement is at work, perhaps again: the wire reads a suspended portal without asking the session."""
        if self._state.clock is not clock:
            with self._lock:
                self._idle_since = None
                self._state.clock = clock
                clock.restart()

    def _is_cancelled(self) -> bool:
        clock = self._state.clock
        return clock is not None and clock.cancelled

    def _begin_implicit(self, *, of_text: bool = False) -> None:
        settings = self._state.settings
        self._state.transaction.begin_implicit(
            self._state.restore_point(),
            settings.current["default_transaction_isolation"],
            settings.flag("default_transaction_read_only"),
            of_text=of_text,
        )

    def _fail(self, error: Exception) -> SqlError:
        """Whatever went wrong, as the one error the client sees; the transaction fails with it."""
        self._state.restore(self._state.transaction.fail())
        if isinstance(error, SqlError):
            return error
        if isinstance(error, RecursionError):
            return SqlError(sqlstates.STATEMENT_TOO_COMPLEX, "statement is nested too deeply")
        if isinstance(error, MemoryError):
            return SqlError(sqlstates.OUT_OF_MEMORY, "out of memory")
        _log.error("a statement failed for a reason that is not the user's", exc_info=error)
        return SqlError(
            sqlstates.INTERNAL_ERROR,
            "internal error",
            hint=f"The server's log has the details under session={self.id}.",
        )

    # --- idle in transaction ----------------------------------------------------------------------------------------
    def _rest(self) -> None:
        """The client's turn: in a transaction block, for a bounded time. There is nothing to cancel now."""
        self._state.clock = None
        status = self._state.transaction.status
        self.activity.idle(status)
        if status == "I" or self._closed:
            return
        self._idle_since = time.monotonic()
        self._watch_idle()

    def _watch_idle(self) -> None:
        limit_s = self._state.settings.seconds("idle_in_transaction_session_timeout")
        if limit_s is None or self._idle_watched or self._idle_since is None:
            return
        self._idle_watched = True
        left_s = limit_s - (time.monotonic() - self._idle_since)
        self._state.services.deadlines.after(max(left_s, 0.001), self._idle_over)

    def _idle_over(self) -> None:
        """On the deadlines' thread; a session that is busy again, or was in between, is left alone."""
        if not self._lock.acquire(blocking=False):
            self._state.services.deadlines.after(0.1, self._idle_over)
            return
        try:
            self._idle_watched = False
            limit_s = self._state.settings.seconds("idle_in_transaction_session_timeout")
            if self._idle_since is None or limit_s is None:
                return
            if time.monotonic() - self._idle_since < limit_s:
                self._watch_idle()
                return
            self.terminate(
                SqlError(
                    sqlstates.IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                    "terminating connection due to idle-in-transaction timeout",
                    severity="FATAL",
                )
            )
        finally:
            self._lock.release()
