"""Tickets: what may stand in the address of a stream, since a browser's EventSource cannot send a header.

A ticket names a role, its claims and views, is signed, and lasts a minute at most, or as long as the role. Those that
are asked for in the same half minute for the same are the same text, so that a cache sees one address for many readers.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mvserver import limits, moments, sqlstates
from mvserver.errors import SqlError, fatal

_KEY_BYTES = 32
_SIGNATURE_BYTES = 32


@dataclass(frozen=True)
class Ticket:
    role: str
    views: tuple[str, ...]
    ends: int  # a moment of ``mvserver.moments``
    role_id: str | None
    claims: tuple[tuple[str, str], ...] = ()  # as settings


class Tickets:
    """Signed with a key of this server's life: after a restart they are refused."""

    def __init__(self, clock: Callable[[], float] = moments.now) -> None:
        self._clock = clock
        self._key = secrets.token_bytes(_KEY_BYTES)

    def issue(
        self, role: str, views: Sequence[str], claims: Sequence[tuple[str, str]] = (), role_id: str | None = None
    ) -> tuple[str, int]:
        """The text, and for how many seconds it lasts. 54000 for one that would not go into an address."""
        now = int(self._clock())
        half = limits.HTTP_TICKET_S // 2
        ends = (now // half) * half + limits.HTTP_TICKET_S
        content = json.dumps(
            [role, sorted(set(views)), ends, role_id, sorted(claims)], ensure_ascii=False, separators=(",", ":")
        ).encode()
        text = _text(self._signature(content) + content)
        if len(text) > limits.HTTP_TICKET_LENGTH_MAX:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                "the ticket would be too long for an address",
                detail=f"It has {len(text)} characters; the limit is {limits.HTTP_TICKET_LENGTH_MAX}.",
                hint="Name fewer views, or give it fewer or shorter claims.",
            )
        return text, ends - now

    def read(self, text: str) -> Ticket:
        """28000 for one that is not ours, or whose time is over."""
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise _refused() from None
        signature, content = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if len(text) > limits.HTTP_TICKET_LENGTH_MAX or not hmac.compare_digest(signature, self._signature(content)):
            raise _refused()
        role, views, ends, role_id, claims = json.loads(content)
        if ends <= self._clock():
            raise _refused()
        return Ticket(role, tuple(views), ends, role_id, tuple((name, value) for name, value in claims))

    def _signature(self, content: bytes) -> bytes:
        return hmac.digest(self._key, content, hashlib.sha256)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def _refused() -> SqlError:
    return fatal(
        sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
        "the ticket is not valid",
        hint="Ask for another with POST /v1/tickets; one lasts a minute.",
    )
