"""One client's session, as the wire drives it: texts, prepared statements, portals, transactions, cancel.

Every call takes the session's lock, turns whatever goes wrong into one SqlError, and lets the transaction know of it.
The wire calls from worker threads, one call at a time; ``cancel`` and the idle watch come from others.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError, raise_instead
from mvserver.failures import want_of_resources
from mvserver.front import Field, KeptRows, Notice, Postponed, Result, StatementDescription
from mvserver.observability import loggable_sql, session_id_var
from mvserver.session.activity import Activity
from mvserver.session.clock import USER_REQUEST, StatementClock
from mvserver.session.discarding import DISCARDED_ALL, is_discard_all
from mvserver.session.dispatch import Dispatcher
from mvserver.session.idle import IdleWatch
from mvserver.session.plugins.extensions import ExtensionCalls
from mvserver.session.reads.look_ups import LookUp, LookUps
from mvserver.session.restartable import Restartable
from mvserver.session.state import SessionState
from mvserver.sql.statements.base import Statement

_log = logging.getLogger(__name__)


class Session:
    """Implements ``mvserver.front.ClientSession``, ``AnswersAtOnce``, ``LooksUp``, ``Resets`` and ``StopsReading``."""

    def __init__(self, session_id: int, state: SessionState, on_close: Callable[[], None] = lambda: None) -> None:
        self.id = session_id
        self.activity = Activity()
        self.on_terminate: Callable[[SqlError], None] | None = None
        self._state = state
        self._on_close = on_close
        self._lock = threading.RLock()
        self._dispatch = Dispatcher(state, self._fail)
        self.look_ups = LookUps(state, self._dispatch.pulls, self._read_kept)
        self._extensions = ExtensionCalls(state.services.extensions, self)
        self._idle = IdleWatch(state, self._lock, self.terminate)
        self._in_call = False
        self._cancel_reason: str | None = None  # of a request that came since the client's turn ended
        self._ending: SqlError | None = None  # for which a statement that is at work is cancelled
        self._terminated: SqlError | None = None
        self._closed = False
        state.context.cancelled = self._is_cancelled

    # --- what the wire asks at any time -----------------------------------------------------------------------------
    def parameter_status(self) -> Mapping[str, str]:
        return self._state.settings.reported()

    @property
    def application_name(self) -> str:
        return self._state.settings.current["application_name"]

    @property
    def session_role(self) -> str:
        """Who has logged in, by the name that the role has now."""
        return self._state.context.session_role

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

    # --- short statements -------------------------------------------------------------------------------------------
    @property
    def at_once(self) -> bool:
        return self._state.at_once

    @at_once.setter
    def at_once(self, value: bool) -> None:
        self._state.at_once = value

    def is_short(self, statement: str) -> bool:
        return self._dispatch.is_short(self._state.prepared.find(statement))

    def is_short_query(self, text: str) -> bool:
        return not self._state.services.extensions and self._dispatch.is_short_query(text)

    def is_short_text(self, text: str, parameter_oids: Sequence[int]) -> bool:
        return not self._state.services.extensions and self._dispatch.is_short_text(text, parameter_oids)

    def reset(self, text: str) -> str | None:
        if not is_discard_all(text) or self._state.services.extensions or not self._lock.acquire(blocking=False):
            return None
        try:
            if not self._answers_unseen() or self._state.cursors.all():
                return None  # ending a cursor may take its time
            self._state.discard_all()
            self._asked(text)
            return DISCARDED_ALL
        finally:
            self._lock.release()

    def _answers_unseen(self) -> bool:
        """Whether a statement may begin and end without a call of its own."""
        return self.look_ups.usual and self._terminated is None and not _log.isEnabledFor(logging.DEBUG)

    def _asked(self, text: str) -> None:
        """A statement that has begun and ended unseen."""
        self.activity.asked(text)
        self._idle.rest(in_transaction=False)

    def _read_kept(self, read: LookUp, parameters: Sequence[Any], text: str | None) -> KeptRows | None:
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if not self._answers_unseen():
                return None
            rows = self.look_ups.find(read, parameters)
            if rows is not None:
                if text is not None:
                    self._state.prepared.discard("")
                self._asked(read.text if text is None else text)
            return rows
        finally:
            self._lock.release()

    # --- simple protocol --------------------------------------------------------------------------------------------
    def simple_query(self, text: str) -> Iterator[Result | Postponed]:
        return Restartable(partial(self._answers, text))

    def _answers(self, text: str) -> Iterator[Result | Postponed]:
        statements: Sequence[Statement] = ()
        try:
            with self._call(text):
                self._state.prepared.discard("")
                self._state.portals.discard("")
                single = self._without_parsing(text)
                if single is None:
                    statements = self._parse(text, self._new_clock())
                if len(statements) > 1:
                    self._begin_implicit(of_text=True)
            if isinstance(single, Postponed):
                yield single
            elif single is not None:
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
            for statement in statements:
                self._state.services.large_texts.free(statement)

    def _without_parsing(self, text: str) -> Result | Postponed | None:
        """The answer of an extension, or of a SELECT whose plan is known by its text."""
        called = self._extensions.run(text)
        if called is not None:
            return called
        known = self._dispatch.run_known(text, self._new_clock)
        return Postponed() if known is None and self.at_once else known

    def _parse(self, text: str, clock: StatementClock) -> Sequence[Statement]:
        with clock.working(), self._state.services.large_texts.parsing(text, lambda: clock.cancelled):
            statements = self._rewritten(text)
        clock.check()
        return statements

    def _rewritten(self, text: str) -> Sequence[Statement]:
        services = self._state.services
        try:
            return self._state.parse(text)
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
            clock = self._new_clock()
            with clock.working():
                prepared = self._dispatch.prepare(name, text, parameter_oids)
            clock.check()
            self._state.prepared.add(prepared)

    def describe_statement(self, name: str) -> StatementDescription:
        with self._call():
            prepared = self._state.prepared.get(name)
            return StatementDescription(prepared.parameter_oids, self._dispatch.described(prepared))

    def reading(self, read: Callable[[Callable[[], None]], list[Any]]) -> list[Any] | Postponed:
        if self.at_once:
            return Postponed()
        with self._call():
            clock = self._new_clock()
            with clock.working():
                return read(clock.check)

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

    def execute(self, portal: str, max_rows: int | None = None) -> Result | Postponed:
        with self._call():
            cursor = self._state.cursors.find(portal)
            if cursor is not None:
                return Postponed() if self.at_once else self._dispatch.read_cursor(cursor, max_rows)
            found = self._state.portals.get(portal)
            self.activity.query(found.prepared.text)
            self._begin_implicit()
            if self.at_once:
                return self._dispatch.run_portal_at_once(found, self._new_clock())
            return self._dispatch.run_portal(found, max_rows, self._new_clock())

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
    def cancel(self) -> bool:
        return self.cancel_for(USER_REQUEST)

    def cancel_for(self, reason: str) -> bool:
        """False where there is nothing to cancel: the turn is the client's."""
        if not self._in_call and self._state.clock is None:
            return False
        # First, for a clock to come: a statement that is being parsed has none yet, and that of one part of a text may
        # have stopped while that of the next has not begun.
        self._cancel_reason = reason
        clock = self._state.clock
        if clock is not None:
            clock.cancel(reason)
        return True

    def close(self) -> None:
        self.cancel()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._state.transaction.end()
            try:
                self._state.cursors.clear()
                self._state.portals.clear()
                self._state.prepared.clear()
                self._dispatch.pushes.end_transaction()
                self._dispatch.pulls.close()
            finally:
                self._on_close()

    def terminate(self, error: SqlError) -> None:
        """Ends the session from the server's side: what it holds is freed now, its next call raises ``error``."""
        self._ending = error
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
            self._idle.busy()
            token = session_id_var.set(str(self.id))
            self._in_call = True
            try:
                if self._terminated is not None:
                    raise self._terminated
                self._follow_roles()
                if text is not None:
                    self.activity.query(text)
                    if _log.isEnabledFor(logging.DEBUG):
                        _log.debug("statement: %s", loggable_sql(text))
                yield
                if self._cancel_reason is not None and not self._is_cancelled():
                    raise SqlError(sqlstates.QUERY_CANCELED, self._cancel_reason)
            except Exception as error:  # noqa: BLE001 - raised again
                raise_instead(self._fail(error), error)
            finally:
                self._in_call = False
                session_id_var.reset(token)

    def _follow_roles(self) -> None:
        try:
            self._state.follow_roles()
        except SqlError as error:
            self._terminated = error
            raise

    def _new_clock(self) -> StatementClock:
        timeout_s = self._state.settings.seconds("statement_timeout")
        clock = StatementClock(self._state.services.deadlines, timeout_s, self._began)
        self._state.clock = clock
        if self._cancel_reason is not None:
            clock.cancel(self._cancel_reason)
        return clock

    def _began(self, clock: StatementClock) -> None:
        """A statement is at work, perhaps again: the wire reads a suspended portal without asking the session."""
        if self._state.clock is not clock:
            with self._lock:
                self._idle.busy()
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
            if self._ending is None:
                return error
            self._terminated = self._ending  # which is told here, in the statement's place
            return self._ending
        if isinstance(error, RecursionError):
            return SqlError(sqlstates.STATEMENT_TOO_COMPLEX, "statement is nested too deeply")
        if isinstance(error, MemoryError):
            return SqlError(sqlstates.OUT_OF_MEMORY, "out of memory")
        known = want_of_resources(error) or self._state.services.explain_failure(error)
        if known is not None:
            return known
        _log.error("a statement failed for a reason that is not the user's", exc_info=error)
        return SqlError(
            sqlstates.INTERNAL_ERROR,
            "internal error",
            hint=f"The server's log has the details under session={self.id}.",
        )

    # --- the client's turn ------------------------------------------------------------------------------------------
    def _rest(self) -> None:
        """There is nothing to cancel now."""
        self._state.clock = self._cancel_reason = None
        status = self._state.transaction.status
        self.activity.idle(status)
        if not self._closed:
            self._idle.rest(in_transaction=status != "I")
