"""Documents made of values, in PostgreSQL's form of numbers, times and bytes, and with its blanks.

DuckDB reads a document within another anew and makes doubles of its numbers, ``4.5`` of ``4.50``. So where there are
such values, a document is put together as a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from sqlglot import exp

from mvserver.dialect.typing.duck_types import fields_of, is_fraction
from mvserver.sql.pull_parser import CALLED

_MACROS = {
    "DATE": "_time_out", "TIMESTAMP": "_json_timestamp", "TIMESTAMP WITH TIME ZONE": "_json_timestamptz",
    "DOUBLE": "_json_float8", "FLOAT": "_json_float4", "BLOB": "_bytea_out", "INTERVAL": "_interval_out",
}  # fmt: skip
_WORDS = ("TIMESTAMP", "DOUBLE", "FLOAT", "BLOB", "INTERVAL", "DECIMAL", "JSON", "DATE")
"""Of DuckDB's types that have another form there."""
_OF_VALUE = frozenset({"to_json", "to_jsonb", "array_to_json"})
_BUILT = frozenset({"json_array", "json_object"})

_COLLECTED = "_json_collected"
"""A mark in the place of json_agg: its argument is the array of the values."""

TypeOf = Callable[[exp.Expr], str]


def concerns(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _OF_VALUE | _BUILT | {_COLLECTED}


def rewritten(node: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    """What stands for the call; None where DuckDB's own is right."""
    name = node.name.lower()
    if name == _COLLECTED:
        return _collected(node.expressions[0], type_of)
    if name in _OF_VALUE:
        (value,) = node.expressions
        kind = type_of(value)
        if kind == "JSON" or not any(word in kind for word in _WORDS):
            return None
        return _json(_text(value, kind, 0))
    spaced = not str(node.meta.get(CALLED, ("jsonb",))[0]).startswith("jsonb")
    members = [_member(part, type_of) for part in node.expressions]
    if name == "json_array":
        return _json(_concatenated("[", ", " if spaced else ",", members, "]"))
    keys = [_key(part) for part in node.expressions[::2]]
    pairs = [
        exp.DPipe(this=exp.DPipe(this=key, expression=exp.Literal.string(" : " if spaced else ":")), expression=value)
        for key, value in zip(keys, members[1::2], strict=True)
    ]
    return _json(_concatenated("{", ", " if spaced else ",", pairs, "}"))


def _collected(array: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """The document of json_agg: rows and arrays in it stand on lines of their own."""
    kind = type_of(array)
    item = exp.to_identifier("_item", quoted=True)
    each = exp.Column(this=item.copy())
    element = kind.removesuffix("[]")
    shown = _text(each, element, 0) if kind else _as_text(_call("to_json", each))
    texts = _each(array, item, shown)
    apart = element.startswith(("STRUCT(", "TUPLE(")) or element.endswith("]")
    return _json(_call("_json_rows_text" if apart else "_json_items_text", texts))


def _member(value: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """Its text; that of NULL is a word."""
    kind = type_of(value)
    if kind and any(word in kind for word in _WORDS):
        shown = _text(value, kind, 0)
    else:
        shown = _as_text(_call("to_json", value))
    return exp.Coalesce(this=shown, expressions=[exp.Literal.string("null")])


def _key(key: exp.Expr) -> exp.Expr:
    if isinstance(key, exp.Literal):
        return exp.Literal.string(json.dumps(key.name, ensure_ascii=False))
    return _call("_json_member_key", exp.cast(key.copy(), "TEXT", dialect="duckdb"))


def _text(value: exp.Expr, kind: str, depth: int) -> exp.Expr:
    """The document's text; NULL of NULL."""
    if kind == "JSON" or (kind.startswith("DECIMAL(") and kind.endswith(")")):
        return _call("_fraction_out", value) if is_fraction(kind) else _as_text(value)
    if kind in ("DOUBLE", "FLOAT"):
        return _as_text(_call(_MACROS[kind], value))  # a document already: ``to_json`` writes 1e+16 with its zeros
    if kind in _MACROS:
        return _as_text(_call("to_json", _call(_MACROS[kind], value)))
    if kind.endswith("]"):
        item = exp.to_identifier(f"_item{depth}", quoted=True)
        shown = _text(exp.Column(this=item.copy()), kind[: kind.rindex("[")], depth + 1)
        each = exp.Coalesce(this=shown, expressions=[exp.Literal.string("null")])
        return _call("_json_list_text", _each(value, item, each))
    if kind.startswith(("STRUCT(", "TUPLE(")):
        return _fields(value, kind, depth)
    if kind.startswith("MAP("):
        return _members(value, kind, depth)
    return _as_text(_call("to_json", value))


def _each(values: exp.Expr, item: exp.Identifier, shown: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="list_transform", expressions=[values.copy(), exp.Lambda(this=shown, expressions=[item])])


def _fields(value: exp.Expr, kind: str, depth: int) -> exp.Expr:
    made: list[exp.Expr] = []
    for at, (name, inner) in enumerate(fields_of(kind), start=1):
        found = _call("struct_extract_at", value, exp.Literal.number(at))
        shown = exp.Coalesce(this=_text(found, inner, depth), expressions=[exp.Literal.string("null")])
        key = exp.Literal.string(json.dumps(name or f"f{at}", ensure_ascii=False) + ":")
        made.append(exp.DPipe(this=key, expression=shown))
    absent = exp.If(this=exp.Is(this=value.copy(), expression=exp.Null()), true=exp.Null())
    return exp.Case(ifs=[absent], default=_concatenated("{", ",", made, "}"))


def _members(value: exp.Expr, kind: str, depth: int) -> exp.Expr:
    """Of a map."""
    (_, key_kind), (_, value_kind) = fields_of(kind)
    item = exp.to_identifier(f"_item{depth}", quoted=True)
    key, member = (_call("struct_extract_at", exp.Column(this=item.copy()), exp.Literal.number(at)) for at in (1, 2))
    shown = exp.Coalesce(this=_text(member, value_kind, depth + 1), expressions=[exp.Literal.string("null")])
    pair = exp.DPipe(this=_call("_json_map_key", _text(key, key_kind, depth + 1)), expression=shown)
    return _call("_json_map_text", _each(_call("map_entries", value), item, pair))


def _concatenated(opening: str, comma: str, parts: Sequence[exp.Expr], closing: str) -> exp.Expr:
    pieces: list[exp.Expr] = [exp.Literal.string(opening)]
    for at, part in enumerate(parts):
        if at:
            pieces.append(exp.Literal.string(comma))
        pieces.append(part)
    return exp.Anonymous(this="list_aggregate", expressions=[
        exp.Array(expressions=[*pieces, exp.Literal.string(closing)]), exp.Literal.string("string_agg"),
        exp.Literal.string(""),
    ])  # fmt: skip


def _json(text: exp.Expr) -> exp.Expr:
    return exp.cast(text, exp.DType.JSON)


def _as_text(value: exp.Expr) -> exp.Expr:
    return exp.cast(value.copy(), "TEXT", dialect="duckdb")


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[part.copy() for part in arguments])
