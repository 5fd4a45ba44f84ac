"""The activity of a session, as pg_stat_activity shows it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from mvserver.observability import loggable_sql

_QUERY_CHARACTERS_MAX = 1_024  # PostgreSQL's track_activity_query_size
_STATES = {"I": "idle", "T": "idle in transaction", "E": "idle in transaction (aborted)"}


@dataclass
class Activity:
    """Times are seconds since the epoch."""

    backend_start: float = field(default_factory=time.time)
    state: str = "idle"
    state_change: float = field(default_factory=time.time)
    query_start: float | None = None
    xact_start: float | None = None
    _text: str = ""

    def query(self, text: str) -> None:
        now = time.time()
        self._text = text[:_QUERY_CHARACTERS_MAX]  # a session must not keep a text of megabytes
        self.state, self.state_change, self.query_start = "active", now, now
        self.xact_start = self.xact_start or now

    def asked(self, text: str) -> None:
        """A statement that is answered already."""
        self._text = text[:_QUERY_CHARACTERS_MAX]
        self.state_change = self.query_start = time.time()

    def idle(self, transaction_status: str) -> None:
        self.state, self.state_change = _STATES[transaction_status], time.time()
        if transaction_status == "I":
            self.xact_start = None

    @property
    def query_text(self) -> str:
        """Secrets masked when it is looked at, not on each statement's way."""
        return loggable_sql(self._text)
