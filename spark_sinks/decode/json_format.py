"""JSON objects, one a record.

Fast path: Spark's parser over the declared columns; taken as it is when every column came out non-null and without
loss. Otherwise (a NULL, a coercion, a name in other case, a bad record) the record goes through the slow path, which
looks at each field by itself: the exact name, else the spelling of the declaration, else the one name that matches
without regard to case. Spark's parser knows names exactly, so it is given the declaration's spelling as a field, too:
of the two the one that is not null counts, the exact name first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

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
    stage_parse = (f"{_parse(columns, utf8)} AS {parsed}",)
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
            (f"{_parse(columns, utf8)} AS {parsed}",),
            (f"coalesce({tests}, false) AS {fast}",),
        ),
        columns=tuple((c.name, convert(c.type, r)) for c, r in zip(columns, refs, strict=True)),
        good=fast,
        reason=None,
    )


def _parse(columns: Sequence[DecodeColumn], utf8: str) -> str:
    """A struct of what the parser finds. Spark refers to its fields without regard to case, so those that differ in
    nothing else are given other names."""
    fields = [(name, carrier(c.type)) for c in columns for name in c.fields]
    schema = text(", ".join([*(f"{quoted(name)} {kind}" for name, kind in fields), "_corrupt string"]))
    parsed = f"from_json({utf8}, {schema}, {_OPTIONS})"
    if not _alike(columns):
        return parsed
    renamed = ", ".join([*(f"f{i}: {kind}" for i, (_, kind) in enumerate(fields)), "_corrupt: string"])
    return f"cast({parsed} AS struct<{renamed}>)"


def _alike(columns: Sequence[DecodeColumn]) -> bool:
    """Whether names differ in their case alone."""
    names = [name.lower() for c in columns for name in c.fields]
    return len(set(names)) < len(names)


def _references(columns: Sequence[DecodeColumn], parsed: str) -> list[str]:
    if not _alike(columns):
        return [f"{parsed}.{quoted(c.name)}" for c in columns]
    numbers = count()
    return [_first_of([f"{parsed}.f{next(numbers)}" for _ in c.fields]) for c in columns]


def _first_of(references: Sequence[str]) -> str:
    return references[0] if len(references) == 1 else f"coalesce({', '.join(references)})"


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
    """Whether the first parse gave the column's value. Inside a nested value, and for the first of two fields, it
    writes NULL for what it cannot read, and says so only of the whole record."""
    whole = f" AND {parsed}._corrupt IS NULL" if is_nested(column.type) or len(column.fields) > 1 else ""
    return f"{fast} OR ({valid(column.type, ref)}{whole})"


def _field_text(column: DecodeColumn, fields: str, exact: str) -> str:
    """A field's value as text. Spark's parser takes a number with a point through a double on its way to text; a
    variant keeps up to 38 digits, but not what a double would overflow on, nor an object that names a field twice."""
    key = _key(fields, column)
    found = f"try_element_at({fields}, {key})"
    if not outgrows_double(column.type):
        return found
    digits = f"cast(try_element_at({exact}, {key}) as string)"
    return f"coalesce(CASE WHEN NOT contains({digits}, 'Infinity') THEN {digits} END, {found})"


def _key(fields: str, column: DecodeColumn) -> str:
    """The name of the column's field in a record, NULL where it has none."""
    names = [text(name) for name in column.fields]
    given = "".join(f"WHEN try_element_at({fields}, {name}) IS NOT NULL THEN {name} " for name in names[:-1])
    there = "".join(f"WHEN map_contains_key({fields}, {name}) THEN {name} " for name in reversed(names))
    others = f"filter(map_keys({fields}), k -> lower(k) = {text(column.name.lower())})"
    return f"CASE {given}{there}WHEN size({others}) = 1 THEN {others}[0] END"


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
