"""Decoding what stands inside PostgreSQL's escaped literals: E'...' and U&'...'.

Apart from the lexer because these rules (octal, hexadecimal, surrogates, invalid bytes) are about values, not about
where a token ends.
"""

from __future__ import annotations

import re

from mvserver import sqlstates
from mvserver.errors import SqlError

_SIMPLE = {"b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t"}
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))|''|[^\\']+", re.S)
_UNICODE = re.compile(r"\\(?:\+([0-9A-Fa-f]{6})|([0-9A-Fa-f]{4})|(\\))|[^\\]+")


def decode_escapes(body: str, position: int) -> str:
    """The value of ``E'body'``; ``position`` is where the literal starts, for errors."""
    parts: list[bytes] = []
    at = 0
    pending_high = 0
    while at < len(body):
        match = _ESCAPE.match(body, at)
        if match is None:
            raise SqlError(sqlstates.SYNTAX_ERROR, "invalid escape sequence in string literal", position=position)
        at = match.end()
        octal, hexadecimal, short, long, other = match.groups()
        code = int(short or long, 16) if short or long else None
        if pending_high and (code is None or not 0xDC00 <= code <= 0xDFFF):
            raise _surrogate(position)
        if code is not None:
            if 0xD800 <= code <= 0xDBFF:
                pending_high = code
                continue
            parts.append(_character(code, pending_high, position).encode())
            pending_high = 0
        elif octal is not None:
            parts.append(bytes([int(octal, 8) & 0xFF]))
        elif hexadecimal is not None:
            parts.append(bytes([int(hexadecimal, 16)]))
        elif other is not None:
            if other in "uU":
                raise SqlError(
                    "22025",
                    "invalid Unicode escape",
                    hint="Unicode escapes must be \\uXXXX or \\UXXXXXXXX.",
                    position=position,
                )
            parts.append(_SIMPLE.get(other) or other.encode())
        else:
            run = match.group()
            parts.append(b"'" if run == "''" else run.encode())
    if pending_high:
        raise _surrogate(position)
    value = b"".join(parts)
    if b"\0" in value:
        raise _invalid_bytes(b"\0", position)
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise _invalid_bytes(value[error.start : error.start + 1], position) from error


def decode_unicode(body: str, position: int) -> str:
    """The value of ``U&'body'`` or ``U&"body"`` with the backslash as escape character (quotes already undoubled)."""
    parts: list[str] = []
    at = 0
    pending_high = 0
    while at < len(body):
        match = _UNICODE.match(body, at)
        if match is None:
            raise SqlError(
                sqlstates.SYNTAX_ERROR,
                "invalid Unicode escape",
                hint="Unicode escapes must be \\XXXX or \\+XXXXXX.",
                position=position,
            )
        at = match.end()
        digits = match.group(1) or match.group(2)
        code = int(digits, 16) if digits else None
        if pending_high and (code is None or not 0xDC00 <= code <= 0xDFFF):
            raise _surrogate(position)
        if code is None:
            parts.append("\\" if match.group(3) else match.group())
        elif 0xD800 <= code <= 0xDBFF:
            pending_high = code
        else:
            parts.append(_character(code, pending_high, position))
            pending_high = 0
    if pending_high:
        raise _surrogate(position)
    return "".join(parts)


def _character(code: int, high: int, position: int) -> str:
    if high:
        return chr(0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00))
    if 0xDC00 <= code <= 0xDFFF:
        raise _surrogate(position)
    if code > 0x10FFFF or code == 0:
        raise SqlError(sqlstates.SYNTAX_ERROR, "invalid Unicode escape value", position=position)
    return chr(code)


def _surrogate(position: int) -> SqlError:
    return SqlError(sqlstates.SYNTAX_ERROR, "invalid Unicode surrogate pair", position=position)


def _invalid_bytes(value: bytes, position: int) -> SqlError:
    return SqlError(
        sqlstates.CHARACTER_NOT_IN_REPERTOIRE,
        f'invalid byte sequence for encoding "UTF8": 0x{value.hex()}',
        position=position,
    )
