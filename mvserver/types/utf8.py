"""Text as clients send it: UTF-8 without zero bytes."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError


def _announced(lead: int) -> int:
    """How many bytes a character has that begins with this one."""
    return 2 if 0xC0 <= lead < 0xE0 else 3 if 0xE0 <= lead < 0xF0 else 4 if 0xF0 <= lead < 0xF8 else 1


def decode_utf8(raw: bytes) -> str:
    """Client text; 22021 as PostgreSQL words it."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        broken = raw[error.start : error.start + _announced(raw[error.start])]
        shown = " ".join(f"0x{byte:02x}" for byte in broken)
        raise SqlError(
            sqlstates.CHARACTER_NOT_IN_REPERTOIRE, f'invalid byte sequence for encoding "UTF8": {shown}'
        ) from error
    if "\0" in text:
        raise SqlError(sqlstates.CHARACTER_NOT_IN_REPERTOIRE, 'invalid byte sequence for encoding "UTF8": 0x00')
    return text
