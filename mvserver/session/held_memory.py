"""Memory that sessions hold until they let go of it: bounded for a session, for its role, and for the server."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.errors import SqlError


@dataclass(frozen=True)
class Bounds:
    """Bytes."""

    of_session: int
    of_role: int
    of_server: int


class HeldMemory:
    """Of one kind, of all sessions. For any thread."""

    def __init__(self, what: str, bounds: Bounds, hint: str) -> None:
        """``what`` is the subject of the error's message, in the plural."""
        self._what = what
        self._bounds = bounds
        self._hint = hint
        self._lock = threading.Lock()
        self._of_role: Counter[str] = Counter()

    @property
    def total(self) -> int:
        with self._lock:
            return self._of_role.total()

    def share(self, role: str) -> HeldShare:
        """A session's."""
        return HeldShare(self, role)

    def take(self, role: str, of_session: int, size: int) -> None:
        """53200 where there is no room; ``of_session`` is what the session holds already."""
        with self._lock:
            held = (
                ("a session", of_session, self._bounds.of_session),
                ("a role", self._of_role[role], self._bounds.of_role),
                ("all sessions", self._of_role.total(), self._bounds.of_server),
            )
            for whose, present, most in held:
                if present + size > most:
                    raise SqlError(
                        sqlstates.OUT_OF_MEMORY,
                        f"{self._what} take too much memory",
                        detail=f"Those of {whose} may take {most // 2**20} MiB together; they take "
                        f"{present / 2**20:.1f} MiB, and this one {size / 2**20:.1f} MiB more.",
                        hint=self._hint,
                    )
            self._of_role[role] += size

    def give_back(self, role: str, size: int) -> None:
        with self._lock:
            self._of_role -= Counter({role: size})


class HeldShare:
    """What one session holds."""

    def __init__(self, memory: HeldMemory, role: str) -> None:
        self._memory = memory
        self._role = role
        self.held = 0

    def take(self, size: int) -> None:
        self._memory.take(self._role, self.held, size)
        self.held += size

    def give_back(self, size: int) -> None:
        self._memory.give_back(self._role, size)
        self.held -= size
