"""JSON objects, one a record.

Fast path: Spark's parser over the declared columns; taken as it is when every column came out non-null and without
loss. Otherwise (a NULL, a coercion, a name in other case, a bad record) the record goes through the slow path, which
looks at each field by itself: the exact name, else the one name that matches without regard to case.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_sinks.decode.carriers import carrier, convert, from_text, valid
from spark_sinks.decode.columns import DecodeColumn, Decoded, null_reason, quoted, text, wrong_reason

_OPTIONS = (
    "map('columnNameOfCorruptRecord', '_corrupt', 'allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false')"
)


def decode_json(columns: Sequence[DecodeColumn], value: str, prefix: str) -> Decoded:
    """``value`` refers to a binary column. The corrupt-record column makes Spark parse every declared column."""
    utf8 = f"{prefix}u"
    parsed, fast, fields, found, row = (f"{prefix}{letter}" for letter in ("j", "f", "m", "t", "r"))
    schema = ", ".join([*(f"{quoted(c.name)} {carrier(c.type)}" for c in columns), "_corrupt string"])
    refs = [f"{parsed}.{quoted(c.name)}" for c in columns]
    # One closing brace, at the very end: surely one object. Else count the values exactly.
    single = f"(locate('}}', {utf8}) = char_length(rtrim({utf8})) OR json_array_length(concat('[', {utf8}, ']')) = 1)"
    all_valid = " AND ".join(
        [f"{parsed}._corrupt IS NULL", *(valid(c.type, r) for c, r in zip(columns, refs, strict=True))]
    )
    stage_text = (f"CASE WHEN is_valid_utf8(cast({value} as string)) THEN cast({value} as string) END AS {utf8}",)
    stage_parse = (f"from_json({utf8}, {text(schema)}, {_OPTIONS}) AS {parsed}",)
    stage_fast = (f"coalesce({all_valid} AND {single}, false) AS {fast}",)
    stage_fields = (
        f"CASE WHEN NOT {fast} AND {single} THEN from_json({utf8}, 'map<string,string>', {_OPTIONS}) END AS {fields}",
    )
    looked_up = ", ".join(f"'t{i}', {_look_up(fields, c.name)}" for i, c in enumerate(columns))
    stage_found = (f"CASE WHEN {fields} IS NOT NULL THEN named_struct({looked_up}) END AS {found}",)
    typed = ", ".join(
        f"'c{i}', CASE WHEN {fast} OR {valid(c.type, r)} THEN {convert(c.type, r)} "
        f"ELSE {from_text(c.type, f'{found}.t{i}')} END"
        for i, (c, r) in enumerate(zip(columns, refs, strict=True))
    )
    stage_row = (f"named_struct({typed}) AS {row}",)
    reason = f"{prefix}w"
    stage_reason = (
        f"CASE WHEN {fast} THEN NULL ELSE {_reason(columns, value, utf8, fields, found, row)} END AS {reason}",
    )
    return Decoded(
        stages=(stage_text, stage_parse, stage_fast, stage_fields, stage_found, stage_row, stage_reason),
        columns=tuple((c.name, f"{row}.c{i}") for i, c in enumerate(columns)),
        reason=reason,
    )


def _look_up(fields: str, name: str) -> str:
    literal, folded = text(name), text(name.lower())
    others = f"filter(map_keys({fields}), k -> lower(k) = {folded})"
    return (
        f"CASE WHEN map_contains_key({fields}, {literal}) THEN try_element_at({fields}, {literal}) "
        f"WHEN size({others}) = 1 THEN try_element_at({fields}, {others}[0]) END"
    )


def _reason(columns: Sequence[DecodeColumn], value: str, utf8: str, fields: str, found: str, row: str) -> str:
    tests = [
        f"WHEN {value} IS NULL THEN 'the value is null'",
        f"WHEN {utf8} IS NULL THEN 'the value is not valid UTF-8'",
        f"WHEN {fields} IS NULL THEN 'the value is not one JSON object'",
    ]
    for i, column in enumerate(columns):
        tests.append(
            f"WHEN {found}.t{i} IS NOT NULL AND {row}.c{i} IS NULL THEN concat({wrong_reason(column)}, left({found}.t{i}, 200))"
        )
        if column.not_null:
            tests.append(f"WHEN {row}.c{i} IS NULL THEN {null_reason(column)}")
    return f"CASE {' '.join(tests)} END"
