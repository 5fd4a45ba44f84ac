"""Values as the texts that PostgreSQL writes, by their types: of rows ``(1,"a b",)``, of arrays ``{1,NULL}``."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mvserver.dialect.functions.to_char import call
from mvserver.dialect.functions.volatile import bound_once, draws
from mvserver.dialect.typing.duck_types import fields_of, is_fraction

_TEXT_OF: dict[str, str] = {
    "DOUBLE": "_float8_out", "FLOAT": "_float4_out", "INTERVAL": "_interval_out", "BLOB": "_bytea_out",
    "DATE": "_time_out", "TIMESTAMP": "_time_out", "TIMESTAMP WITH TIME ZONE": "_instant_out",
    "DOUBLE[]": "_float8_array_out", "FLOAT[]": "_float4_array_out", "BOOLEAN[]": "_bool_array_out",
    "BLOB[]": "_bytea_array_out", "INTERVAL[]": "_interval_array_out",
    "DATE[]": "_time_array_out", "TIMESTAMP[]": "_time_array_out", "TIMESTAMP WITH TIME ZONE[]": "_instant_array_out",
}  # fmt: skip
"""Macros that write a value of DuckDB's type as PostgreSQL does."""


def text_of(value: exp.Expr, kind: str) -> exp.Expr | None:
    """The value as PostgreSQL writes it, where DuckDB writes it in another way."""
    macro = _text_macro(kind)
    if macro is not None:
        return call(macro, value.copy())
    if kind.startswith(("STRUCT(", "TUPLE(")):
        return _rows_text(value, kind, 0)
    depth = (len(kind) - len(kind.rstrip("[]"))) // 2
    if depth > 1 and kind.endswith("]"):
        return _nested_text(value.copy(), kind, depth)
    if depth:
        return call("_array_out", value.copy())
    return None


def _rows_text(value: exp.Expr, kind: str, depth: int) -> exp.Expr:
    """Of a row, or of an array of rows."""
    if kind.endswith("]"):
        item = exp.to_identifier(f"_row{depth}", quoted=True)
        shown = call("_array_item", _rows_text(exp.Column(this=item.copy()), kind[: kind.rindex("[")], depth + 1))
        items = call("list_transform", value.copy(), exp.Lambda(this=shown, expressions=[item]))
        return call("_record_text", exp.Literal.string("{"), items, exp.Literal.string("}"))
    bare, kinds = value.unnest(), [inner for _, inner in fields_of(kind)]
    written = isinstance(bare, exp.Tuple) or (isinstance(bare, exp.Anonymous) and bare.name.lower() == "row")
    if not written and (bare.find(exp.Query) is not None or draws(bare)):  # all fields are of one row
        return bound_once(value, f"_value{depth}", lambda once: _rows_text(once, kind, depth))
    places = (exp.Literal.number(at) for at in range(1, len(kinds) + 1))
    fields = bare.expressions if written else [call("struct_extract_at", value.copy(), place) for place in places]
    item = exp.to_identifier(f"_field{depth}", quoted=True)
    shown = call("_record_item", exp.Column(this=item.copy()))
    items = call("list_transform", _field_texts(fields, kinds, depth), exp.Lambda(this=shown, expressions=[item]))
    row = call("_row_out", items)
    if written:
        return row
    return exp.Case(ifs=[exp.If(this=exp.Is(this=value.copy(), expression=exp.Null()), true=exp.Null())], default=row)


def _field_texts(fields: Sequence[exp.Expr], kinds: Sequence[str], depth: int) -> exp.Expr:
    """A list of them. DuckDB puts in a macro wherever it is called, which takes it long: those of one type are a list,
    for which it is called once."""
    places: dict[str, list[int]] = {}
    for at, kind in enumerate(kinds):
        places.setdefault(kind if _has_macro(kind) else "", []).append(at)
    lists: list[exp.Expr] = []
    for kind, group in places.items():
        if kind:
            item = exp.to_identifier(f"_field{depth}", quoted=True)
            shown = _item_text(exp.Column(this=item.copy()), kind)
            values = call("list_value", *(fields[at].copy() for at in group))  # ARRAY (query) would be its rows
            lists.append(call("list_transform", values, exp.Lambda(this=shown, expressions=[item])))
        else:
            texts = [_field_text(fields[at].copy(), kinds[at], depth) for at in group]
            lists.append(exp.Array(expressions=texts))
    if len(lists) == 1:
        return lists[0]
    order = [at for group in places.values() for at in group]
    numbers = [exp.Literal.number(order.index(at) + 1) for at in range(len(order))]
    return call("list_select", call("list_concat", *lists), exp.Array(expressions=numbers))


def _has_macro(kind: str) -> bool:
    return not kind.startswith(("STRUCT(", "TUPLE(")) and (
        kind == "BOOLEAN" or kind.endswith("]") or _text_macro(kind) is not None
    )


def _item_text(item: exp.Expr, kind: str) -> exp.Expr | None:
    return call("_bool_out", item) if kind == "BOOLEAN" else text_of(item, kind)


def _field_text(field: exp.Expr, kind: str, depth: int) -> exp.Expr:
    """Of one without a macro."""
    if kind.startswith(("STRUCT(", "TUPLE(")):
        return _rows_text(field, kind, depth)
    return exp.cast(field, "TEXT", dialect="duckdb")


def _text_macro(kind: str) -> str | None:
    if is_fraction(kind.removesuffix("[]")):
        return "_fraction_array_out" if kind.endswith("[]") else "_fraction_out"
    return _TEXT_OF.get(kind)


def _nested_text(value: exp.Expr, kind: str, depth: int) -> exp.Expr:
    """``{{1,2},{3,4}}``: the innermost arrays by their own macro, the others joined."""
    if depth == 1:
        return call(_text_macro(f"{kind.rstrip('[]')}[]") or "_array_out", value)
    row = exp.to_identifier(f"_row{depth}", quoted=True)
    inner = _nested_text(exp.Column(this=row.copy()), kind, depth - 1)
    rows = call("list_transform", value, exp.Lambda(this=inner, expressions=[row]))
    joined = call("array_to_string", rows, exp.Literal.string(","))
    return exp.Paren(
        this=exp.DPipe(
            this=exp.DPipe(this=exp.Literal.string("{"), expression=joined), expression=exp.Literal.string("}")
        )
    )
