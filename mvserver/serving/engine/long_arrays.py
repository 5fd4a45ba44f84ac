"""Long arrays among a query's parameters, given to DuckDB as texts.

All threads of the server wait while DuckDB reads a list item by item; a text it takes as it is, and reads it while
nobody waits. Only where the query itself casts the parameter to the array's type does it mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from mvserver import limits

_NUMBERS = frozenset({int, float, Decimal, type(None)})
_TEXTS = frozenset({str, type(None)})
_TYPE = r"CAST\(\${number} AS (\w+)(?:\([0-9, ]+\))?\[\]\)"
_PIECE = 5_000  # items at a time, between which others may run


def as_texts(sql: str, parameters: Sequence[Any]) -> list[Any]:
    """The parameters for the query ``sql``."""
    return [
        _text(value, sql, number) or value
        if type(value) is list and len(value) > limits.ARRAY_ITEMS_READ_MAX
        else value
        for number, value in enumerate(parameters, start=1)
    ]


def _text(items: list[Any], sql: str, number: int) -> str | None:
    """None where it has to stay a list."""
    found = re.findall(_TYPE.replace("{number}", str(number)), sql)
    if not found or len(found) != len(re.findall(rf"\${number}\b", sql)):
        return None
    types = _TEXTS if set(found) <= {"TEXT", "VARCHAR"} else _NUMBERS
    pieces = []
    for at in range(0, len(items), _PIECE):
        piece = items[at : at + _PIECE]
        if not set(map(type, piece)) <= types:
            return None
        pieces.append(", ".join(map(_item, piece)))
    return f"[{', '.join(pieces)}]"


def _item(value: Any) -> str:
    if value is None:
        return "NULL"
    if type(value) is str:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)
