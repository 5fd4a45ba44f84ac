"""Values as ``to_json`` is to be given them, so that a reader of the record finds what they are.

Spark writes the keys of maps as it keeps them: a date as its number of days, bytes as the address of an object. They
are made the texts here that decoders of records read. A record holds years from 1 to 9999, as all formats have them:
what is beyond would be read as another day, or not at all, and is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mvserver import sqlstates
from mvserver.compiler.capabilities.spark_text import guard
from mvserver.sql.types import Kind, SqlType
from spark_sinks.decode.columns import quoted, text

OF_RECORDS = "a record holds years from 1 to 9999"
MOMENT_FORMAT = "yyyy-MM-dd HH:mm:ss.SSSSSS"
INSTANT_FORMAT = f"{MOMENT_FORMAT}XXX"

_BOUNDS: Mapping[Kind, tuple[str, str, str]] = {
    Kind.DATE: ("date", "DATE '0001-01-01'", "DATE '9999-12-31'"),
    Kind.TIMESTAMP: (
        "timestamp", "TIMESTAMP_NTZ '0001-01-01 00:00:00'", "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'",
    ),
    Kind.TIMESTAMP_LTZ: (
        "timestamp", "TIMESTAMP_LTZ '0001-01-01 00:00:00Z'", "TIMESTAMP_LTZ '9999-12-31 23:59:59.999999Z'",
    ),
}  # fmt: skip
"""The name of a type, and the first and last of its values that a record holds."""

_KEYS: Mapping[str | None, Callable[[str], str]] = {
    "DATE": lambda key: f"cast({key} as string)",
    "TIME(6)": lambda key: f"cast({key} as string)",
    "TIMESTAMP_NTZ": lambda key: f"date_format({key}, {text(MOMENT_FORMAT)})",
    "TIMESTAMP_LTZ": lambda key: f"date_format({key}, {text(INSTANT_FORMAT)})",
    "BINARY": lambda key: f"base64({key})",
}
"""By those of Spark's types whose keys it writes in a form of its own."""


def json_value(kind: SqlType, value: str) -> str:
    """An expression of Spark's for what stands for ``value``, an expression too."""
    if kind.kind is Kind.TIME:
        return f"cast({value} as string)"
    return _nested(kind, value, 0) or value


def _nested(kind: SqlType, value: str, depth: int) -> str | None:
    """None where the value is right as it is."""
    if kind.kind in _BOUNDS:
        return _within(kind.kind, value)
    if kind.kind is Kind.ARRAY and kind.element is not None:
        item = f"w{depth}"
        inner = _nested(kind.element, item, depth + 1)
        return None if inner is None else f"transform({value}, {item} -> {inner})"
    if kind.kind is Kind.MAP and kind.key is not None and kind.element is not None:
        return _map(kind.key, kind.element, value, depth)
    if kind.kind is Kind.STRUCT:
        parts = [(name, part, f"{value}.{quoted(name)}") for name, part in kind.fields]
        made = [(name, ref, _nested(part, ref, depth)) for name, part, ref in parts]
        if all(inner is None for _, _, inner in made):
            return None
        fields = ", ".join(f"{text(name)}, {inner or ref}" for name, ref, inner in made)
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({fields}) END"
    return None


def _within(kind: Kind, value: str) -> str:
    name, first, last = _BOUNDS[kind]
    beyond = f"NOT {value} BETWEEN {first} AND {last}"
    return guard(beyond, sqlstates.DATETIME_FIELD_OVERFLOW, f"{name} out of range: {OF_RECORDS}", value)


def _map(key: SqlType, element: SqlType, value: str, depth: int) -> str | None:
    name, item = f"k{depth}", f"w{depth}"
    made_key, inner = _KEYS.get(key.kind.row.spark), _nested(element, item, depth + 1)
    if inner is not None:
        value = f"transform_values({value}, ({name}, {item}) -> {inner})"
    if made_key is not None:
        within = _within(key.kind, name) if key.kind in _BOUNDS else name
        return f"transform_keys({value}, ({name}, {item}) -> {made_key(within)})"
    return None if inner is None else value
