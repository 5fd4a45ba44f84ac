"""The check of a password: the verifier that a role is asked for, the count of failures, and the refusal.

A front end has its own exchange of messages. It calls ``begin`` first, ``challenge`` with what ``kept`` returned,
``attempt`` before it judges an answer, and ``conclude`` after it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol

from mvserver import limits, sqlstates
from mvserver.auth import passwords, scram
from mvserver.auth.throttle import Throttle
from mvserver.errors import fatal

_LOG = logging.getLogger(__name__)


class PasswordSource(Protocol):
    def password_of(self, role: str) -> str | None:
        """The verifier that is kept; None for a role that is not there or has no password. May block."""


@dataclass(frozen=True)
class Challenge:
    """The verifier that a client is asked for. No answer is right where it ``is_made_up``."""

    verifier: passwords.Verifier
    is_made_up: bool = False
    reason: str = "the password is wrong"  # for the log, where the answer is refused


class PasswordCheck:
    """SCRAM-SHA-256; where ``md5`` is allowed, MD5 for the roles whose passwords are kept so.

    A client hears one error at one place of the exchange, whatever is wrong; the log has the reason. Safe from any
    thread.
    """

    def __init__(
        self, source: PasswordSource, *, secret: bytes, md5: bool = False, throttle: Throttle | None = None
    ) -> None:
        self._source = source
        self._secret = secret
        self._md5 = md5
        self._throttle = throttle or Throttle()

    def begin(self, address: str, role: str) -> None:
        """28000 FATAL after too many failures of the address or the role."""
        self._throttle.check(address, role)

    def kept(self, role: str) -> str | None:
        """The text of the role's verifier, None without one. May block."""
        return self._source.password_of(role)

    def challenge(self, role: str, kept: str | None) -> Challenge:
        """The verifier to ask for, made up for a role that has none that may be used."""
        verifier = None if kept is None else passwords.parse(kept)
        if self._md5 and isinstance(verifier, passwords.Md5Verifier):
            return Challenge(verifier)
        # made for everybody, and read like one that is kept, so that no time tells who needs it
        made_up = passwords.parse(scram.pretended(role, self._secret, limits.SCRAM_ITERATIONS).text())
        assert made_up is not None  # noqa: S101 - as it was spelled
        if isinstance(verifier, passwords.ScramVerifier):
            return Challenge(verifier)
        if verifier is None:
            return Challenge(made_up, is_made_up=True, reason="there is no such role, or it has no password")
        return Challenge(made_up, is_made_up=True, reason="its password is kept for MD5, which is not allowed")

    def attempt(self, address: str, role: str) -> None:
        """Counts a failure before the answer is judged, so that answers at the same time are no way around."""
        self._throttle.charge(address, role)

    def conclude(self, address: str, role: str, challenge: Challenge, good: bool) -> None:
        """28P01 FATAL unless the answer was ``good``; otherwise the attempt is no failure."""
        if not good:
            _LOG.warning("authentication failed for role %r from %s: %s", role, address, challenge.reason)
            raise fatal(sqlstates.INVALID_PASSWORD, f'password authentication failed for user "{role}"')
        self._throttle.forgive(address, role)
