"""CSV, one line a record, columns by position. An empty unquoted field is NULL. There is no header line.

The format ``delimited`` is the same with another character between the fields.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql.types import DataType

from spark_sinks.decode.carriers import from_text, is_nested
from spark_sinks.decode.columns import DecodeColumn, Decoded, null_reason, text, utf8_text, wrong_reason
from spark_sinks.decode.exact import as_marked_string, exact_value
from spark_sinks.decode.format import Format
from spark_sinks.encode.written import Encode

COMMA = ","  # the delimiter of the format csv
# What the parser is to put for an empty unquoted field: a noncharacter, for with its default an empty quoted field,
# which is an empty text, would be NULL too.
_NOTHING = "\\uFDD0"


def decode_csv(columns: Sequence[DecodeColumn], value: str, prefix: str, delimiter: str = COMMA) -> Decoded:
    utf8, parsed, row, reason = (f"{prefix}{letter}" for letter in ("u", "j", "r", "w"))
    schema = ", ".join([*(f"c{i} string" for i in range(len(columns))), "_corrupt string"])
    options = (
        f"map('columnNameOfCorruptRecord', '_corrupt', 'mode', 'PERMISSIVE', 'escape', '\"', "
        f"'nullValue', '{_NOTHING}', 'sep', {text(delimiter)})"
    )
    typed = ", ".join(f"'c{i}', {_typed(c.type, f'{parsed}.c{i}')}" for i, c in enumerate(columns))
    tests = [
        f"WHEN {value} IS NULL THEN 'the value is null'",
        f"WHEN {utf8} IS NULL THEN 'the value is not valid UTF-8'",
        f"WHEN {parsed} IS NULL OR {parsed}._corrupt IS NOT NULL "
        f"THEN 'the value is not a CSV line of {len(columns)} fields'",
    ]
    for i, column in enumerate(columns):
        given = f"{parsed}.c{i}"
        tests.append(f"WHEN {given} IS NOT NULL AND {row}.c{i} IS NULL THEN {wrong_reason(column, given)}")
        if column.not_null:
            tests.append(f"WHEN {row}.c{i} IS NULL THEN {null_reason(column)}")
    return Decoded(
        stages=(
            (f"{utf8_text(value)} AS {utf8}",),
            (f"from_csv({utf8}, {text(schema)}, {options}) AS {parsed}",),
            (f"named_struct({typed}) AS {row}",),
            (f"CASE {' '.join(tests)} END AS {reason}",),
        ),
        columns=tuple((c.name, f"{row}.c{i}") for i, c in enumerate(columns)),
        good=f"({reason} IS NULL)",
        reason=reason,
    )


def _typed(kind: DataType, given: str) -> str:
    return exact_value(kind, as_marked_string(given)) if is_nested(kind) else from_text(kind, given)


def encode_csv(columns: Sequence[DecodeColumn], delimiter: str) -> Encode:
    """Of a row's object. Texts stand in quotes, so that an empty one is not NULL."""
    names = [column.name for column in columns]

    def encode(row: bytes) -> bytes:
        fields = json.loads(row, parse_int=_Digits, parse_float=_Digits)
        return delimiter.join(_field(fields[name]) for name in names).encode()

    return encode


class _Digits(str):
    """A number as it was written."""


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, _Digits) else '"' + value.replace('"', '""') + '"'


CSV = Format("csv", decode_csv, encoder=encode_csv, of_keys=True)
DELIMITED = Format("delimited", decode_csv, encoder=encode_csv)
