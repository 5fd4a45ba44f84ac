"""Values within documents that DuckDB writes there in another form: ``2024-02-29T23:59:59``, bytes, floats."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

_MACROS = {
    exp.DType.TIMESTAMP: "_json_timestamp",
    exp.DType.TIMESTAMPNTZ: "_json_timestamp",
    exp.DType.TIMESTAMPTZ: "_json_timestamptz",
    exp.DType.DOUBLE: "_json_float8",
    exp.DType.FLOAT: "_json_float4",
    exp.DType.VARBINARY: "_bytea_out",
    exp.DType.INTERVAL: "_interval_out",
}
_WORDS = ("TIMESTAMP", "DOUBLE", "FLOAT", "BLOB", "INTERVAL")
"""Of DuckDB's types that have one of them."""
_OF_VALUES = frozenset({"to_json", "to_jsonb", "json_array", "array_to_json"})
_OF_PAIRS = frozenset({"json_object", "json_group_object"})


def concerns(node: exp.Expr) -> bool:
    if isinstance(node, exp.JSONObjectAgg | exp.JSONBObjectAgg):
        return True
    return isinstance(node, exp.Anonymous) and node.name.lower() in _OF_VALUES | _OF_PAIRS


def rewritten(node: exp.Expr, type_of: Callable[[exp.Expr], str]) -> exp.Expr | None:
    """The node with such values as texts, in place; None where it has none."""
    changed = False
    for value in _values(node):
        shown = _shown(value, type_of(value))
        if shown is not None:
            value.replace(shown)
            changed = True
    return node if changed else None


def _values(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.JSONBObjectAgg):
        return [node.expression]
    pairs = isinstance(node, exp.JSONObjectAgg) or node.name.lower() in _OF_PAIRS
    return list(node.expressions[1::2] if pairs else node.expressions)


def _shown(value: exp.Expr, kind: str) -> exp.Expr | None:
    wanted = any(word in kind for word in _WORDS)
    return _text_of(value, exp.DataType.build(kind, dialect="duckdb"), 0) if wanted else None


def _text_of(value: exp.Expr, kind: exp.DataType, depth: int) -> exp.Expr | None:
    """None where the type holds no such value."""
    if kind.this in _MACROS:
        return _call(_MACROS[kind.this], value)
    if kind.this in (exp.DType.ARRAY, exp.DType.LIST):
        item = exp.to_identifier(f"_item{depth}", quoted=True)
        shown = _text_of(exp.Column(this=item.copy()), kind.expressions[0], depth + 1)
        return shown and _call("list_transform", value, exp.Lambda(this=shown, expressions=[item]))
    if kind.this == exp.DType.STRUCT:
        return _fields(value, kind, depth)
    return None


def _fields(value: exp.Expr, kind: exp.DataType, depth: int) -> exp.Expr | None:
    made, changed = [], False
    for field in kind.expressions:
        found = _call("struct_extract", value, exp.Literal.string(field.name))
        shown = _text_of(found, field.args["kind"], depth)
        changed = changed or shown is not None
        made.append(exp.PropertyEQ(this=exp.to_identifier(field.name, quoted=True), expression=shown or found))
    if not changed:
        return None
    absent = exp.If(this=exp.Is(this=value.copy(), expression=exp.Null()), true=exp.Null())
    return exp.Case(ifs=[absent], default=exp.Struct(expressions=made))


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[part.copy() for part in arguments])
