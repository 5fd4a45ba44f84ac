"""bool: ``t`` and ``f``, or one byte."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mvserver.types import oids
from mvserver.types.column import BINARY_FORMAT, Column, Encoder, convert, literal, quick
from mvserver.types.parameter import Decoder, bad_binary, bad_text

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


def encoder(form: int, arrow: Any) -> Encoder:
    true, false = (b"\x01", b"\x00") if form == BINARY_FORMAT else (b"t", b"f")
    yes, no = literal(true), literal(false)

    def column(array: Column) -> Column:
        return pc.if_else(array, yes, no)

    plain = quick(column, lambda value: true if value else false)
    return plain if pa.types.is_boolean(arrow) else plain.after(lambda array: convert(array, pa.bool_(), "boolean"))


def from_text(text: str) -> bool:
    word = text.strip().lower()
    # PostgreSQL takes any unambiguous beginning of these words
    if word in ("on", "1") or (word and any(w.startswith(word) for w in _TRUE if w in ("true", "yes"))):
        return True
    if word in ("off", "of", "0") or (word and any(w.startswith(word) for w in _FALSE if w in ("false", "no"))):
        return False
    raise bad_text("boolean", text)


def from_binary(raw: bytes) -> bool:
    if len(raw) != 1:
        raise bad_binary()
    return raw != b"\0"


DECODERS = {oids.BOOL: Decoder(from_text, from_binary)}
