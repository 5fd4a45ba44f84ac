"""What goes through the pipe between a worker and the process of a function: a kind, a length and so many bytes."""

from __future__ import annotations

import os
import struct

ARROW, MEMORY, BROKEN = 1, 2, 3  # rows or a document; the rows did not fit into the memory; words of another failure
SIZE = 8  # bytes of the number of the row that is under way
_HEAD = struct.Struct("=BQ")
_PIECE = 1 << 20


def write_frame(handle: int, kind: int, content: bytes) -> None:
    for part in (_HEAD.pack(kind, len(content)), content):
        view = memoryview(part)
        while view:
            view = view[os.write(handle, view[:_PIECE]) :]


def read_frame(handle: int) -> tuple[int, bytes] | None:
    """None at the end of the pipe."""
    head = _exactly(handle, _HEAD.size)
    if head is None:
        return None
    kind, length = _HEAD.unpack(head)
    content = _exactly(handle, length)
    return None if content is None else (kind, content)


def head_of(content: bytes) -> tuple[int, int] | None:
    """Kind and length, of what has come so far."""
    return _HEAD.unpack_from(content) if len(content) >= _HEAD.size else None


HEAD_BYTES = _HEAD.size


def _exactly(handle: int, length: int) -> bytes | None:
    parts: list[bytes] = []
    while length:
        part = os.read(handle, min(length, _PIECE))
        if not part:
            return None
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
