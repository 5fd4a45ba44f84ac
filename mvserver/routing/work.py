"""Effects of a statement outside the catalog: those to take back on an error, and actions after the commit.

A statement is wholly there or wholly gone, in the stores as in the catalog. An effect is therefore registered with its
opposite; when a later step fails, the opposites run in reverse. The engine is told when everything is durable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.session.context import SessionContext

Action = Callable[[], None]

_log = logging.getLogger(__name__)


class Work:
    """Of one statement, or of all statements that one COMMIT carries out. A rehearsal validates and does nothing."""

    def __init__(self, *, rehearsal: bool = False) -> None:
        self.rehearsal = rehearsal
        self._undo: list[tuple[str, Action]] = []
        self._after: list[Action] = []
        self._ends: list[Action] = []

    def effect(self, what: str, do: Action, undo: Action) -> None:
        """``what`` names the effect for the warning that is due when it cannot be taken back."""
        if self.rehearsal:
            return
        do()
        self._undo.append((what, undo))

    def at_end(self, action: Action) -> None:
        """Runs when the work is durable, or taken back; it does not fail."""
        self._ends.append(action)

    def after_commit(self, action: Action) -> None:
        """Runs once, however often the same bound method is given."""
        if not self.rehearsal and action not in self._after:
            self._after.append(action)

    def take_back(self, context: SessionContext) -> None:
        """After an error: every effect's opposite, the last first. One that fails leaves the others their turn."""
        while self._undo:
            what, undo = self._undo.pop()
            try:
                undo()
            except Exception as error:  # noqa: BLE001 - told, and the statement's own error is raised by the caller
                told = _told(error, f"{what} could not be taken back")
                context.warning(f"{what} could not be taken back: {told.message}", hint=told.hint)
        self._end()

    def finish(self, context: SessionContext) -> None:
        """After the commit: the change stands, so a failure here is told as a warning and not as the statement's."""
        self._end()
        for action in self._after:
            try:
                action()
            except Exception as error:  # noqa: BLE001 - whatever it is, what is committed has not failed
                told = _told(error, "after the commit")
                context.warning(
                    f"the statement is durable, but did not take effect yet: {told.message}",
                    sqlstate=told.sqlstate,
                    hint=told.hint,
                )

    def _end(self) -> None:
        while self._ends:
            self._ends.pop()()


def _told(error: Exception, when: str) -> SqlError:
    """The error as a client is told it; what is not the user's has its traceback in the log."""
    if isinstance(error, SqlError):
        _log.warning("%s: %s", when, error)
        return error
    _log.error("%s", when, exc_info=error)
    return SqlError(sqlstates.INTERNAL_ERROR, "internal error", hint="The server's log has the details.")
