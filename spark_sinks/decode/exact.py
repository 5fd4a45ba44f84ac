"""Values of marked JSON text (:func:`spark_sinks.decode.json_text.marked`), each taken without loss.

A value of such a text is ``true`` or ``false``, begins with ``S`` (a string), ``N`` (a number), ``{`` or ``[``, or is
NULL. It is taken apart level by level, since only so the names of fields can be compared without regard to case. That
is done by functions over arrays of one element, which bind a value to a name: an expression grows with its type alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql.types import ArrayType, BooleanType, DataType, MapType, StringType, StructType, VarcharType

from spark_sinks.decode.carriers import STRICT_DECIMALS, from_text, names_of, one_entry_a_key
from spark_sinks.decode.columns import quoted, text
from spark_sinks.decode.json_text import marked, unmarked

_OPTIONS = f"map('allowSingleQuotes', 'false', {STRICT_DECIMALS})"


def exact_value(kind: DataType, value: str, depth: int = 0) -> str:
    """The typed value of a marked one without loss, else NULL."""
    if isinstance(kind, ArrayType):
        return _array(kind, value, depth)
    if isinstance(kind, MapType):
        return _map(kind, value, depth)
    if isinstance(kind, StructType):
        return _struct(kind, value, depth)
    if isinstance(kind, (StringType, VarcharType)):
        return from_text(kind, _as_text(value))
    plain = f"CASE WHEN left({value}, 1) IN ('S', 'N') THEN substring({value}, 2)"
    return from_text(kind, f"({plain} ELSE {value} END)" if isinstance(kind, BooleanType) else f"({plain} END)")


def as_marked_string(value: str) -> str:
    """A text as the marked value that a JSON string of it has."""
    return f"concat('S', {value})"


def key_of(fields: str, names: Sequence[str], known: Collection[str], *, mark: str = "") -> str:
    """The key of a map that is the first of ``names`` with a value, else the first there is, else the one key that
    differs from them in case alone; NULL where there is none. ``known`` are the names of all: a key that is one of
    others belongs to those alone. All keys begin with ``mark``."""
    keys = [text(mark + name) for name in names]
    given = "".join(f"WHEN try_element_at({fields}, {key}) IS NOT NULL THEN {key} " for key in keys)
    there = "".join(f"WHEN map_contains_key({fields}, {key}) THEN {key} " for key in keys)
    alike = {name for name in known if name.lower() == names[0].lower()} - set(names)
    of_others = f" AND k NOT IN ({', '.join(text(mark + name) for name in sorted(alike))})" if alike else ""
    others = f"filter(map_keys({fields}), k -> lower(k) = {text((mark + names[0]).lower())}{of_others})"
    return f"CASE {given}{there}WHEN size({others}) = 1 THEN {others}[0] END"


def _array(kind: ArrayType, value: str, depth: int) -> str:
    items, item, taken = f"a{depth}", f"i{depth}", f"t{depth}"
    typed = f"transform({items}, {item} -> {exact_value(kind.elementType, item, depth + 1)})"
    body = _bind(typed, taken, f"CASE WHEN {_nulls(taken)} = {_nulls(items)} THEN {taken} END")
    return _bind(_parsed(value, "array<string>", "["), items, body)


def _map(kind: MapType, value: str, depth: int) -> str:
    entries, entry, taken = f"a{depth}", f"i{depth}", f"t{depth}"
    key = f"CASE WHEN left({entry}.key, 1) = 'S' THEN {from_text(kind.keyType, f'substring({entry}.key, 2)')} END"
    pair = f"struct({key} as key, {exact_value(kind.valueType, f'{entry}.value', depth + 1)} as value)"
    whole = f"NOT exists({taken}, e -> e.key IS NULL) AND {_nulls(f'{taken}.value')} = {_nulls(f'{entries}.value')}"
    body = _bind(
        f"transform({entries}, {entry} -> {pair})",
        taken,
        f"CASE WHEN {whole} THEN map_from_entries({taken}) END",
    )
    found = _parsed(value, "map<string,string>", "{")
    return _bind(f"map_entries({one_entry_a_key(found)})", entries, body)


def _struct(kind: StructType, value: str, depth: int) -> str:
    fields, found, taken = f"a{depth}", f"i{depth}", f"t{depth}"
    known = {name for f in kind.fields for name in names_of(f)}
    keys = [key_of(fields, names_of(f), known, mark="S") for f in kind.fields]
    values = ", ".join(f"try_element_at({fields}, {key})" for key in keys)
    typed = ", ".join(
        f"{text(f.name)}, {exact_value(f.dataType, f'{found}[{i}]', depth + 1)}" for i, f in enumerate(kind.fields)
    )
    tests = " AND ".join(
        f"({found}[{i}] IS NULL OR {taken}.{quoted(f.name)} IS NOT NULL)" for i, f in enumerate(kind.fields)
    )
    named = _bind(f"named_struct({typed})", taken, f"CASE WHEN {tests} THEN {taken} END")
    # A key without a mark is a number, which JSON does not have there.
    strings = f"forall(map_keys({fields}), k -> left(k, 1) = 'S')"
    body = f"CASE WHEN {strings} THEN {_bind(f'array({values})', found, named)} END"
    return _bind(one_entry_a_key(_parsed(value, "map<string,string>", "{")), fields, body)


def _bind(value: str, name: str, body: str) -> str:
    return f"transform(array({value}), {name} -> {body})[0]"


def _nulls(array: str) -> str:
    return f"size(filter({array}, n -> n IS NULL))"


def _parsed(value: str, kind: str, opening: str) -> str:
    """An array or map whose values are marked; of a string that is the JSON of one, too."""
    inside = f"trim(substring({value}, 2))"
    single = f"json_array_length(concat('[', {inside}, ']')) = 1"
    whole = f"left({value}, 1) = 'S' AND left({inside}, 1) = '{opening}' AND {single}"
    given = f"CASE WHEN left({value}, 1) = '{opening}' THEN {value} WHEN {whole} THEN {marked(inside)} END"
    return f"from_json(concat('{{\"v\":', {given}, '}}'), 'v {kind}', {_OPTIONS}).v"


def _as_text(value: str) -> str:
    """As Spark's parser gives a value of any kind as text."""
    number = f"substring({value}, 2)"
    doubled = f"CASE WHEN {number} RLIKE '[.eE]' THEN cast(cast({number} as double) as string) ELSE {number} END"
    copied = f"from_json(concat('{{\"v\":', {unmarked(value)}, '}}'), 'v string', {_OPTIONS}).v"
    return (
        f"(CASE left({value}, 1) WHEN 'S' THEN substring({value}, 2) WHEN 'N' THEN {doubled} "
        f"WHEN '{{' THEN {copied} WHEN '[' THEN {copied} ELSE {value} END)"
    )
