"""Before a view is read: waiting while its history is being filled, and saying so when it is not kept up to date."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.serving.api import PullPlan
from mvserver.session.clock import StatementClock
from mvserver.session.slices import Slices
from mvserver.session.state import SessionState
from mvserver.streaming.api import QueryState, QueryStatus

_STATUS_AGE_MAX_S = 1.0  # how old may be what a warning is based on: a status costs as much as a look-up
_MAY_STILL_FILL = (QueryState.STARTING, QueryState.FILLING, QueryState.STALLED)


class ViewWatch:
    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._statuses: dict[str, tuple[float, str, QueryStatus | None]] = {}  # by view: when, its name, what
        self._warned: set[tuple[str, QueryState]] = set()
        self._settled: dict[tuple[str, ...], tuple[float, int, int]] = {}  # views whole then; generation, failures

    def before_read(self, plan: PullPlan, clock: StatementClock) -> None:
        view_ids = plan.view_ids
        if self._state.settings.flag("mv.read_while_filling"):
            self._state.services.views.refuse_empty(view_ids)
            self._tell(plan, filling=True)
        elif not self.is_settled(plan):
            looked, failures = time.monotonic(), self._state.services.views.failures()
            self._wait(view_ids, clock)
            self._tell(plan, filling=False)
            if len(self._settled) >= limits.VIEW_STATES_REMEMBERED_MAX:
                self._settled.clear()
            self._settled[view_ids] = (looked, plan.generation, failures)

    def is_settled(self, plan: PullPlan) -> bool:
        """Whether a moment ago there was nothing to wait for or to say; a rebuilt view has a newer generation."""
        known = self._settled.get(plan.view_ids)
        return not plan.view_ids or (
            known is not None
            and known[1] == plan.generation
            and time.monotonic() - known[0] < _STATUS_AGE_MAX_S
            and known[2] == self._state.services.views.failures()
            and not self._state.settings.flag("mv.read_while_filling")
        )

    # --- waiting ----------------------------------------------------------------------------------------------------
    def _wait(self, view_ids: Sequence[str], clock: StatementClock) -> None:
        def wait(seconds: float) -> None:
            with clock.working():
                self._state.services.views.wait_while_filling(view_ids, seconds)

        until_filled(
            wait,
            self._state.settings.seconds("mv.filling_timeout"),
            lambda: self._may_still_fill(view_ids),
            "SET mv.read_while_filling = on reads what is there; mv.filling_timeout is how long to wait.",
        )

    def _may_still_fill(self, view_ids: Sequence[str]) -> bool:
        """False when one of them never will: its query has failed."""
        statuses = [self._status(view_id, 0.0)[1] for view_id in view_ids]
        return all(status is None or status.state in (*_MAY_STILL_FILL, QueryState.RUNNING) for status in statuses)

    # --- telling ----------------------------------------------------------------------------------------------------
    def _tell(self, plan: PullPlan, *, filling: bool) -> None:
        """A stalled or failed view is named once per session, a filling one each time that it is read so. The cause may
        name a value, which is not for who sees some rows alone."""
        for view_id in plan.view_ids:
            name, status = self._status(view_id, 0.0 if filling else _STATUS_AGE_MAX_S)
            if status is None:
                continue
            if filling and status.state in (QueryState.FILLING, QueryState.STARTING):
                share = f", {status.filled_share:.0%} read" if status.filled_share is not None else ""
                self._state.context.notice(f'materialized view "{name}" is still being filled{share}')
            elif status.state in (QueryState.STALLED, QueryState.FAILED):
                if (view_id, status.state) in self._warned:
                    continue
                self._warned.add((view_id, status.state))
                self._state.context.warning(
                    f'materialized view "{name}" is not kept up to date: its query is {status.state.value}',
                    hint=f"The cause is: {status.error}" if status.error and not plan.secured else None,
                )

    def _status(self, view_id: str, age_max_s: float) -> tuple[str, QueryStatus | None]:
        """The view's name and state; None for a view that no query keeps."""
        now = time.monotonic()
        known = self._statuses.get(view_id)
        if known is not None and now - known[0] < age_max_s:
            return known[1], known[2]
        found = self._state.services.directory.query_of_view(view_id)
        name, status = ("", None) if found is None else (found[0], self._look(found[1]))
        if len(self._statuses) >= limits.VIEW_STATES_REMEMBERED_MAX:
            self._statuses.clear()
        self._statuses[view_id] = (now, name, status)
        return name, status

    def _look(self, query_id: str) -> QueryStatus | None:
        try:
            return self._state.services.views.status(query_id)
        except SqlError as error:
            if error.sqlstate == sqlstates.UNDEFINED_OBJECT:  # it is just being made or dropped
                return None
            raise


def until_filled(
    wait: Callable[[float], None], limit_s: float | None, may_still_fill: Callable[[], bool], hint: str
) -> None:
    """``wait`` waits for some seconds, and raises 55000 where views are not filled then. So does this, with the
    ``hint``, after ``limit_s`` (None: never), or where they will not be."""
    for slice_s, last in Slices(limit_s):
        try:
            wait(slice_s)
        except SqlError as error:
            if error.sqlstate != sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE or not may_still_fill():
                raise
            if last:
                error.hint = error.hint or hint
                raise
        else:
            return
