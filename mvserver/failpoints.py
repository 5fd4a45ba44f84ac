"""Named points at which a test can end, fail or hold up the server: ``MVSERVER_FAILPOINTS="after rows=kill:3"``.

An action is ``kill`` (SIGKILL to this process) or ``raise``; ``:n`` lets the point be reached n - 1 times before.
Points: before begin, after rows, after ledger, after commit, after spark, before spark commit, before sink, after sink,
before forget, live rows.
"""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass, field

from mvserver import sqlstates
from mvserver.errors import SqlError

VARIABLE = "MVSERVER_FAILPOINTS"


@dataclass
class Failpoints:
    """``actions``: point to (action, the visit at which it acts). Empty in production: one look into a dictionary."""

    actions: dict[str, tuple[str, int]] = field(default_factory=dict)
    _visits: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def from_environment(cls) -> Failpoints:
        actions: dict[str, tuple[str, int]] = {}
        for item in filter(None, os.environ.get(VARIABLE, "").split(",")):
            point, _, action = item.partition("=")
            name, _, visit = action.partition(":")
            if name not in ("kill", "raise"):
                raise SqlError(sqlstates.CONFIG_FILE_ERROR, f'{VARIABLE} has no action "{name}"')
            actions[point.strip()] = (name, int(visit or 1))
        return cls(actions)

    def reached(self, point: str) -> None:
        if point not in self.actions:
            return
        action, visit = self.actions[point]
        with self._lock:
            self._visits[point] = self._visits.get(point, 0) + 1
            if self._visits[point] != visit:
                return
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise SqlError(sqlstates.SYSTEM_ERROR, f"failpoint {point}")
