"""JSON objects, one a record.

Fast path: Spark's parser over the declared columns; taken as it is when every column came out non-null and without
loss. Otherwise (a NULL, a coercion, a name in other case, a bad record) the record goes through the slow path, which
looks at each field by itself: the exact name, else the one name that matches without regard to case.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_sinks.decode.carriers import STRICT_DECIMALS, carrier, convert, from_text, is_nested, outgrows_double, valid
from spark_sinks.decode.columns import DecodeColumn, Decoded, null_reason, quoted, text, wrong_reason

_OPTIONS = (
    "map('columnNameOfCorruptRecord', '_corrupt', 'allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', "
    f"{STRICT_DECIMALS})"
)


def decode_json(columns: Sequence[DecodeColumn], value: str, prefix: str) -> Decoded:
    """``value`` refers to a binary column. The corrupt-record column makes Spark parse every declared column."""
    utf8 = f"{prefix}u"
    parsed, fast, fields, found, row = (f"{prefix}{letter}" for letter in ("j", "f", "m", "t", "r"))
    refs = _references(columns, parsed)
    stage_text = (f"CASE WHEN is_valid_utf8(cast({value} as string)) THEN cast({value} as string) END AS {utf8}",)
    stage_parse = (f"from_json({utf8}, {_schema(columns)}, {_OPTIONS}) AS {parsed}",)
    stage_fast = (f"coalesce({_all_valid(columns, refs, parsed)} AND {_single(utf8)}, false) AS {fast}",)
    exact = f"{prefix}e"
    texts, variants = (f"from_json({utf8}, 'map<string,{kind}>', {_OPTIONS})" for kind in ("string", "variant"))
    stage_fields = (f"CASE WHEN NOT {fast} AND {_single(utf8)} THEN {texts} END AS {fields}",)
    # Only where a number has a point or an exponent.
    stage_exact = (f"CASE WHEN exists(map_values({fields}), v -> v RLIKE '[0-9][.E]') THEN {variants} END AS {exact}",)
    looked_up = ", ".join(f"'t{i}', {_field_text(c, fields, exact)}" for i, c in enumerate(columns))
    stage_found = (f"CASE WHEN {fields} IS NOT NULL THEN named_struct({looked_up}) END AS {found}",)
    typed = ", ".join(
        f"'c{i}', CASE WHEN {_taken(c, r, fast, parsed)} THEN {convert(c.type, r)} "
        f"ELSE {from_text(c.type, f'{found}.t{i}')} END"
        for i, (c, r) in enumerate(zip(columns, refs, strict=True))
    )
    stage_row = (f"named_struct({typed}) AS {row}",)
    reason = f"{prefix}w"
    stage_reason = (
        f"CASE WHEN {fast} THEN NULL ELSE {_reason(columns, value, utf8, fields, found, row)} END AS {reason}",
    )
    return Decoded(
        stages=(stage_text, stage_parse, stage_fast, stage_fields, stage_exact, stage_found, stage_row, stage_reason),
        columns=tuple((c.name, f"{row}.c{i}") for i, c in enumerate(columns)),
        good=f"({reason} IS NULL)",
        reason=reason,
    )


def decode_json_trial(columns: Sequence[DecodeColumn], value: str, prefix: str) -> Decoded:
    """The fast path alone: a record that would need the slow one is not good, and has no reason.

    Most batches of most topics have no such record, and the slow path is most of what Spark has to plan.
    """
    parsed, fast = f"{prefix}j", f"{prefix}f"
    utf8 = f"cast({value} as string)"
    refs = _references(columns, parsed)
    tests = f"is_valid_utf8({utf8}) AND {_all_valid(columns, refs, parsed)} AND {_single(utf8)}"
    return Decoded(
        stages=(
            (f"from_json({utf8}, {_schema(columns)}, {_OPTIONS}) AS {parsed}",),
            (f"coalesce({tests}, false) AS {fast}",),
        ),
        columns=tuple((c.name, convert(c.type, r)) for c, r in zip(columns, refs, strict=True)),
        good=fast,
        reason=None,
    )


def _schema(columns: Sequence[DecodeColumn]) -> str:
    return text(", ".join([*(f"{quoted(c.name)} {carrier(c.type)}" for c in columns), "_corrupt string"]))


def _references(columns: Sequence[DecodeColumn], parsed: str) -> list[str]:
    return [f"{parsed}.{quoted(c.name)}" for c in columns]


def _all_valid(columns: Sequence[DecodeColumn], refs: Sequence[str], parsed: str) -> str:
    tests = [valid(column.type, ref) for column, ref in zip(columns, refs, strict=True)]
    return " AND ".join([f"{parsed}._corrupt IS NULL", *tests])


def _single(utf8: str) -> str:
    """The first closing brace is the last byte: surely one object. Else the values are counted exactly.

    A search for bytes, since those for characters (``locate``, ``char_length``) cost as much as half of the parsing.
    """
    first_brace_is_last = f"octet_length(substring_index({utf8}, '}}', 1)) = octet_length({utf8}) - 1"
    return f"({first_brace_is_last} OR json_array_length(concat('[', {utf8}, ']')) = 1)"


def _taken(column: DecodeColumn, ref: str, fast: str, parsed: str) -> str:
    """Whether the first parse gave the column's value. Inside a nested value it writes NULL for what it cannot read,
    and says so only of the whole record."""
    whole = f" AND {parsed}._corrupt IS NULL" if is_nested(column.type) else ""
    return f"{fast} OR ({valid(column.type, ref)}{whole})"


def _field_text(column: DecodeColumn, fields: str, exact: str) -> str:
    """A field's value as text. Spark's parser takes a number with a point through a double on its way to text; a
    variant keeps up to 38 digits, but not what a double would overflow on, nor an object that names a field twice."""
    found = _look_up(fields, column.name)
    if not outgrows_double(column.type):
        return found
    digits = f"cast({_look_up(exact, column.name)} as string)"
    return f"coalesce(CASE WHEN NOT contains({digits}, 'Infinity') THEN {digits} END, {found})"


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
        given = f"{found}.t{i}"
        tests.append(
            f"WHEN {given} IS NOT NULL AND {row}.c{i} IS NULL THEN concat({wrong_reason(column)}, left({given}, 200))"
        )
        if column.not_null:
            tests.append(f"WHEN {row}.c{i} IS NULL THEN {null_reason(column)}")
    return f"CASE {' '.join(tests)} END"
