"""Documents made of values, in PostgreSQL's form of numbers, times and bytes, and with its blanks.

DuckDB reads a document within another anew and makes doubles of its numbers, ``4.5`` of ``4.50``. So where there are
such values, a document is put together as a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from sqlglot import exp

from mvserver.dialect.typing.duck_types import is_fraction
from mvserver.sql.pull_parser import CALLED

_MACROS = {
    exp.DType.DATE: "_time_out",
    exp.DType.TIMESTAMP: "_json_timestamp",
    exp.DType.TIMESTAMPNTZ: "_json_timestamp",
    exp.DType.TIMESTAMPTZ: "_json_timestamptz",
    exp.DType.DOUBLE: "_json_float8",
    exp.DType.FLOAT: "_json_float4",
    exp.DType.VARBINARY: "_bytea_out",
    exp.DType.INTERVAL: "_interval_out",
}
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
        return _json(_text(value, _built(kind), 0))
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
    shown = _text(each, _built(element), 0) if kind else _as_text(_call("to_json", each))
    texts = exp.Anonymous(this="list_transform", expressions=[array.copy(), exp.Lambda(this=shown, expressions=[item])])
    apart = element.startswith("STRUCT(") or element.endswith("]")
    return _json(_call("_json_rows_text" if apart else "_json_items_text", texts))


def _built(kind: str) -> exp.DataType:
    """Rows without names are printed in another way than they are read."""
    return exp.DataType.build(kind.replace("TUPLE(", "STRUCT("), dialect="duckdb")


def _member(value: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """Its text; that of NULL is a word."""
    kind = type_of(value)
    if kind and any(word in kind for word in _WORDS):
        shown = _text(value, _built(kind), 0)
    else:
        shown = _as_text(_call("to_json", value))
    return exp.Coalesce(this=shown, expressions=[exp.Literal.string("null")])


def _key(key: exp.Expr) -> exp.Expr:
    if isinstance(key, exp.Literal):
        return exp.Literal.string(json.dumps(key.name, ensure_ascii=False))
    return _call("_json_member_key", exp.cast(key.copy(), "TEXT", dialect="duckdb"))


def _text(value: exp.Expr, kind: exp.DataType, depth: int) -> exp.Expr:
    """The document's text; NULL of NULL."""
    if kind.this in (exp.DType.DECIMAL, exp.DType.JSON):
        return _call("_fraction_out", value) if is_fraction(kind.sql("duckdb")) else _as_text(value)
    if kind.this in (exp.DType.DOUBLE, exp.DType.FLOAT):
        return _as_text(_call(_MACROS[kind.this], value))  # a document already: ``to_json`` writes 1e+16 with its zeros
    if kind.this in _MACROS:
        return _as_text(_call("to_json", _call(_MACROS[kind.this], value)))
    if kind.this in (exp.DType.ARRAY, exp.DType.LIST):
        item = exp.to_identifier(f"_item{depth}", quoted=True)
        shown = _text(exp.Column(this=item.copy()), kind.expressions[0], depth + 1)
        each = exp.Coalesce(this=shown, expressions=[exp.Literal.string("null")])
        texts = exp.Anonymous(
            this="list_transform", expressions=[value.copy(), exp.Lambda(this=each, expressions=[item])]
        )
        return _call("_json_list_text", texts)
    if kind.this == exp.DType.STRUCT:
        return _fields(value, kind, depth)
    return _as_text(_call("to_json", value))


def _fields(value: exp.Expr, kind: exp.DataType, depth: int) -> exp.Expr:
    made: list[exp.Expr] = []
    for at, field in enumerate(kind.expressions, start=1):
        named = isinstance(field, exp.ColumnDef)
        place = exp.Literal.string(field.name) if named else exp.Literal.number(at)
        found = _call("struct_extract" if named else "struct_extract_at", value, place)
        inner = field.args["kind"] if named else field
        shown = exp.Coalesce(this=_text(found, inner, depth), expressions=[exp.Literal.string("null")])
        name = exp.Literal.string(json.dumps(field.name if named else f"f{at}", ensure_ascii=False) + ":")
        made.append(exp.DPipe(this=name, expression=shown))
    absent = exp.If(this=exp.Is(this=value.copy(), expression=exp.Null()), true=exp.Null())
    return exp.Case(ifs=[absent], default=_concatenated("{", ",", made, "}"))


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
