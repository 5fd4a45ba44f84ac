"""pg_lsn, a place in a write-ahead log: two hexadecimal numbers, or eight bytes."""

from __future__ import annotations

import struct
from typing import Any

from mvserver.types import strings
from mvserver.types.column import BINARY_FORMAT, Encoder, per_cell

_HALVES = struct.Struct("!II")


def encoder(form: int) -> Encoder:
    """For columns of texts."""
    return per_cell(_binary) if form == BINARY_FORMAT else strings.PLAIN


def _binary(value: Any) -> bytes:
    high, _, low = str(value).partition("/")
    return _HALVES.pack(int(high, 16), int(low, 16))
