"""Rows as records of a changelog: the key and a JSON object, in the spelling that CREATE STREAM reads.

An exact number keeps all of its digits, which is why the text is put together here and not by a library for JSON.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mvserver.record_keys import field_of_key
from mvserver.sql.types import Kind, SqlType

_BYTES = {Kind.SMALLINT: 2, Kind.INTEGER: 4, Kind.BIGINT: 8}
_PLAIN = (*_BYTES, Kind.VARCHAR)


@dataclass(frozen=True)
class RecordEncoder:
    """``excluded`` are key columns that the value does not have. With ``text_keys`` an integer alone is a text, too.

    A key is made here where it is a text or an integer alone. Else it is made as an object of JSON, which the encoder
    of its format takes (``spark_sinks.encode``)."""

    columns: Mapping[str, SqlType]
    key: tuple[str, ...]
    key_format: str
    excluded: tuple[str, ...] = ()
    text_keys: bool = False
    folders: tuple[str, ...] = ()  # columns whose values are in names of folders, and not in the value

    def key_of(self, row: Mapping[str, Any]) -> bytes | None:
        if not self.key:
            return None
        if not self.key_is_plain:
            if self.key_may_lack and all(row[name] is None for name in self.key):
                return None
            return self._object(row, self.key, field_of_key)
        (name,) = self.key
        if row[name] is None:
            return None
        size = self.key_bytes
        return str(row[name]).encode() if size is None else int(row[name]).to_bytes(size, "big", signed=True)

    @property
    def key_is_plain(self) -> bool:
        """Whether it is a text or an integer alone."""
        return self.key_format == "primitive" and self.columns[self.key[0]].kind in _PLAIN

    @property
    def key_may_lack(self) -> bool:
        """Whether NULL in all of its columns is a record without a key: those are read so, and are nowhere else. One
        value alone is not there where it is NULL."""
        return self.key_format == "primitive" or all(name in self.excluded for name in self.key)

    @property
    def key_bytes(self) -> int | None:
        """Of a primitive key that is a number; None where it is a text."""
        return None if self.text_keys else _BYTES.get(self.columns[self.key[0]].kind)

    def value_of(self, row: Mapping[str, Any]) -> bytes:
        return self._object(row, self.in_value)

    @property
    def in_value(self) -> Sequence[str]:
        return [name for name in self.columns if name not in self.excluded and name not in self.folders]

    def folder_of(self, row: Mapping[str, Any]) -> Sequence[str | None]:
        """The values that name its folder, as texts."""
        return [None if row[name] is None else _plain(row[name], self.columns[name]) for name in self.folders]

    def _object(self, row: Mapping[str, Any], names: Sequence[str], field: Callable[[str], str] = str) -> bytes:
        fields = (f"{_text(field(name))}:{_json(row[name], self.columns[name])}" for name in names)
        return ("{" + ",".join(fields) + "}").encode()


def _json(value: Any, kind: SqlType) -> str:
    if value is None:
        return "null"
    if kind.kind is Kind.BOOLEAN:
        return "true" if value else "false"
    if kind.is_integer or kind.kind is Kind.DECIMAL:
        return f"{value:f}" if kind.kind is Kind.DECIMAL else str(value)
    if kind.kind in (Kind.FLOAT, Kind.DOUBLE) and math.isfinite(value):
        return _number(value, single=kind.kind is Kind.FLOAT)
    if kind.kind is Kind.ARRAY and kind.element is not None:
        element = kind.element
        return "[" + ",".join(_json(item, element) for item in value) + "]"
    if kind.kind is Kind.MAP and kind.element is not None and kind.key is not None:
        inner, keys = kind.element, kind.key
        pairs = value.items() if isinstance(value, Mapping) else value
        return "{" + ",".join(f"{_text(_plain(k, keys))}:{_json(v, inner)}" for k, v in pairs) + "}"
    if kind.kind is Kind.STRUCT:
        return "{" + ",".join(f"{_text(name)}:{_json(value[name], inner)}" for name, inner in kind.fields) + "}"
    return _text(_plain(value, kind))


def _plain(value: Any, kind: SqlType) -> str:
    """A value as text, as in JSON but without its quotes."""
    if kind.kind is Kind.TIMESTAMP_LTZ:
        instant = value.astimezone(dt.UTC).replace(tzinfo=None)
        return f"{instant.isoformat(sep=' ', timespec='microseconds')}Z"
    if kind.kind is Kind.TIMESTAMP:
        return str(value.isoformat(sep=" ", timespec="microseconds"))
    if kind.kind in (Kind.DATE, Kind.TIME):
        return str(value.isoformat())
    if kind.kind is Kind.VARBINARY:
        return base64.b64encode(value).decode()
    if kind.kind in (Kind.FLOAT, Kind.DOUBLE) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value) if isinstance(value, str) else _json(value, kind)


def _number(value: float, *, single: bool) -> str:
    if single and value:  # the shortest text that is read back as the same
        texts = (f"{value:.{digits}g}" for digits in range(6, 10))
        return next((t for t in texts if struct.pack("f", float(t)) == struct.pack("f", value)), repr(value))
    return repr(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
