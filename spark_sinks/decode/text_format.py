"""Text without a form: each line is the value of the one column."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import DeclaredColumn
from spark_sinks.decode.carriers import from_text
from spark_sinks.decode.columns import DecodeColumn, Decoded, first_reason, utf8_text, wrong_reason
from spark_sinks.decode.format import Format
from spark_sinks.encode.written import Encode, null_value


def decode_text(columns: Sequence[DecodeColumn], value: str, prefix: str) -> Decoded:
    """A line that no text can hold, or that is too long for its column, rejects the record."""
    (column,) = columns
    utf8, line, reason = (f"{prefix}{letter}" for letter in ("u", "j", "w"))
    tests = [
        f"WHEN {value} IS NULL THEN 'the value is null'",
        f"WHEN {utf8} IS NULL THEN 'the value is not valid UTF-8'",
        f"WHEN {line} IS NULL THEN {wrong_reason(column, utf8)}",
    ]
    return Decoded(
        stages=(
            (f"{utf8_text(value)} AS {utf8}",),
            (f"{from_text(column.type, utf8)} AS {line}",),
            (f"{first_reason(tests)} AS {reason}",),
        ),
        columns=((column.name, line),),
        good=f"({reason} IS NULL)",
        reason=reason,
    )


def _check(columns: Sequence[DeclaredColumn]) -> None:
    if len(columns) == 1 and columns[0].type.startswith("VARCHAR"):
        return
    raise SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        'value.format "text" is of one column of type VARCHAR',
        detail=f"Declared are {', '.join(f'{column.name} {column.type}' for column in columns)}.",
        hint="Declare (value VARCHAR) and take it apart by functions; partition columns may stand beside it.",
    )


def encode_text(columns: Sequence[DecodeColumn], delimiter: str) -> Encode:
    """Of the one field of a row's object. 22004 for NULL, which no line stands for."""
    (column,) = columns

    def encode(row: bytes) -> bytes:
        value = json.loads(row)[column.name]
        if value is None:
            raise null_value(column.name, "text")
        return str(value).encode()

    return encode


TEXT = Format("text", decode_text, encoder=encode_text, check=_check)
