"""API tokens: random texts that act as a role. Only a digest of one is kept.

A token has 256 random bits, so its digest needs neither salt nor many rounds, and guessing needs no count of failures.
"""

from __future__ import annotations

import hashlib
import secrets

PREFIX = "mvt_"  # by which scanners of secrets know one
_BYTES = 32
_LENGTH_MAX = 200


def new() -> str:
    return PREFIX + secrets.token_urlsafe(_BYTES)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def may_be_one(token: str) -> bool:
    return token.startswith(PREFIX) and len(token) <= _LENGTH_MAX
