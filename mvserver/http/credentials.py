"""Who asks: the Authorization header, as a role. Passwords and tokens are in no log and in no message."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Protocol

from mvserver import sqlstates
from mvserver.auth.password_check import PasswordCheck
from mvserver.auth.plain_password import check_plain
from mvserver.errors import SqlError, fatal
from mvserver.listening import is_loopback

BASIC, BEARER = "basic", "bearer"
CHALLENGE = 'Basic realm="mvserver", charset="UTF-8", Bearer realm="mvserver"'
BEARER_CHALLENGE = 'Bearer realm="mvserver"'
"""For who came with a token: a browser that is told of Basic asks its user for a password."""

_LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain"})


class TokenSource(Protocol):
    def role_of(self, token: str) -> str | None:
        """The role that a token acts as; None for one that is not there or no longer valid. May block."""


@dataclass(frozen=True)
class Caller:
    """``host`` is the Host header's."""

    peer: str
    local: bool
    host: str
    authorization: str | None

    @property
    def scheme(self) -> str:
        return (self.authorization or "").partition(" ")[0].lower()


class Credentials:
    """``check`` is None where whoever reaches the port is believed."""

    def __init__(self, check: PasswordCheck | None, tokens: TokenSource) -> None:
        self._check = check
        self._tokens = tokens

    def role_of(self, caller: Caller) -> str:
        """28000 or 28P01 where it is not clear who asks. May block, and computes for some milliseconds."""
        if self._check is None:
            _refuse_strangers(caller)
        scheme, _, value = (caller.authorization or "").partition(" ")
        value = value.strip()
        if scheme.lower() == BEARER and value:
            return self._role_of_token(value)
        if scheme.lower() == BASIC and value:
            role, password = _basic(value)
            if self._check is not None:
                check_plain(self._check, caller.peer, role, password)
            return role
        raise _unknown(
            "the request has no credentials",
            "Send Authorization: Basic with a role and its password, or Authorization: Bearer with an API token.",
        )

    def _role_of_token(self, token: str) -> str:
        role = self._tokens.role_of(token)
        if role is None:
            raise _unknown("the token is not valid", "It may have been dropped, or its time may be over.")
        return role


def _refuse_strangers(caller: Caller) -> None:
    """Without authentication: only the machine itself, and no page of another site that has its name lead here."""
    if not caller.local:
        raise _unknown(f'connections from host "{caller.peer}" are not allowed without authentication', None)
    name = caller.host.strip()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    if name.lower() not in _LOCAL_NAMES and not is_loopback(name):
        raise _unknown(
            "the Host header does not name this machine",
            "Without authentication the address must be localhost, 127.0.0.1 or [::1].",
        )


def _basic(value: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(value, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise _unknown("the Authorization header is malformed", None) from None
    role, colon, password = text.partition(":")
    if not colon or not role or "\0" in text:
        raise _unknown("the Authorization header is malformed", None)
    return role, password


def _unknown(message: str, hint: str | None) -> SqlError:
    return fatal(sqlstates.INVALID_AUTHORIZATION_SPECIFICATION, message, hint=hint)
