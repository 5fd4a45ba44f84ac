"""The open sessions: numbered, listed for pg_stat_activity, ended together at shutdown."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Startup
from mvserver.session.session import Session


@dataclass(frozen=True)
class SessionActivity:
    """A row of pg_stat_activity; times are seconds since the epoch."""

    session_id: int
    process: int  # what the client knows it by
    user: str
    database: str
    application_name: str
    peer: str
    backend_start: float
    xact_start: float | None
    query_start: float | None
    state_change: float
    state: str
    query: str
    cipher: tuple[str, str, int] | None = None


@dataclass(frozen=True)
class ConnectionLimits:
    """How many sessions may be open when one more is to come; None: as many as the wire lets in."""

    of_all: int | None = None
    of_role: int | None = None


class SessionRegistry:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._sessions: dict[int, tuple[Session, Startup]] = {}

    def new_id(self) -> int:
        return next(self._ids)

    def add(self, session: Session, startup: Startup, limits: ConnectionLimits | None = None) -> None:
        """53300 where there are as many as there may be; looked at and added in one step."""
        with self._lock:
            if limits is not None:
                self._refuse_too_many(startup.user, limits)
            self._sessions[session.id] = (session, startup)

    def _refuse_too_many(self, role: str, limits: ConnectionLimits) -> None:
        if limits.of_all is not None and len(self._sessions) >= limits.of_all:
            raise SqlError(
                sqlstates.TOO_MANY_CONNECTIONS,
                "remaining connection slots are reserved for non-replication superuser connections",
                severity="FATAL",
            )
        if limits.of_role is not None:
            own = sum(1 for session, _ in self._sessions.values() if session.session_role == role)
            if own >= limits.of_role:
                raise SqlError(
                    sqlstates.TOO_MANY_CONNECTIONS, f'too many connections for role "{role}"', severity="FATAL"
                )

    def remove(self, session_id: int) -> None:
        with self._lock:
            self._sessions.pop(session_id, None)

    def __len__(self) -> int:
        return len(self._sessions)

    def activity(self) -> Sequence[SessionActivity]:
        with self._lock:
            entries = list(self._sessions.values())
        return [_row(session, startup) for session, startup in entries]

    def by_process(self, process: int) -> Session | None:
        with self._lock:
            entries = list(self._sessions.values())
        return next((session for session, startup in entries if _process(session, startup) == process), None)

    def terminate_all(self) -> None:
        """At shutdown: running statements are stopped and each session's next call is refused."""
        with self._lock:
            entries = list(self._sessions.values())
        for session, _ in entries:
            session.terminate(
                SqlError(
                    sqlstates.ADMIN_SHUTDOWN, "terminating connection due to administrator command", severity="FATAL"
                )
            )


def _row(session: Session, startup: Startup) -> SessionActivity:
    activity = session.activity
    return SessionActivity(
        session_id=session.id,
        process=_process(session, startup),
        user=session.session_role,
        database=startup.database,
        application_name=session.application_name,
        peer=startup.peer,
        backend_start=activity.backend_start,
        xact_start=activity.xact_start,
        query_start=activity.query_start,
        state_change=activity.state_change,
        state=activity.state,
        query=activity.query_text,
        cipher=startup.cipher,
    )


def _process(session: Session, startup: Startup) -> int:
    return startup.process or session.id
