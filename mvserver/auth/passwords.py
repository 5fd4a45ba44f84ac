"""Passwords as they are kept: not themselves, but what proves that a client knows them, in PostgreSQL's own text form.

``SCRAM-SHA-256$iterations:salt$stored key:server key`` (RFC 5803), or ``md5`` and 32 digits for clients that know no
better. A text of such a form is a verifier already (psql's ``\\password`` sends one) and is kept as it is.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

from mvserver import limits
from mvserver.auth.saslprep import prepared

SCRAM, MD5 = "scram-sha-256", "md5"

KEY_BYTES = hashlib.sha256().digest_size
SALT_BYTES = 16  # PostgreSQL's

_SCRAM_TEXT = re.compile(
    r"SCRAM-SHA-256\$([1-9][0-9]{0,8}):([A-Za-z0-9+/]+={0,2})\$([A-Za-z0-9+/]+={0,2}):([A-Za-z0-9+/]+={0,2})"
)
_MD5_TEXT = re.compile(r"md5([0-9a-f]{32})")


@dataclass(frozen=True)
class ScramVerifier:
    iterations: int
    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of(cls, password: str, salt: bytes, iterations: int) -> ScramVerifier:
        salted = hashlib.pbkdf2_hmac("sha256", prepared(password), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        return cls(iterations, salt, hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))

    def text(self) -> str:
        salt, stored, server = (base64_text(part) for part in (self.salt, self.stored_key, self.server_key))
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"


@dataclass(frozen=True)
class Md5Verifier:
    digits: str = field(repr=False)  # of password and role name together

    @classmethod
    def of(cls, password: str, role: str) -> Md5Verifier:
        return cls(_md5(password.encode() + role.encode()))

    def text(self) -> str:
        return f"md5{self.digits}"

    def answer(self, salt: bytes) -> bytes:
        """What a client sends that knows the password, for this connection's salt."""
        return f"md5{_md5(self.digits.encode() + salt)}".encode()


Verifier = ScramVerifier | Md5Verifier


def stored(password: str, role: str, encryption: str) -> str:
    """What is kept of a password; ``encryption`` is SCRAM or MD5."""
    if parse(password) is not None:
        return password
    if encryption == MD5:
        return Md5Verifier.of(password, role).text()
    return ScramVerifier.of(password, secrets.token_bytes(SALT_BYTES), limits.SCRAM_ITERATIONS).text()


def parse(text: str) -> Verifier | None:
    """The verifier that a text spells; None where it spells none."""
    match = _MD5_TEXT.fullmatch(text)
    if match is not None:
        return Md5Verifier(match[1])
    match = _SCRAM_TEXT.fullmatch(text)
    if match is None:
        return None
    try:
        salt, stored_key, server_key = (base64.b64decode(part, validate=True) for part in match.groups()[1:])
    except binascii.Error:
        return None
    if len(stored_key) != KEY_BYTES or len(server_key) != KEY_BYTES:
        return None
    return ScramVerifier(int(match[1]), salt, stored_key, server_key)


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()  # as the protocol has it
