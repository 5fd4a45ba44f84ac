"""Cancel requests: they come on a connection of their own and name another one by a number and a secret."""

from __future__ import annotations

import hmac
import itertools
import os
import secrets
from typing import Generic, TypeVar

_KEY_BYTES = 4  # what protocol 3.0 has room for
_PROCESS_MAX = 2**31 - 1

Target = TypeVar("Target")


class CancelKeys(Generic[Target]):
    def __init__(self) -> None:
        self._numbers = itertools.count(os.getpid() % 100_000 + 1)
        self._targets: dict[int, tuple[bytes, Target]] = {}

    def issue(self, target: Target) -> tuple[int, bytes]:
        """A number no other connection has, and a secret."""
        process = next(self._numbers) % _PROCESS_MAX + 1
        while process in self._targets:
            process = next(self._numbers) % _PROCESS_MAX + 1
        key = secrets.token_bytes(_KEY_BYTES)
        self._targets[process] = (key, target)
        return process, key

    def forget(self, process: int) -> None:
        self._targets.pop(process, None)

    def find(self, process: int, key: bytes) -> Target | None:
        entry = self._targets.get(process)
        if entry is None or not hmac.compare_digest(entry[0], key):
            return None
        return entry[1]
