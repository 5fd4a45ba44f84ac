"""Errors of a running expression: what Spark says, as the SQLSTATE and words that PostgreSQL has for it.

The caller takes the condition and message from Spark's exception; nothing of Spark is imported here.
"""

from __future__ import annotations

import re

from mvserver import sqlstates
from mvserver.compiler.capabilities.spark_text import FAILURE_MARK
from mvserver.errors import SqlError

_NAMED = re.compile(re.escape(FAILURE_MARK) + r"([0-9A-Z]{5}):(.*?)(?:\s+SQLSTATE: \w{5}|[\r\n]|$)")
_VALUE = re.compile(r"The value '(.*?)' of the type \"STRING\" cannot be cast to \"(\w+)")
_BY_CONDITION = (
    ("DIVIDE_BY_ZERO", sqlstates.DIVISION_BY_ZERO, "division by zero"),
    ("REMAINDER_BY_ZERO", sqlstates.DIVISION_BY_ZERO, "division by zero"),
    ("INTERVAL_DIVIDED_BY_ZERO", sqlstates.DIVISION_BY_ZERO, "division by zero"),
    ("NUMERIC_VALUE_OUT_OF_RANGE", sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow"),
    ("NUMERIC_OUT_OF_SUPPORTED_RANGE", sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow"),
    ("BINARY_ARITHMETIC_OVERFLOW", sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "value out of range"),
    ("ARITHMETIC_OVERFLOW", sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "value out of range"),
    ("CAST_OVERFLOW", sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "value out of range"),
    ("INTERVAL_ARITHMETIC_OVERFLOW", sqlstates.DATETIME_FIELD_OVERFLOW, "interval out of range"),
    ("DATETIME_OVERFLOW", sqlstates.DATETIME_FIELD_OVERFLOW, "date/time value out of range"),
    ("DATETIME_FIELD_OUT_OF_BOUNDS", sqlstates.DATETIME_FIELD_OVERFLOW, "date/time field value out of range"),
    ("CANNOT_PARSE_TIMESTAMP", sqlstates.INVALID_DATETIME_FORMAT, "invalid value for the date pattern"),
    ("CANNOT_PARSE_TIME", sqlstates.INVALID_DATETIME_FORMAT, "invalid value for the date pattern"),
    ("CONVERSION_INVALID_INPUT", sqlstates.INVALID_TEXT_REPRESENTATION, "invalid input"),
    ("INVALID_REGEXP", "2201B", "invalid regular expression"),
    ("DUPLICATED_MAP_KEY", sqlstates.DATA_EXCEPTION, "duplicate key in a map"),
    ("INVALID_FORMAT", "22025", "LIKE pattern must not end with escape character"),
)
_SHOWN_CHARACTERS_MAX = 1_000  # of a value that is no number or date
_SPARK_TYPES = {
    "BOOLEAN": "boolean", "TINYINT": "tinyint", "SMALLINT": "smallint", "INT": "integer", "BIGINT": "bigint",
    "FLOAT": "real", "DOUBLE": "double precision", "DECIMAL": "numeric", "DATE": "date", "TIME": "time",
    "TIMESTAMP": "timestamp with time zone", "TIMESTAMP_NTZ": "timestamp",
}  # fmt: skip
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
_DATE_LIKE = re.compile(r"\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|\s*[0-9]{1,2}:[0-9]{2}")
_TEMPORAL = frozenset({"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ"})


def raised(message: str) -> SqlError | None:
    """The error that a lowered expression raised by itself, in Spark or in DuckDB."""
    named = _NAMED.search(message)
    return None if named is None else SqlError(named.group(1), named.group(2).strip())


def translate(condition: str | None, message: str) -> SqlError | None:
    """The error that a row's value caused, None when it is not the expression's doing."""
    found = raised(message)
    if found is not None:
        return found
    spelled = condition or ""
    if not spelled:
        bracketed = re.search(r"\[([A-Z][A-Z_]+(?:\.[A-Z_]+)?)\]", message)
        spelled = bracketed.group(1) if bracketed else ""
    if spelled.startswith("CAST_INVALID_INPUT"):
        return _invalid_input(message)
    for prefix, sqlstate, text in _BY_CONDITION:
        if spelled.split(".")[0] == prefix:
            return SqlError(sqlstate, text)
    return None


def _invalid_input(message: str) -> SqlError:
    value = _VALUE.search(message)
    if value is None:
        return SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, "invalid input syntax")
    text, name = value.group(1), value.group(2)
    text = text if len(text) <= _SHOWN_CHARACTERS_MAX else f"{text[:_SHOWN_CHARACTERS_MAX]}..."
    type_ = _SPARK_TYPES.get(name, name.lower())
    if name in _INTEGERS and re.fullmatch(r"\s*[+-]?[0-9]+\s*", text):
        return SqlError(
            sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, f'value "{text.strip()}" is out of range for type {type_}'
        )
    if name in _TEMPORAL and _DATE_LIKE.match(text):
        return SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, f'date/time field value out of range: "{text}"')
    sqlstate = sqlstates.INVALID_DATETIME_FORMAT if name in _TEMPORAL else sqlstates.INVALID_TEXT_REPRESENTATION
    return SqlError(sqlstate, f'invalid input syntax for type {type_}: "{text}"')
