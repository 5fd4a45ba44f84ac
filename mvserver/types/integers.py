"""int2, int4, int8 and the four-byte unsigned ids (oid, xid, reg*)."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from mvserver.types import oids
from mvserver.types.column import BINARY_FORMAT, Column, Encoder, as_text, big_endian, convert, quick
from mvserver.types.parameter import Decoder, bad_binary, bad_text, out_of_range


class _Width(NamedTuple):
    arrow: Any
    code: str  # of the array module
    packed: struct.Struct
    low: int
    high: int


_INT2 = _Width(pa.int16(), "h", struct.Struct("!h"), -(2**15), 2**15 - 1)
_INT4 = _Width(pa.int32(), "i", struct.Struct("!i"), -(2**31), 2**31 - 1)
_INT8 = _Width(pa.int64(), "q", struct.Struct("!q"), -(2**63), 2**63 - 1)
_OID = _Width(pa.uint32(), "I", struct.Struct("!I"), 0, 2**32 - 1)

WIDTHS = {
    oids.INT2: _INT2, oids.INT4: _INT4, oids.INT8: _INT8, oids.OID: _OID, oids.XID: _OID, oids.CID: _OID,
    oids.REGPROC: _OID, oids.REGPROCEDURE: _OID, oids.REGOPER: _OID, oids.REGOPERATOR: _OID, oids.REGCLASS: _OID,
    oids.REGTYPE: _OID, oids.REGNAMESPACE: _OID, oids.REGROLE: _OID,
}  # fmt: skip

_DIGITS_MAX = 20
_TEXT = re.compile(r"\s*([+-]?[0-9]+)\s*", re.ASCII)
_TEXTS = re.compile(r"-?[0-9]{1,18}(?:,-?[0-9]{1,18})*", re.ASCII)


def encoder(oid: int, form: int, arrow: Any) -> Encoder:
    width, name = WIDTHS[oid], oids.type_name(oid)
    if form == BINARY_FORMAT:
        pack = width.packed.pack

        def column(array: Column) -> Column:
            return big_endian(array, width.code)

        plain = quick(column, pack)
    else:
        plain = quick(as_text, lambda value: b"%d" % value)
    if arrow.equals(width.arrow):
        return plain
    return plain.after(lambda array: convert(array, width.arrow, name))


def _from_text(name: str, width: _Width) -> Callable[[str], int]:
    def decode(text: str) -> int:
        match = _TEXT.fullmatch(text)
        if match is None:
            raise bad_text(name, text)
        digits = match[1].lstrip("+-").lstrip("0") or "0"
        if len(digits) > _DIGITS_MAX:  # converting a very long one would cost its square
            raise out_of_range(name, text)
        value = -int(digits) if match[1].startswith("-") else int(digits)
        if not width.low <= value <= width.high:
            raise out_of_range(name, text)
        return value

    return decode


def _from_texts(width: _Width) -> Callable[[str], Sequence[int] | None]:
    def decode(texts: str) -> Sequence[int] | None:
        if _TEXTS.fullmatch(texts) is None:
            return None
        values = list(map(int, texts.split(",")))
        return values if width.low <= min(values) and max(values) <= width.high else None

    return decode


def _from_binary(width: _Width) -> Callable[[bytes], int]:
    def decode(raw: bytes) -> int:
        if len(raw) != width.packed.size:
            raise bad_binary()
        return int(width.packed.unpack(raw)[0])

    return decode


DECODERS = {
    oid: Decoder(_from_text(oids.type_name(oid), WIDTHS[oid]), _from_binary(WIDTHS[oid]), _from_texts(WIDTHS[oid]))
    for oid in (oids.INT2, oids.INT4, oids.INT8, oids.OID, oids.XID, oids.CID)
}
