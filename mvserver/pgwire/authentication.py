"""Who may log in: the step between the start-up packet and the session.

A method may exchange messages with the client, so it is written as a part of the engine's conversation: a generator
that yields the engine's actions. Trust is for the machine itself, never for a network.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Generator
from typing import Any, Protocol

from mvserver import limits, sqlstates
from mvserver.pgwire import messages, passwords, replies, scram
from mvserver.pgwire.actions import Action, Work
from mvserver.pgwire.backend import Startup
from mvserver.pgwire.codec import fatal
from mvserver.pgwire.throttle import Throttle

_LOG = logging.getLogger(__name__)

_MD5_SALT_BYTES = 4  # as the protocol has it


class Client(Protocol):
    """The other end of the exchange."""

    @property
    def binding(self) -> bytes | None:
        """What a SCRAM exchange can be tied to: of the TLS connection, None without one."""

    def send(self, message: bytes) -> None: ...

    def answer(self) -> Generator[Action, Any, bytes]:
        """The body of its next message, which answers the last request."""


class Authentication(Protocol):
    def authenticate(self, startup: Startup, client: Client) -> Generator[Action, Any, None]:
        """Returns when the client is who it says; raises a FATAL error otherwise."""


class TrustLoopback:
    """Believes whoever connects from the machine itself."""

    def authenticate(self, startup: Startup, client: Client) -> Generator[Action, Any, None]:
        if not startup.local:
            raise fatal(
                sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
                f'connections from host "{startup.peer}" are not allowed without authentication',
            )
        yield from ()


class PasswordSource(Protocol):
    def password_of(self, role: str) -> str | None:
        """The verifier that is kept; None for a role that is not there or has no password. May block."""


class PasswordAuthentication:
    """SCRAM-SHA-256; where ``md5`` is allowed, MD5 for the roles whose passwords are kept so.

    Whatever is wrong, the client hears one thing at one place of the exchange; the log has the reason.
    """

    def __init__(self, source: PasswordSource, *, secret: bytes, md5: bool = False, throttle: Throttle | None = None):
        self._source = source
        self._secret = secret
        self._md5 = md5
        self._throttle = throttle or Throttle()

    def authenticate(self, startup: Startup, client: Client) -> Generator[Action, Any, None]:
        self._throttle.check(startup.peer, startup.user)
        text: str | None = yield Work(lambda: self._source.password_of(startup.user))
        verifier = None if text is None else passwords.parse(text)
        if self._md5 and isinstance(verifier, passwords.Md5Verifier):
            good = yield from self._ask_md5(verifier, startup, client)
        else:
            good = yield from self._ask_scram(verifier, startup, client)
        if not good:
            _LOG.warning(
                "authentication failed for role %r from %s: %s", startup.user, startup.peer, self._reason(verifier)
            )
            raise fatal(sqlstates.INVALID_PASSWORD, f'password authentication failed for user "{startup.user}"')
        self._throttle.forgive(startup.peer, startup.user)

    def _reason(self, verifier: passwords.Verifier | None) -> str:
        if verifier is None:
            return "there is no such role, or it has no password"
        if isinstance(verifier, passwords.Md5Verifier) and not self._md5:
            return "its password is kept for MD5, which is not allowed"
        return "the password is wrong"

    def _ask_md5(
        self, verifier: passwords.Md5Verifier, startup: Startup, client: Client
    ) -> Generator[Action, Any, bool]:
        salt = secrets.token_bytes(_MD5_SALT_BYTES)
        client.send(replies.authentication_md5(salt))
        given = messages.read_password((yield from client.answer()))
        self._throttle.charge(startup.peer, startup.user)
        return secrets.compare_digest(given, verifier.answer(salt))

    def _ask_scram(
        self, verifier: passwords.Verifier | None, startup: Startup, client: Client
    ) -> Generator[Action, Any, bool]:
        # made for everybody, and read like one that is kept, so that no time tells who needs it
        made_up = scram.pretended(startup.user, self._secret, limits.SCRAM_ITERATIONS).text()
        known = verifier if isinstance(verifier, passwords.ScramVerifier) else None
        asked = known or passwords.parse(made_up)
        assert isinstance(asked, passwords.ScramVerifier)  # noqa: S101 - as it was spelled
        exchange = scram.ScramExchange(asked, binding=client.binding)
        client.send(replies.authentication_sasl(exchange.mechanisms))
        initial = messages.read_sasl_initial((yield from client.answer()))
        if initial.response is None:
            raise fatal(sqlstates.PROTOCOL_VIOLATION, "malformed SCRAM message", detail="The client must speak first.")
        client.send(replies.authentication_sasl_continue(exchange.first(initial.mechanism, _bounded(initial.response))))
        last = _bounded((yield from client.answer()))
        self._throttle.charge(startup.peer, startup.user)
        proof = exchange.final(last)
        if proof is None or known is None:
            return False
        client.send(replies.authentication_sasl_final(proof))
        return True


def _bounded(message: bytes) -> bytes:
    if len(message) > limits.SASL_MESSAGE_BYTES_MAX:
        raise fatal(
            sqlstates.PROTOCOL_VIOLATION,
            "SASL message is too long",
            detail=f"It has {len(message)} bytes; {limits.SASL_MESSAGE_BYTES_MAX} are allowed.",
        )
    return message
