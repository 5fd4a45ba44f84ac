"""Character types: their text and binary forms are the characters themselves."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mvserver.types import oids
from mvserver.types.column import BINARY, Column, Encoder, quick
from mvserver.types.parameter import Decoder
from mvserver.types.utf8 import decode_utf8

OIDS = frozenset({
    oids.TEXT, oids.VARCHAR, oids.BPCHAR, oids.NAME, oids.CHAR, oids.UNKNOWN, oids.XML, oids.PG_NODE_TREE,
    oids.ACLITEM, oids.VOID,
})  # fmt: skip


def is_text(arrow: Any) -> bool:
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow))


def is_bytes(arrow: Any) -> bool:
    return bool(
        pa.types.is_binary(arrow)
        or pa.types.is_large_binary(arrow)
        or pa.types.is_binary_view(arrow)
        or pa.types.is_fixed_size_binary(arrow)
    )


def text_bytes(array: Column) -> Column:
    """A text column as bytes; free where it is an ordinary string column."""
    return array.cast(BINARY) if pa.types.is_string(array.type) else array.cast(pa.string()).cast(BINARY)


def cell(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


PLAIN = quick(text_bytes, cell)


def encoder(oid: int, typmod: int) -> Encoder:
    """For text columns; char(n) is padded to its length, as PostgreSQL stores it."""
    if oid == oids.BPCHAR and typmod > 4:
        width = typmod - 4
        return PLAIN.after(lambda array: pc.utf8_rpad(array.cast(pa.string()), width=width, padding=" "))
    return PLAIN


def _from_text(text: str) -> str:
    return text


DECODERS = {oid: Decoder(_from_text, decode_utf8) for oid in OIDS}
