"""Before a view is read: waiting while its history is being filled, and saying so when it is not kept up to date."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.session.clock import StatementClock
from mvserver.session.state import SessionState
from mvserver.streaming.api import QueryState

_SLICE_S = 0.25  # a cancel is seen after at most this


class ViewWatch:
    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._warned: set[tuple[str, QueryState]] = set()

    def before_read(self, view_ids: Sequence[str], clock: StatementClock) -> None:
        if self._state.settings.flag("mv.read_while_filling"):
            self._tell(view_ids, filling=True)
            return
        self._wait(view_ids, clock)
        self._tell(view_ids, filling=False)

    def _wait(self, view_ids: Sequence[str], clock: StatementClock) -> None:
        """In slices, so that a cancel or time-out ends the wait within a second."""
        limit_s = self._state.settings.seconds("mv.filling_timeout")
        started = time.monotonic()
        while True:
            left_s = None if limit_s is None else limit_s - (time.monotonic() - started)
            slice_s = _SLICE_S if left_s is None else max(min(_SLICE_S, left_s), 0.0)
            try:
                with clock.working():
                    self._state.services.views.wait_while_filling(view_ids, slice_s)
            except SqlError as error:
                if error.sqlstate != sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:
                    raise
                if left_s is not None and left_s <= slice_s:
                    error.hint = error.hint or (
                        "SET mv.read_while_filling = on reads what is there; mv.filling_timeout is how long to wait."
                    )
                    raise
            else:
                return

    def _tell(self, view_ids: Sequence[str], *, filling: bool) -> None:
        """A stalled or failed view is named once per session, a filling one each time that it is read so."""
        for view_id in view_ids:
            found = self._state.services.directory.query_of_view(view_id)
            if found is None:
                continue
            name, query_id = found
            status = self._state.services.views.status(query_id)
            if filling and status.state in (QueryState.FILLING, QueryState.STARTING):
                share = f", {status.filled_share:.0%} read" if status.filled_share is not None else ""
                self._state.context.notice(f'materialized view "{name}" is still being filled{share}')
            elif status.state in (QueryState.STALLED, QueryState.FAILED):
                if (view_id, status.state) in self._warned:
                    continue
                self._warned.add((view_id, status.state))
                self._state.context.warning(
                    f'materialized view "{name}" is not kept up to date: its query is {status.state.value}',
                    hint=f"The cause is: {status.error}" if status.error else None,
                )
