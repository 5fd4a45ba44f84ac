"""Bytes that wait to be sent."""

from __future__ import annotations

from mvserver import limits


class Outbox:
    def __init__(self) -> None:
        self._parts: list[bytes | memoryview] = []
        self._size = 0

    def add(self, data: bytes | memoryview) -> None:
        self._parts.append(data)
        self._size += len(data)

    @property
    def full(self) -> bool:
        """Enough for one piece: hand it on before more is made."""
        return self._size >= limits.RESULT_CHUNK_BYTES

    def take(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return data
