"""Spark's errors in PostgreSQL's terms."""

from __future__ import annotations

import re

from mvserver import sqlstates
from mvserver.compiler.capabilities.spark_text import FAILURE_MARK
from mvserver.errors import SqlError

_BY_CONDITION = {
    "DIVIDE_BY_ZERO": (sqlstates.DIVISION_BY_ZERO, "division by zero"),
    "REMAINDER_BY_ZERO": (sqlstates.DIVISION_BY_ZERO, "division by zero"),
    "INTERVAL_DIVIDED_BY_ZERO": (sqlstates.DIVISION_BY_ZERO, "division by zero"),
    "ARITHMETIC_OVERFLOW": (sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "value out of range"),
    "BINARY_ARITHMETIC_OVERFLOW": (sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "value out of range"),
    "CAST_OVERFLOW": (sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "value out of range"),
    "NUMERIC_VALUE_OUT_OF_RANGE": (sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow"),
    "NUMERIC_OUT_OF_SUPPORTED_RANGE": (sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow"),
    "CAST_INVALID_INPUT": (sqlstates.INVALID_TEXT_REPRESENTATION, "invalid input syntax"),
    "CANNOT_PARSE_TIMESTAMP": (sqlstates.INVALID_DATETIME_FORMAT, "invalid value for a timestamp"),
    "DATETIME_OVERFLOW": (sqlstates.DATETIME_FIELD_OVERFLOW, "date/time field value out of range"),
    "DATETIME_FIELD_OUT_OF_BOUNDS": (sqlstates.DATETIME_FIELD_OVERFLOW, "date/time field value out of range"),
    "USER_RAISED_EXCEPTION": (sqlstates.DATA_EXCEPTION, "invalid value"),
}
_CONDITION = re.compile(r"\[([A-Z][A-Z_0-9]*)(?:\.[A-Z_0-9.]+)?\]\s*([^\n]*)")
_RAISED = re.compile(re.escape(FAILURE_MARK) + r"([0-9A-Z]{5}):([^\n]*)")


def sql_error(error: BaseException) -> SqlError:
    """The user's error behind an exception of pyspark or py4j; XX000 with Spark's first line for what is not listed.

    Lowered functions that raise by themselves do so with the compiler's mark, SQLSTATE and message.
    """
    if isinstance(error, SqlError):
        return error
    text = str(error)
    raised = _RAISED.search(text)
    if raised:
        return SqlError(raised.group(1), raised.group(2).split(" SQLSTATE:")[0].strip().rstrip("'\""))
    for match in _CONDITION.finditer(text):
        known = _BY_CONDITION.get(match.group(1))
        if known:
            return SqlError(known[0], known[1], detail=_sentence(match.group(2)))
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return SqlError(sqlstates.INTERNAL_ERROR, "evaluation failed", detail=first.strip()[:500])


def is_data_error(error: BaseException) -> bool:
    """True where a record's value and a query's expression are to blame, not the source or Spark."""
    state = sql_error(error).sqlstate
    return state.startswith("22")


def _sentence(text: str) -> str:
    """Spark adds advice on its own settings, which are not the user's."""
    cut = re.split(r"\s(?:Use `?try_|If necessary set|SQLSTATE:|To return NULL)", text)[0].strip()
    return cut if not cut or cut.endswith(".") else cut + "."
