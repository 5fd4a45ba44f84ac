"""A call as PostgreSQL sees it: the function's name and its arguments in their order, of the parser's own node."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from mvserver.dialect.guard import function_name
from mvserver.sql.pull_parser import CALLED

Call = tuple[str, list[exp.Expr]]


def _parts(node: exp.Expr, *keys: str) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for key in keys:
        value = node.args.get(key)
        if isinstance(value, list):
            found += value
        elif isinstance(value, exp.Expr):
            found.append(value)
    return found


def _all(node: exp.Expr) -> list[exp.Expr]:
    return _parts(node, *node.arg_types)


def _written(node: exp.Expr, usual: str) -> str:
    """The name as it was written, of those that share a node."""
    called = node.meta.get(CALLED)
    return usual if called is None else str(called[0])


def _trim(node: exp.Expr) -> Call:
    side = str(node.args.get("position") or "").upper()
    return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "btrim"), _parts(node, "this", "expression")


def _overlaps(node: exp.Expr) -> Call:
    return "overlaps", [part for period in (node.this, node.expression) for part in period.expressions]


_NAMES: Mapping[type[exp.Expr], str] = {
    exp.Pow: "power", exp.ArraySize: "array_length", exp.StringToArray: "string_to_array",
    exp.ArrayConcat: "array_cat", exp.UnixToTime: "to_timestamp", exp.TimestampFromParts: "make_timestamp",
    exp.TimeFromParts: "make_time", exp.Explode: "unnest",
    exp.ExplodingGenerateSeries: "generate_series", exp.GenerateSeries: "generate_series", exp.Rand: "random",
    exp.Hex: "to_hex", exp.LogicalOr: "bool_or", exp.LogicalAnd: "bool_and", exp.JSONArrayAgg: "json_agg",
    exp.Mod: "mod", exp.BitLength: "bit_length",
}  # fmt: skip

_CALLS: Mapping[type[exp.Expr], Callable[[exp.Expr], Call]] = {
    exp.StrPosition: lambda node: ("strpos", _parts(node, "this", "substr")),
    exp.Pad: lambda node: (
        "lpad" if node.args.get("is_left") else "rpad", _parts(node, "this", "expression", "fill_pattern")
    ),
    exp.Substring: lambda node: (_written(node, "substring"), _parts(node, "this", "start", "length")),
    exp.Unnest: lambda node: ("unnest", _parts(node, "expressions")),
    exp.IntDiv: lambda node: ("div", _parts(node, "this", "expression")),
    exp.ArrayPrepend: lambda node: ("array_prepend", _parts(node, "expression", "this")),
    exp.Trim: _trim,
    exp.TimestampTrunc: lambda node: ("date_trunc", _parts(node, "unit", "this", "zone")),
    exp.AtTimeZone: lambda node: ("timezone", _parts(node, "zone", "this")),
    exp.Extract: lambda node: (
        "date_part" if node.meta.get("date_part") else "extract", _parts(node, "this", "expression")
    ),
    exp.Overlaps: _overlaps,
    exp.Encode: lambda node: ("encode", _parts(node, "this", "charset")),
    exp.Decode: lambda node: ("decode", _parts(node, "this", "charset")),
    exp.Format: lambda node: ("format", _parts(node, "this", "expressions")),
    exp.Overlay: lambda node: ("overlay", _parts(node, "this", "expression", "from_", "for_")),
    exp.SHA2Digest: lambda node: ("sha256", _parts(node, "this")),
    exp.Pow: lambda node: ("power", _parts(node, "this", "expression")),
    exp.RegexpReplace: lambda node: (
        "regexp_replace", _parts(node, "this", "expression", "replacement", "position", "occurrence", "modifiers")
    ),
    exp.WidthBucket: lambda node: ("width_bucket", _parts(node, "this", "min_value", "max_value", "num_buckets")),
}  # fmt: skip


def call_of(node: exp.Expr) -> Call | None:
    """None for what is no call, or one whose arguments are none of PostgreSQL's."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        return call_of(node.expression)  # pg_catalog.f(x)
    made = _CALLS.get(type(node))
    if made is not None:
        return made(node)
    if isinstance(node, exp.GroupConcat):
        first = _argument(node.this)
        separator = node.args.get("separator")
        return "string_agg", [first, *([] if separator is None else [separator])]
    if not isinstance(node, exp.Func):
        return None
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return node.name.lower(), list(node.expressions)
    return _NAMES.get(type(node), function_name(node)), [_argument(part) for part in _all(node)]


def _argument(part: exp.Expr) -> exp.Expr:
    """Of an aggregate, without its DISTINCT and ORDER BY."""
    while isinstance(part, exp.Order | exp.Distinct) and (part.this or part.expressions):
        part = part.this or part.expressions[0]
    return part
