"""Constants of type bytea in PostgreSQL's two forms: ``\\xdeadbeef``, and text with backslashes for octal bytes."""

from __future__ import annotations

import re

from mvserver import sqlstates
from mvserver.errors import SqlError

_ESCAPED = re.compile(rb"\\(?:(\\)|([0-3][0-7][0-7]))|(\\)")


def hexadecimal(text: str) -> str:
    """The same content as ``\\x`` and digits; nothing where it is empty. Raises as ``bytes_of``."""
    content = bytes_of(text).hex()
    return f"\\x{content}" if content else ""


def bytes_of(text: str) -> bytes:
    """The content. 22023 for what is no hexadecimal text, 22P02 for a backslash that escapes nothing."""
    return _of_hexadecimal(text[2:]) if text.startswith("\\x") else _of_escaped(text)


def _of_hexadecimal(text: str) -> bytes:
    digits = re.sub(r"[ \n\t\r]", "", text)
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong is not None:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'invalid hexadecimal digit: "{wrong[0]}"')
    if len(digits) % 2:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, "invalid hexadecimal data: odd number of digits")
    return bytes.fromhex(digits)


def _of_escaped(text: str) -> bytes:
    return _ESCAPED.sub(_unescaped, text.encode())


def _unescaped(found: re.Match[bytes]) -> bytes:
    backslash, octal, wrong = found.groups()
    if wrong is not None:
        raise SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea")
    return b"\\" if backslash is not None else bytes([int(octal, 8)])
