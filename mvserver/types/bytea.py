"""bytea: ``\\x`` and hexadecimal digits, or the bytes themselves."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.types import oids
from mvserver.types.column import (
    BINARY,
    BINARY_FORMAT,
    Column,
    Encoder,
    join,
    keep_nulls,
    literal,
    offsets,
    quick,
)
from mvserver.types.parameter import Decoder, bad_text

_PREFIX = literal(b"\\x")
_ESCAPE = re.compile(rb"\\(?:(\\)|([0-3][0-7][0-7])|)")


def hexadecimal(array: Column) -> Column:
    """The whole column's bytes as digits in one step; the offsets double."""
    starts = offsets(array)
    data = array.buffers()[2]
    digits = b"" if data is None else memoryview(data)[starts[0] : starts[-1]].hex().encode("ascii")
    first, two = pa.scalar(starts[0], pa.int32()), pa.scalar(2, pa.int32())
    moved = pc.multiply(pc.subtract(pa.array(starts, pa.int32()), first), two)
    cells = pa.Array.from_buffers(BINARY, len(array), [None, moved.buffers()[1], pa.py_buffer(digits)])
    return keep_nulls(cells, array)


def encoder(form: int, arrow: Any) -> Encoder:
    if form == BINARY_FORMAT:
        return quick(lambda array: array, bytes).after(_as_binary)
    return quick(lambda array: join(_PREFIX, hexadecimal(array)), lambda value: b"\\x" + value.hex().encode()).after(
        _as_binary
    )


def _as_binary(array: Column) -> Column:
    return array if array.type.equals(BINARY) else array.cast(BINARY)


def from_text(text: str) -> bytes:
    """Both of PostgreSQL's forms: hex and escape."""
    if text.startswith("\\x"):
        digits = re.sub(r"\s", "", text[2:])
        try:
            return bytes.fromhex(digits)
        except ValueError as error:
            raise _bad_hex(digits) from error
    raw = text.encode()

    def unescape(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return b"\\"
        if match[2]:
            return bytes([int(match[2], 8)])
        raise bad_text("bytea", text)

    return _ESCAPE.sub(unescape, raw)


def _bad_hex(digits: str) -> SqlError:
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    message = f'invalid hexadecimal digit: "{wrong[0]}"' if wrong else "invalid hexadecimal data: odd number of digits"
    return SqlError(sqlstates.INVALID_PARAMETER_VALUE, message)


def _from_binary(raw: bytes) -> bytes:
    return raw


DECODERS = {oids.BYTEA: Decoder(from_text, _from_binary)}
