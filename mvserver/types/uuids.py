"""uuid: thirty-two digits in five groups, or sixteen bytes."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.types import oids, strings
from mvserver.types.column import BINARY, BINARY_FORMAT, Column, Encoder, fixed, keep_nulls, per_cell, quick
from mvserver.types.parameter import Decoder, bad_binary, bad_text

_NO_UUID = pa.scalar(b"0" * 32, BINARY)
_TEXT = re.compile(r"\s*(\{)?((?:[0-9a-f]{4}-?){7}[0-9a-f]{4})(?(1)\})\s*", re.ASCII | re.IGNORECASE)


def encoder(form: int, arrow: Any) -> Encoder:
    if strings.is_text(arrow):
        return quick(_binary_of_text, lambda value: UUID(value).bytes) if form == BINARY_FORMAT else strings.PLAIN
    if form == BINARY_FORMAT:
        return per_cell(_sixteen)
    return per_cell(lambda value: str(UUID(bytes=_sixteen(value))).encode())


def _sixteen(value: Any) -> bytes:
    raw = value.bytes if isinstance(value, UUID) else bytes(value)
    if len(raw) != 16:
        raise SqlError(sqlstates.DATA_EXCEPTION, f"a uuid has 16 bytes, not {len(raw)}")
    return raw


def _binary_of_text(array: Column) -> Column:
    digits = pc.fill_null(pc.replace_substring(strings.text_bytes(array), b"-", b""), _NO_UUID)
    raw = bytes.fromhex(b"".join(digits.to_pylist()).decode("ascii"))
    return keep_nulls(fixed(raw, len(array), 16), array)


def from_text(text: str) -> UUID:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise bad_text("uuid", text)
    return UUID(match[2])


def _from_binary(raw: bytes) -> UUID:
    if len(raw) != 16:
        raise bad_binary()
    return UUID(bytes=raw)


DECODERS = {oids.UUID: Decoder(from_text, _from_binary)}
