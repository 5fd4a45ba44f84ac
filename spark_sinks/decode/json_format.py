"""JSON objects, one a record.

Fast path: Spark's parser over the declared columns; taken as it is when every column came out non-null and without
loss. Otherwise (a NULL, a coercion, a name in other case, a bad record) the record goes through the slow path, which
looks at each field by itself: the exact name, else the spelling of the declaration, else the one name that matches
without regard to case. Spark's parser knows names exactly, so it is given the declaration's spelling as a field, too:
of the two the one that is not null counts, the exact name first. Inside a STRUCT it is given the spelling alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    VarcharType,
)

from spark_sinks.decode import json_text
from spark_sinks.decode.carriers import (
    STRICT_DECIMALS,
    carried_field,
    carried_scale,
    carrier,
    convert,
    from_text,
    is_nested,
    leaves,
    names_of,
    one_entry_a_key,
    valid,
)
from spark_sinks.decode.columns import DecodeColumn, Decoded, null_reason, quoted, text, utf8_text, wrong_reason
from spark_sinks.decode.exact import exact_value, key_of
from spark_sinks.decode.format import Format

_OPTIONS = (
    "map('columnNameOfCorruptRecord', '_corrupt', 'allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', "
    f"{STRICT_DECIMALS})"
)
_OBJECT = r"^\s*+\{"
_NUMBERS = (ByteType, ShortType, IntegerType, LongType, DecimalType, FloatType, DoubleType)
_OF_DOUBLE = "RLIKE '[.E]'"  # the text of a number that went through a double
_TEXTS = (StringType, VarcharType)
_ANY_DIGITS = 2**31 - 1


def decode_json(columns: Sequence[DecodeColumn], value: str, prefix: str) -> Decoded:
    """``value`` refers to a binary column. The corrupt-record column makes Spark parse every declared column."""
    given, utf8, sound, parsed, fast, alike, taken, fields, exact, keys, found, row, reason = (
        f"{prefix}{letter}" for letter in "guhjfspmektrw"
    )
    refs = _references(columns, parsed)
    texts = f"from_json({utf8}, 'map<string,string>', {_OPTIONS})"
    marked = f"from_json({json_text.marked(utf8)}, 'map<string,string>', {_OPTIONS})"
    known = {name for c in columns for name in c.fields}
    names = ", ".join(f"'k{i}', {key_of(fields, c.fields, known)}" for i, c in enumerate(columns))
    looked_up = ", ".join(f"'t{i}', try_element_at({fields}, {keys}.k{i})" for i in range(len(columns)))
    # The parser writes NULL for what it cannot read, or what came before of the same name, and says so only of the
    # whole record.
    well = " AND ".join((f"{parsed}._corrupt IS NULL", sound, alike))
    valid_ones = ", ".join(
        f"'p{i}', {fast} OR coalesce({well} AND {_valid(c.type, ref, utf8)}, false)"
        for i, (c, ref) in enumerate(zip(columns, refs, strict=True))
    )
    # Only where it may say more than the fields' texts.
    inexact = [
        f"(NOT {taken}.p{i} AND {found}.t{i} {'IS NOT NULL' if is_nested(c.type) else _OF_DOUBLE})"
        for i, c in enumerate(columns)
        if is_nested(c.type) or isinstance(c.type, _NUMBERS)
    ]
    marked_values = [f"try_element_at({exact}, concat('S', {keys}.k{i}))" for i in range(len(columns))]
    typed = ", ".join(
        f"'c{i}', CASE WHEN {taken}.p{i} THEN {convert(c.type, ref)} "
        f"ELSE {_slow(c.type, f'{found}.t{i}', marked_values[i])} END"
        for i, (c, ref) in enumerate(zip(columns, refs, strict=True))
    )
    looked = f"CASE WHEN {fast} THEN NULL ELSE {_reason(columns, value, utf8, fields, found, row)} END"
    stages = (
        f"{utf8_text(value)} AS {given}",
        f"{json_text.has_only_characters(given)} AS {sound}",
        f"CASE WHEN {sound} THEN {given} ELSE {json_text.halves_as_nul(given)} END AS {utf8}",
        f"{_parse(columns, utf8)} AS {parsed}",
        f"{_needs_no_search(columns, refs, utf8)} AS {alike}",
        f"coalesce({_all_valid(columns, refs, parsed, utf8)} AND {alike} AND {sound} AND {_single(utf8)}, false) "
        f"AS {fast}",
        f"named_struct({valid_ones}) AS {taken}",
        f"CASE WHEN NOT {fast} AND {_single(utf8)} THEN {one_entry_a_key(texts)} END AS {fields}",
        f"CASE WHEN {fields} IS NOT NULL THEN named_struct({names}) END AS {keys}",
        f"CASE WHEN {fields} IS NOT NULL THEN named_struct({looked_up}) END AS {found}",
        f"CASE WHEN {' OR '.join([f'NOT {sound}', *inexact])} THEN {one_entry_a_key(marked)} END AS {exact}",
        f"named_struct({typed}) AS {row}",
        f"{looked} AS {reason}",
    )
    return Decoded(
        stages=tuple((stage,) for stage in stages),
        columns=tuple((c.name, f"{row}.c{i}") for i, c in enumerate(columns)),
        good=f"({reason} IS NULL)",
        reason=reason,
    )


def decode_json_trial(columns: Sequence[DecodeColumn], value: str, prefix: str) -> Decoded:
    """The fast path, and NULL in columns that take it. A record that would need the slow path is not good, and has no
    reason.

    Most batches of most topics have no such record, and the slow path is most of what Spark has to plan.
    """
    found, parsed, fast = f"{prefix}o", f"{prefix}j", f"{prefix}f"
    odd = json_text.Oddities(found)
    utf8 = f"cast({value} as string)"
    refs = _references(columns, parsed)
    tests = (
        f"is_valid_utf8({utf8})",
        *_valid_or_null(columns, refs, parsed, utf8, odd),
        _needs_no_search(columns, refs, utf8, odd),
        f"({odd.has_plain_keys} OR {json_text.has_only_characters(utf8)})",
        f"({odd.is_one_object} OR {_single(utf8)})",
    )
    return Decoded(
        stages=(
            (f"{json_text.ODDITIES}({value}, {_least_scale(columns)}) AS {found}",),
            (f"{_parse(columns, utf8, odd)} AS {parsed}",),
            (f"coalesce({' AND '.join(tests)}, false) AS {fast}",),
        ),
        columns=tuple((c.name, convert(c.type, r)) for c, r in zip(columns, refs, strict=True)),
        good=fast,
        reason=None,
    )


# --- the parser's part ----------------------------------------------------------------------------------------------
def _parse(columns: Sequence[DecodeColumn], utf8: str, odd: json_text.Oddities | None = None) -> str:
    """A struct of what the parser finds; NULL where it would round a number, or work for minutes on its exponent.
    Spark refers to its fields without regard to case, so those that differ in nothing else are given other names."""
    fields = [(name, carrier(c.type)) for c in columns for name in c.fields]
    schema = text(", ".join([*(f"{quoted(name)} {kind}" for name, kind in fields), "_corrupt string"]))
    long_numbers = _long_numbers(columns, utf8)
    readable = utf8
    if long_numbers is not None:
        short_numbers = f"NOT {long_numbers}" if odd is None else f"{odd.has_short_numbers} OR NOT {long_numbers}"
        readable = f"CASE WHEN {short_numbers} THEN {utf8} END"
    parsed = f"from_json({readable}, {schema}, {_OPTIONS})"
    if not _alike(columns):
        return parsed
    renamed = ", ".join([*(f"f{i}: {kind}" for i, (_, kind) in enumerate(fields)), "_corrupt: string"])
    return f"cast({parsed} AS struct<{renamed}>)"


def _long_numbers(columns: Sequence[DecodeColumn], utf8: str) -> str | None:
    decimals = _decimals(columns)
    if not decimals:
        return None
    named: dict[str, int] = {}
    for name, scale in decimals:
        if name is not None:
            named[name] = min(scale, named.get(name, scale))
    items = [scale for name, scale in decimals if name is None]
    return json_text.has_long_numbers(utf8, named, min(items) if items else None)


def _decimals(columns: Sequence[DecodeColumn]) -> list[tuple[str | None, int]]:
    """Names, where they have some, and how many digits behind the point are kept."""
    return [
        (name, carried_scale(kind))
        for column in columns
        for field in column.fields
        for name, kind in leaves(column.type, field)
        if isinstance(kind, DecimalType)
    ]


def _least_scale(columns: Sequence[DecodeColumn]) -> int:
    """Of decimals; of numbers that are none nothing is lost."""
    return min((scale for _, scale in _decimals(columns)), default=_ANY_DIGITS)


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


def _all_valid(columns: Sequence[DecodeColumn], refs: Sequence[str], parsed: str, utf8: str) -> str:
    tests = [_valid(column.type, ref, utf8) for column, ref in zip(columns, refs, strict=True)]
    return " AND ".join([f"{parsed}._corrupt IS NULL", *tests])


def _valid_or_null(
    columns: Sequence[DecodeColumn], refs: Sequence[str], parsed: str, utf8: str, odd: json_text.Oddities
) -> tuple[str, ...]:
    """Whether each column has a value, or is NULL because the record says so or has no such field.

    The parser tells of what it could not read. So a NULL is one unless the field has a name in other case, or unless
    the text is no object: then nothing was parsed.
    """
    names = [name for c in columns for name in c.fields]
    tests = [
        valid if c.not_null else f"({ref} IS NULL OR {valid})"
        for c, ref in zip(columns, refs, strict=True)
        for valid in [_valid(c.type, ref, utf8)]
    ]
    some_null = " OR ".join(f"{ref} IS NULL" for ref in refs)
    is_object = f"({odd.is_one_object} OR {_is_object(utf8)})"
    true_nulls = f"{is_object} AND NOT {json_text.has_unknown_spelling(utf8, names, names, odd)}"
    return (
        f"{parsed} IS NOT NULL",
        f"{parsed}._corrupt IS NULL",
        *tests,
        f"(NOT ({some_null}) OR ({true_nulls}))",
    )


def _is_object(utf8: str) -> str:
    return f"{utf8} RLIKE {text(_OBJECT)}"


def _valid(kind: DataType, ref: str, utf8: str) -> str:
    return valid(kind, ref, f"NOT {json_text.has_tiny_numbers(utf8)}")


def _needs_no_search(
    columns: Sequence[DecodeColumn], refs: Sequence[str], utf8: str, odd: json_text.Oddities | None = None
) -> str:
    """Whether no field of a STRUCT has its value under a name in other case than the parser was told."""
    first_names = {names[0] for c in columns for names in _fields_of(c.type)}
    if not first_names:
        return "true"
    other = json_text.has_other_spelling(utf8, first_names, odd)
    missing = [test for c, ref in zip(columns, refs, strict=True) if (test := _may_lack(c.type, ref)) is not None]
    return f"(NOT ({' OR '.join(missing)}) OR NOT {other})"


def _fields_of(kind: DataType) -> Iterator[tuple[str, ...]]:
    """The names of all fields at any depth."""
    if isinstance(kind, ArrayType):
        yield from _fields_of(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _fields_of(kind.valueType)
    elif isinstance(kind, StructType):
        for field in kind.fields:
            yield names_of(field)
            yield from _fields_of(field.dataType)


def _may_lack(kind: DataType, value: str) -> str | None:
    """Whether a field of a STRUCT is NULL; of those in arrays and maps that is not asked one by one."""
    if isinstance(kind, StructType):
        tests = [(carried_field(value, f), f.dataType) for f in kind.fields]
        inner = [_may_lack(each, ref) if is_nested(each) else None for ref, each in tests]
        return " OR ".join([*(f"{ref} IS NULL" for ref, _ in tests), *(test for test in inner if test is not None)])
    return "true" if any(_fields_of(kind)) else None


def _single(utf8: str) -> str:
    """The first closing brace is the last byte: surely one object. Else the values are counted exactly.

    A search for bytes, since those for characters (``locate``, ``char_length``) cost as much as half of the parsing.
    """
    first_brace_is_last = f"octet_length(substring_index({utf8}, '}}', 1)) = octet_length({utf8}) - 1"
    return f"({first_brace_is_last} OR json_array_length(concat('[', {utf8}, ']')) = 1)"


# --- the slow path's part -------------------------------------------------------------------------------------------
def _slow(kind: DataType, given: str, marked: str) -> str:
    """The value of a field from its text and from its marked value, which is there where it may say more."""
    if is_nested(kind):
        return exact_value(kind, marked)
    if isinstance(kind, _NUMBERS):
        digits = f"CASE WHEN left({marked}, 1) IN ('S', 'N') THEN substring({marked}, 2) END"
        return from_text(kind, f"coalesce({digits}, {given})")
    if isinstance(kind, _TEXTS):
        # JSON as text has its escapes still.
        escaped = f"left({marked}, 1) IN ('{{', '[') AND contains({given}, {text(chr(92) + 'u0000')})"
        return f"CASE WHEN NOT coalesce({escaped}, false) THEN {from_text(kind, given)} END"
    return from_text(kind, given)


def _reason(columns: Sequence[DecodeColumn], value: str, utf8: str, fields: str, found: str, row: str) -> str:
    tests = [
        f"WHEN {value} IS NULL THEN 'the value is null'",
        f"WHEN {utf8} IS NULL THEN 'the value is not valid UTF-8'",
        f"WHEN {fields} IS NULL THEN 'the value is not one JSON object'",
    ]
    for i, column in enumerate(columns):
        given = f"{found}.t{i}"
        tests.append(f"WHEN {given} IS NOT NULL AND {row}.c{i} IS NULL THEN {wrong_reason(column, given)}")
        if column.not_null:
            tests.append(f"WHEN {row}.c{i} IS NULL THEN {null_reason(column)}")
    return f"CASE {' '.join(tests)} END"


JSON = Format("json", decode_json, decode_json_trial, of_keys=True)
