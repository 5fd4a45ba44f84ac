"""A client's side of SCRAM-SHA-256, written from the RFCs alone, so that the server is not tested by itself."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct

from tests.wire.client import message


def sasl_initial(mechanism: str, response: bytes) -> bytes:
    return message(b"p", mechanism.encode() + b"\0" + struct.pack("!i", len(response)) + response)


def sasl_response(response: bytes) -> bytes:
    return message(b"p", response)


class ScramClient:
    def __init__(self, password: str, nonce: str = "fyko+d2lbbFgONRv9qkxdawL", *, user: str = "") -> None:
        self._password = password.encode()
        self.bare = f"n={user},r={nonce}"

    def first(self, header: str = "n,,") -> bytes:
        self._header = header
        return (header + self.bare).encode()

    def final(self, challenge: bytes, *, binding: bytes = b"") -> bytes:
        values = dict(part.split("=", 1) for part in challenge.decode().split(","))
        salted = hashlib.pbkdf2_hmac("sha256", self._password, base64.b64decode(values["s"]), int(values["i"]))
        client_key = hmac.new(salted, b"Client Key", hashlib.sha256).digest()
        bound = base64.b64encode(self._header.encode() + binding).decode()
        without_proof = f"c={bound},r={values['r']}"
        authenticated = f"{self.bare},{challenge.decode()},{without_proof}".encode()
        signature = hmac.new(hashlib.sha256(client_key).digest(), authenticated, hashlib.sha256).digest()
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.new(salted, b"Server Key", hashlib.sha256).digest()
        self.expected = b"v=" + base64.b64encode(hmac.new(server_key, authenticated, hashlib.sha256).digest())
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
