"""The arguments of an aggregate: for each group the lists of its values, in the order in which they were collected.

One argument comes as an array of its values. Several come as an array of texts, each with all that a record gave, so
that values of one record have the same place in all lists.
"""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from mvserver.python_functions.answers import AnswerError
from mvserver.python_functions.arguments import values_of

_FLOAT = struct.Struct("f")
_READERS: Mapping[str, Callable[[str], Any]] = {
    "BOOLEAN": lambda text: text == "true",
    "TINYINT": int, "SMALLINT": int, "INTEGER": int, "BIGINT": int,
    "FLOAT": lambda text: _FLOAT.unpack(_FLOAT.pack(float(text)))[0],
    "DOUBLE": float, "DECIMAL": Decimal, "VARCHAR": str,
    "VARBINARY": lambda text: bytes.fromhex(text.removeprefix("\\x")),
    "DATE": dt.date.fromisoformat, "TIME": dt.time.fromisoformat, "TIMESTAMP": dt.datetime.fromisoformat,
    "TIMESTAMP_LTZ": lambda text: dt.datetime.fromisoformat(text).astimezone(dt.UTC),
}  # fmt: skip


def groups(table: pa.Table, kinds: Sequence[str], *, strict: bool) -> list[tuple[Any, ...]]:
    """A group without values has empty lists, and None for an aggregate that is then NULL."""
    (column,) = table.columns
    nothing: tuple[Any, ...] = tuple(None if strict else [] for _ in kinds)
    if len(kinds) == 1:
        (kind,) = kinds
        return [nothing if each is None else (each,) for each in values_of(column, f"ARRAY<{kind}>")]
    readers = [_READERS[kind] for kind in kinds]
    return [nothing if each is None else _lists(each, readers) for each in column.to_pylist()]


def _lists(packed: Sequence[str], readers: Sequence[Callable[[str], Any]]) -> tuple[list[Any], ...]:
    records = list(map(json.loads, packed))
    return tuple(
        [None if record[i] is None else read(record[i]) for record in records] for i, read in enumerate(readers)
    )


def bounded(function: Callable[..., Any], most: int) -> Callable[..., Any]:
    """The function, not called for a group that has more values."""

    def called(*lists: Sequence[Any]) -> Any:
        if len(lists[0]) > most:
            raise AnswerError("54000", f"a group has more than {most} values")
        return function(*lists)

    return called
