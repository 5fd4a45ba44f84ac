"""Framing: where one protocol message ends and the next begins, and how its fields are read.

Nothing here knows what a message means. A frame's length is judged before its bytes are awaited, and the buffer grows
as bytes arrive, so that an announced length costs nothing by itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from mvserver import limits, sqlstates
from mvserver.errors import SqlError, fatal
from mvserver.types.utf8 import decode_utf8

_INT16 = struct.Struct("!h")
_UINT16 = struct.Struct("!H")
_INT32 = struct.Struct("!i")
_UINT32 = struct.Struct("!I")

HEAD_BYTES = 5  # the type byte and the length
STARTUP = 0  # the type of a frame that has no type byte

# message types whose bodies are short whatever a client does (PostgreSQL bounds the same ones)
_SHORT = frozenset(b"CDEHSXcp")


class Frame(NamedTuple):
    kind: int  # the type byte, STARTUP for start-up packets
    body: bytes


def violation(message: str) -> SqlError:
    """A malformed message inside a sound frame: the connection can go on."""
    return SqlError(sqlstates.PROTOCOL_VIOLATION, message)


class FrameReader:
    """Cuts the byte stream into frames. Start-up packets come until ``startup`` is set to False."""

    def __init__(self, message_limit: int = limits.MESSAGE_BEFORE_READY_BYTES_MAX) -> None:
        self.startup = True
        self.message_limit = message_limit
        self._buffer = bytearray()
        self._at = 0

    def feed(self, data: bytes) -> None:
        if self._at == len(self._buffer):
            self._buffer.clear()
            self._at = 0
        elif self._at > limits.MESSAGE_BEFORE_READY_BYTES_MAX:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    @property
    def buffered(self) -> int:
        return len(self._buffer) - self._at

    @property
    def ready(self) -> bool:
        """Whether ``next`` has something to say: a whole frame, or that its length cannot be."""
        header = 0 if self.startup else 1
        if self.buffered < header + 4:
            return False
        length = self._length(header)
        return not self._least <= length <= self._most() or self.buffered >= header + length

    def waiting(self) -> Iterator[Frame]:
        """The whole frames after start-up that ``next`` will give, up to one whose length cannot be."""
        at = self._at
        while len(self._buffer) - at >= HEAD_BYTES:
            length = int(_UINT32.unpack_from(self._buffer, at + 1)[0])
            end = at + 1 + length
            if length < self._least or end > len(self._buffer):
                return
            yield Frame(self._buffer[at], bytes(self._buffer[at + HEAD_BYTES : end]))
            at = end

    def drop(self) -> None:
        """All that is buffered has been read."""
        self._at = len(self._buffer)

    def next(self) -> Frame | None:
        """The next whole frame, None where more bytes are needed; 08P01 FATAL for a length that cannot be."""
        header = 0 if self.startup else 1
        if self.buffered < header + 4:
            return None
        length, most = self._length(header), self._most()
        if not self._least <= length <= most:
            raise fatal(
                sqlstates.PROTOCOL_VIOLATION,
                "invalid length of startup packet" if self.startup else "invalid message length",
                detail=f"A message of {length} bytes was announced; {self._least} to {most} are allowed here.",
            )
        if self.buffered < header + length:
            return None
        kind = STARTUP if self.startup else self._buffer[self._at]
        body = bytes(memoryview(self._buffer)[self._at + header + 4 : self._at + header + length])
        self._at += header + length
        return Frame(kind, body)

    def _length(self, header: int) -> int:
        return int(_UINT32.unpack_from(self._buffer, self._at + header)[0])

    @property
    def _least(self) -> int:
        return 8 if self.startup else 4

    def _most(self) -> int:
        if self.startup:
            return limits.STARTUP_PACKET_BYTES_MAX
        if self._buffer[self._at] in _SHORT:
            return min(self.message_limit, limits.SHORT_MESSAGE_BYTES_MAX)
        return self.message_limit


class BodyReader:
    """Reads the fields of one frame's body; none may run past its end, and nothing may be left over."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def _fixed(self, form: struct.Struct) -> int:
        end = self._at + form.size
        if end > len(self._body):
            raise violation("insufficient data left in message")
        (value,) = form.unpack_from(self._body, self._at)
        self._at = end
        return int(value)

    def byte(self) -> int:
        if self._at >= len(self._body):
            raise violation("no data left in message")
        self._at += 1
        return self._body[self._at - 1]

    def int16(self) -> int:
        return self._fixed(_INT16)

    def uint16(self) -> int:
        return self._fixed(_UINT16)

    def int32(self) -> int:
        return self._fixed(_INT32)

    def uint32(self) -> int:
        return self._fixed(_UINT32)

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._body):
            raise violation("insufficient data left in message")
        value = self._body[self._at : end]
        self._at = end
        return value

    def rest(self) -> bytes:
        value = self._body[self._at :]
        self._at = len(self._body)
        return value

    def value(self) -> bytes | None:
        """A length and as many bytes; -1 is NULL."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def text(self) -> str:
        """A zero-terminated string, UTF-8."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise violation("invalid string in message")
        raw = self._body[self._at : end]
        self._at = end + 1
        return decode_utf8(raw)

    def end(self) -> None:
        if self._at != len(self._body):
            raise violation("invalid message format")
