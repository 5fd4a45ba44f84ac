"""The server's side of one SCRAM-SHA-256 exchange (RFC 5802, RFC 7677), without I/O.

A role that does not exist or has no password is given a made-up verifier: the exchange takes the same steps, costs the
same, and fails at the same place.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

from mvserver import sqlstates
from mvserver.auth.passwords import KEY_BYTES, SALT_BYTES, ScramVerifier, base64_text
from mvserver.errors import SqlError, fatal

PLAIN, PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
_BINDING = "tls-server-end-point"
_NONCE_BYTES = 18  # PostgreSQL's


def pretended(role: str, secret: bytes, iterations: int) -> ScramVerifier:
    """The verifier of a role that has none: always the same for a name, so that asking twice does not tell."""
    salt = hmac.digest(secret, role.encode("utf-8", "surrogatepass"), "sha256")[:SALT_BYTES]
    return ScramVerifier(iterations, salt, secrets.token_bytes(KEY_BYTES), secrets.token_bytes(KEY_BYTES))


class ScramExchange:
    """``first`` answers the client's first message, ``final`` its last. ``binding`` is what ties the exchange to the
    TLS connection, None where there is nothing to tie it to."""

    def __init__(self, verifier: ScramVerifier, *, binding: bytes | None = None, nonce: str | None = None) -> None:
        self._verifier = verifier
        self._binding = binding
        self._own_nonce = nonce or base64_text(secrets.token_bytes(_NONCE_BYTES))
        self._nonce = ""
        self._expected_binding = b""
        self._signed = ""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        return (PLAIN,) if self._binding is None else (PLUS, PLAIN)

    def first(self, mechanism: str, message: bytes) -> bytes:
        if mechanism not in self.mechanisms:
            raise fatal(sqlstates.PROTOCOL_VIOLATION, "client selected an invalid SASL authentication mechanism")
        text = _text(message)
        header, bare = self._header(text, mechanism)
        if bare.startswith("m="):
            raise fatal(sqlstates.FEATURE_NOT_SUPPORTED, "client requires an unsupported SCRAM extension")
        parts = bare.split(",")
        if len(parts) < 2:
            raise _malformed("The message has no nonce.")
        _attribute(parts[0], "n")  # the role is the start-up packet's
        client_nonce = _attribute(parts[1], "r")
        if not client_nonce or not all("!" <= character <= "~" for character in client_nonce):
            raise _malformed("The nonce has characters that cannot be printed.")
        self._nonce = client_nonce + self._own_nonce
        bound = self._binding if mechanism == PLUS and self._binding is not None else b""
        self._expected_binding = header.encode() + bound
        verifier = self._verifier
        challenge = f"r={self._nonce},s={base64_text(verifier.salt)},i={verifier.iterations}"
        self._signed = f"{bare},{challenge}"
        return challenge.encode()

    def final(self, message: bytes) -> bytes | None:
        """The proof that the server knows the password too; None where the client's does not hold."""
        text = _text(message)
        signed, comma, last = text.rpartition(",")
        proof = _decoded(_attribute(last, "p"))
        parts = signed.split(",")
        if not comma or len(parts) < 2 or len(proof) != KEY_BYTES:
            raise _malformed("The message has no proof.")
        binding = _decoded(_attribute(parts[0], "c"))
        if not hmac.compare_digest(binding, self._expected_binding):
            raise fatal(sqlstates.INVALID_AUTHORIZATION_SPECIFICATION, "SCRAM channel binding check failed")
        if not hmac.compare_digest(_attribute(parts[1], "r").encode(), self._nonce.encode()):
            raise _malformed("The nonce is not the one that was sent.")
        authenticated = f"{self._signed},{signed}".encode()
        verifier = self._verifier
        signature = hmac.digest(verifier.stored_key, authenticated, "sha256")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        good = hmac.compare_digest(hashlib.sha256(client_key).digest(), verifier.stored_key)
        answer = f"v={base64_text(hmac.digest(verifier.server_key, authenticated, 'sha256'))}".encode()
        return answer if good else None

    def _header(self, text: str, mechanism: str) -> tuple[str, str]:
        """The channel-binding header, with its comma, and the message without it."""
        parts = text.split(",", 2)
        if len(parts) < 3:
            raise _malformed("The message has no header.")
        flag, identity, bare = parts
        if identity:
            raise fatal(sqlstates.FEATURE_NOT_SUPPORTED, "client uses authorization identity, but it is not supported")
        if flag.startswith("p="):
            if mechanism != PLUS:
                raise _malformed("The client binds to the channel, but chose a mechanism that does not.")
            if flag != f"p={_BINDING}":
                raise fatal(sqlstates.PROTOCOL_VIOLATION, "unsupported SCRAM channel-binding type")
        elif flag not in ("n", "y"):
            raise _malformed("The channel-binding flag is not known.")
        elif mechanism == PLUS:
            raise _malformed("The mechanism binds to the channel, but the client does not.")
        elif flag == "y" and self._binding is not None:
            # it was offered, so somebody in between has taken the offer away
            raise fatal(
                sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
                "SCRAM channel binding negotiation error",
                detail="The client supports SCRAM channel binding but thinks the server does not.  "
                "However, this server does support channel binding.",
            )
        return f"{flag},,", bare


def _text(message: bytes) -> str:
    if b"\0" in message:
        raise _malformed("The message has a zero byte.")
    try:
        return message.decode("utf-8")
    except UnicodeDecodeError:
        raise _malformed("The message is not UTF-8.") from None


def _attribute(part: str, name: str) -> str:
    if not part.startswith(f"{name}="):
        raise _malformed(f'Attribute "{name}" was expected.')
    return part[2:]


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _malformed("A value is not in base64.") from None


def _malformed(detail: str) -> SqlError:
    return fatal(sqlstates.PROTOCOL_VIOLATION, "malformed SCRAM message", detail=detail)
