"""``mv.freshness``: before views are read, the wait until they are as fresh as the session asks.

``latest`` reads what was written: the sources say where they end now, and each view must have come there. A duration
is met by what was confirmed within it; where that was longer ago, the sources are asked, for no longer than the
duration. ``any`` asks nothing and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import moments
from mvserver.session.clock import StatementClock
from mvserver.session.settings.setting_values import milliseconds
from mvserver.session.slices import Slices
from mvserver.session.state import SessionState


class FreshnessGate:
    def __init__(self, state: SessionState) -> None:
        self._state = state

    @property
    def asks_nothing(self) -> bool:
        return self._state.settings.current["mv.freshness"] == "any"

    def before_read(self, view_ids: Sequence[str], clock: StatementClock) -> None:
        if self.asks_nothing:
            return
        wanted = self._state.settings.current["mv.freshness"]
        limit_s = self._state.settings.seconds("mv.freshness_timeout")
        if wanted != "latest":
            age_max_s = (milliseconds(wanted) or 0) / 1000
            confirmed = self._state.services.views.confirmed_at(view_ids)
            if confirmed is not None and moments.now() - confirmed <= age_max_s:
                return
            limit_s = age_max_s if limit_s is None else min(limit_s, age_max_s)
        self._wait(view_ids, limit_s, clock)

    def _wait(self, view_ids: Sequence[str], limit_s: float | None, clock: StatementClock) -> None:
        slices = Slices(limit_s)  # asking the sources counts, too
        with clock.working():
            ends = self._state.services.views.present_ends(view_ids)
        for slice_s, _ in slices:
            with clock.working():
                if ends.wait(slice_s):
                    return
        raise ends.behind()
