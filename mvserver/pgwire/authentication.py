"""Who may log in: the step between the start-up packet and the session.

A method may exchange messages with the client, so it is written as a part of the engine's conversation: a generator
that yields the engine's actions. Only trust is here; it is for the machine itself, never for a network.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol

from mvserver import sqlstates
from mvserver.pgwire.actions import Action
from mvserver.pgwire.backend import Startup
from mvserver.pgwire.codec import fatal


class Authentication(Protocol):
    def authenticate(self, startup: Startup) -> Generator[Action, Any, None]:
        """Returns when the client is who it says; raises a FATAL error otherwise."""


class TrustLoopback:
    """Believes whoever connects from the machine itself."""

    def authenticate(self, startup: Startup) -> Generator[Action, Any, None]:
        if not startup.local:
            raise fatal(
                sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
                f'connections from host "{startup.peer}" are not allowed without authentication',
            )
        yield from ()
