"""The exchange of messages between the start-up packet and the session, by which a client proves its role.

A method may exchange messages with the client, so it is written as a part of the engine's conversation: a generator
that yields the engine's actions. Trust is for the machine itself, never for a network.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator
from typing import Any, Protocol

from mvserver import limits, sqlstates
from mvserver.auth import scram
from mvserver.auth.password_check import PasswordCheck
from mvserver.auth.passwords import Md5Verifier, ScramVerifier
from mvserver.errors import fatal
from mvserver.front import Startup
from mvserver.pgwire import messages, replies
from mvserver.pgwire.actions import Action, BlockingCall

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


class PasswordAuthentication:
    """Asks for the role's password by MD5 or SCRAM-SHA-256, as the check says."""

    def __init__(self, check: PasswordCheck) -> None:
        self._check = check

    def authenticate(self, startup: Startup, client: Client) -> Generator[Action, Any, None]:
        self._check.begin(startup.peer, startup.user)
        kept: str | None = yield BlockingCall(lambda: self._check.kept(startup.user))
        challenge = self._check.challenge(startup.user, kept)
        if isinstance(challenge.verifier, Md5Verifier):
            good = yield from self._ask_md5(challenge.verifier, startup, client)
        else:
            good = yield from self._ask_scram(challenge.verifier, not challenge.is_made_up, startup, client)
        self._check.conclude(startup.peer, startup.user, challenge, good)

    def _ask_md5(self, verifier: Md5Verifier, startup: Startup, client: Client) -> Generator[Action, Any, bool]:
        salt = secrets.token_bytes(_MD5_SALT_BYTES)
        client.send(replies.authentication_md5(salt))
        given = messages.read_password((yield from client.answer()))
        self._check.attempt(startup.peer, startup.user)
        return secrets.compare_digest(given, verifier.answer(salt))

    def _ask_scram(
        self, verifier: ScramVerifier, known: bool, startup: Startup, client: Client
    ) -> Generator[Action, Any, bool]:
        exchange = scram.ScramExchange(verifier, binding=client.binding)
        client.send(replies.authentication_sasl(exchange.mechanisms))
        initial = messages.read_sasl_initial((yield from client.answer()))
        if initial.response is None:
            raise fatal(sqlstates.PROTOCOL_VIOLATION, "malformed SCRAM message", detail="The client must speak first.")
        client.send(replies.authentication_sasl_continue(exchange.first(initial.mechanism, _bounded(initial.response))))
        last = _bounded((yield from client.answer()))
        self._check.attempt(startup.peer, startup.user)
        proof = exchange.final(last)
        if proof is None or not known:
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
