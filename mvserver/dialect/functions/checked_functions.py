"""Functions and constants at whose edges DuckDB answers something else than PostgreSQL, without an error.

What is rewritten here needs no types; what does is in ``operand_types``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.functions.arrays import array_literal
from mvserver.errors import SqlError
from mvserver.types import intervals

NUMERIC_DIGITS_MAX = 38


def _call(name: str, *arguments: exp.Expr | None) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[part.copy() for part in arguments if part is not None])


_BY_NODE: dict[type[exp.Expr], str] = {
    exp.Acos: "_acos", exp.Acosh: "_acosh", exp.Asin: "_asin", exp.Atanh: "_atanh", exp.Cos: "_cos", exp.Cot: "_cot",
    exp.Sin: "_sin", exp.Tan: "_tan", exp.TimeFromParts: "_time_made",
    exp.TimestampFromParts: "_timestamp_made", exp.UnixToTime: "_instant", exp.Factorial: "_factorial",
    exp.Exp: "_exp", exp.ArrayRemove: "array_remove",
}  # fmt: skip
"""Calls for which a macro of the same arguments stands."""
_BY_NAME = {
    "make_date": "_date_made", "make_timestamptz": "_timestamptz_made",
    "parse_ident": "_parse_ident", "txid_current": "_txid",
}  # fmt: skip
"""Those that the parser has no node for."""


_ARGUMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("_acos", "_acosh", "_asin", "_atanh", "_cos", "_cot", "_sin", "_tan", "_instant"), ("DOUBLE",)),
    "_width_bucket": ("DOUBLE", "DOUBLE", "DOUBLE", "INTEGER"), "_date_made": ("INTEGER",) * 3,
    "_time_made": ("INTEGER", "INTEGER", "DOUBLE"), "_timestamp_made": (*("INTEGER",) * 5, "DOUBLE"),
    "_timestamptz_made": (*("INTEGER",) * 5, "DOUBLE", "TEXT"),
}  # fmt: skip
"""DuckDB's types of arguments: a macro does not tell them to a parameter of unknown type."""


def _checked(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    kinds = _ARGUMENTS.get(name, ())
    typed = [
        exp.cast(part.copy(), kinds[at], dialect="duckdb")
        if at < len(kinds) and isinstance(part, exp.Parameter)
        else part
        for at, part in enumerate(arguments)
    ]
    return _call(name, *typed)


def edged(node: exp.Func) -> exp.Expr | None:
    """What stands for the function; None where DuckDB's own is right."""
    if isinstance(node, exp.Pow):
        return _call("_power", *map(_double, (node.this, node.expression)))
    if type(node) in _BY_NODE:
        arguments = [node.args[key] for key in node.arg_types if isinstance(node.args.get(key), exp.Expr)]
        return _checked(_BY_NODE[type(node)], arguments)
    if isinstance(node, exp.Anonymous) and node.name.lower() in _BY_NAME:
        return _checked(_BY_NAME[node.name.lower()], node.expressions)
    if isinstance(node, exp.WidthBucket):
        return _bucket(node)
    if isinstance(node, exp.Normalize):
        return _normal_form(node)
    if isinstance(node, exp.Substring):
        return _bounded_substring(node)
    if isinstance(node, exp.SplitPart):
        return _call("_split_part", node.this, node.args.get("delimiter"), node.args.get("part_index"))
    if isinstance(node, exp.StringToArray):
        null = node.args.get("null")
        name = "_string_to_array" if null is None else "_string_to_array_but"
        return _call(name, node.this, node.expression, null)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.IntDiv):  # DuckDB's // of decimals has a fraction
        return _call("div", *map(_numeric, (node.this.left, node.this.right)))
    if isinstance(node, exp.LogicalAnd | exp.LogicalOr) and isinstance(node.this, exp.Distinct):
        node.set("this", node.this.expressions[0])  # values that are there twice change nothing
        return None
    if isinstance(node, exp.ArrayToString):
        return _items_joined(node)
    if isinstance(node, exp.Chr):
        return _call("_chr", *node.expressions)
    if isinstance(node, exp.Overlay):
        return _overlaid(node)
    if isinstance(node, exp.RegexpReplace) and node.args.get("position") is not None:
        return _call(
            "_regexp_replace_from", node.this, node.expression, node.args["replacement"], node.args["position"]
        )
    if isinstance(node, exp.Pad) and not _is_text_with_characters(node.args.get("fill_pattern")):
        name = "_lpad" if node.args.get("is_left") else "_rpad"
        return _call(name, node.this, node.expression, node.args["fill_pattern"])
    if isinstance(node, exp.NthValue):
        node.set("offset", _call("_nth", node.args["offset"]))
        return None
    if isinstance(node, exp.ArrayConcat) and len(node.expressions) == 1:
        return _call("_array_cat", node.this, *node.expressions)
    if isinstance(node, exp.GroupConcat) and is_null(node.args.get("separator")):
        node.set("separator", exp.Literal.string(""))
        return node
    if isinstance(node, exp.Grouping):
        return _int4(node)
    if isinstance(node, exp.Anonymous) and node.name.lower() == "row_to_json":
        return _row_to_json(node)
    return None


def _bucket(node: exp.WidthBucket) -> exp.Expr:
    """Between two bounds, or between those of an array."""
    arguments = [node.args[key] for key in node.arg_types if isinstance(node.args.get(key), exp.Expr)]
    bounds = node.args.get("threshold")
    if bounds is None and len(arguments) == 4:
        return _checked("_width_bucket", arguments)
    if bounds is None:
        raise SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"function width_bucket with {len(arguments)} arguments does not exist",
            hint="No function matches the given name and argument types.",
        )
    return _call("_width_bucket_of", node.this, array_literal(bounds) or bounds)


def _normal_form(node: exp.Normalize) -> exp.Expr:
    form = node.args.get("form")
    name = form.name.upper() if isinstance(form, exp.Expr) else "NFC"
    if name != "NFC":
        raise _refused(f"the normal form {name}", "Only NFC is supported.")
    return _call("nfc_normalize", node.this)


def _double(operand: exp.Expr) -> exp.Expr:
    return exp.cast(operand.copy(), "DOUBLE", dialect="duckdb") if operand.is_string else operand


def _numeric(operand: exp.Expr) -> exp.Expr:
    return exp.cast(operand.copy(), "DECIMAL(38, 10)", dialect="duckdb") if operand.is_string else operand


def is_null(node: exp.Expr | None) -> bool:
    """Whether it is written as NULL, also with a cast."""
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    return isinstance(node, exp.Null)


def _int4(node: exp.Expr) -> exp.Expr:
    return exp.cast(node.copy(), "INT", dialect="duckdb")


def _bounded_substring(node: exp.Substring) -> exp.Expr | None:
    start, length = node.args.get("start"), node.args.get("length")
    if start is None:
        return None
    if isinstance(start, exp.Literal) and start.is_string and not start.name.strip().isdigit():
        if length is not None:
            raise _refused("substring with an escape character", "Use substring(text FROM pattern), or regexp_match.")
        return _call("list_extract", _call("regexp_match", node.this, start), exp.Literal.number(1))
    if _is_natural(start, least=1) and (length is None or _is_natural(length, least=0)):
        return None
    return _call("_substring", node.this, start, length)


def _items_joined(node: exp.ArrayToString) -> exp.Expr | None:
    """DuckDB's own takes a constant between the items."""
    if is_null(node.expression):
        return exp.cast(exp.null(), "TEXT", dialect="duckdb")
    if isinstance(node.expression, exp.Literal | exp.Parameter):
        return None
    return _call("_array_joined", node.this, node.expression, node.args.get("null") or exp.null())


def _overlaid(node: exp.Overlay) -> exp.Expr:
    """Without FOR as many characters are replaced as are put in."""
    length = node.args.get("for_")
    return _call("_overlay" if length else "_overlay_all", node.this, node.expression, node.args["from_"], length)


def _is_text_with_characters(fill: exp.Expr | None) -> bool:
    bare = fill.unnest() if fill is not None else None
    while isinstance(bare, exp.Cast):
        bare = bare.this.unnest()
    return fill is None or (isinstance(bare, exp.Literal) and bool(bare.name))


def _is_natural(node: exp.Expr, *, least: int) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() and int(node.name) >= least


def _row_to_json(node: exp.Anonymous) -> exp.Expr | None:
    """Fields of a row without names are f1, f2 …"""
    row = node.expressions[0].unnest() if len(node.expressions) == 1 else None
    if isinstance(row, exp.Tuple) or (isinstance(row, exp.Anonymous) and row.name.lower() == "row"):
        fields = [
            exp.PropertyEQ(this=exp.to_identifier(f"f{number}"), expression=value.copy())
            for number, value in enumerate(row.expressions, start=1)
        ]
        return exp.Anonymous(this="to_json", expressions=[exp.Struct(expressions=fields)])
    return None


def plain_number(text: str) -> str | None:
    """A number with an exponent, ``1.23e3``, as digits; None where numeric cannot hold it, or it is no number."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        return None
    if not value.is_finite() or abs(value.adjusted()) > NUMERIC_DIGITS_MAX:
        return None
    shown = f"{value:f}"
    return shown if sum(char.isdigit() for char in shown) <= NUMERIC_DIGITS_MAX else None


def adapt_constant(node: exp.Expr) -> exp.Expr | None:
    """A number with an exponent is numeric in PostgreSQL; bit strings are refused."""
    if isinstance(node, exp.BitString | exp.HexString):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "bit strings are not supported",
            hint="Write bytes as '\\x1f'::bytea, or a number.",
        )
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return _wide(node)
    if isinstance(node, exp.Literal) and not node.is_string and "e" in node.name.lower():
        if isinstance(node.parent, exp.Cast) or (
            isinstance(node.parent, exp.Neg) and isinstance(node.parent.parent, exp.Cast)
        ):
            return None
        digits = plain_number(node.name)
        if digits is not None:
            kind = f"DECIMAL({NUMERIC_DIGITS_MAX}, {len(digits.partition('.')[2])})"
            return exp.cast(exp.Literal.string(digits), kind, dialect="duckdb")
        if math.isinf(float(node.name)):
            raise SqlError(
                sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
                "value overflows numeric format",
                hint=f"A numeric has at most {NUMERIC_DIGITS_MAX} digits.",
            )
    return None


_BIGINT_MAX = 2**63 - 1
_INTEGER_MAX = 2**31 - 1


def least_integer(node: exp.Neg) -> exp.Expr | None:
    """``-2147483648`` is an integer; DuckDB since 2.0.1 takes it for the negative of a bigint."""
    number = node.this
    if not isinstance(number, exp.Literal) or number.is_string or number.name != str(_INTEGER_MAX + 1):
        return None
    return None if isinstance(node.parent, exp.Cast) else exp.cast(node.copy(), "INT", dialect="duckdb")


def _wide(node: exp.Literal) -> exp.Expr | None:
    """A whole number beyond bigint is numeric; DuckDB has other types for it, which its functions make doubles of."""
    value = int(node.name) if len(node.name) <= NUMERIC_DIGITS_MAX else 0
    least = isinstance(node.parent, exp.Neg) and value == _BIGINT_MAX + 1
    if value <= _BIGINT_MAX or least or isinstance(node.parent, exp.Cast | exp.Limit | exp.Offset | exp.Fetch):
        return None
    return exp.cast(exp.Literal.string(node.name), f"DECIMAL({len(node.name.lstrip('0'))}, 0)", dialect="duckdb")


def interval_quotient(node: exp.Div) -> exp.Expr | None:
    """``interval '1 day' / 2``: a slash divides whole numbers here, which intervals have not."""
    if not _is_interval(node.this):
        return None
    # Not copies: what is in them is still to be adapted.
    return exp.Anonymous(this="_interval_quotient", expressions=[node.this, node.expression])


def interval_sum(node: exp.Add | exp.Sub) -> exp.Expr | None:
    """``interval '1 day' + '2 hours'``: the text beside an interval is one."""
    for text, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(text, exp.Literal) and text.is_string and _is_interval(other):
            text.replace(exp.Interval(this=exp.Literal.string(intervals.written(text.name))))
            return node
    return None


def _is_interval(node: exp.Expr) -> bool:
    bare = node.unnest()
    if isinstance(bare, exp.Add | exp.Sub):
        return _is_interval(bare.this) and _is_interval(bare.expression)
    return isinstance(bare, exp.Interval) or (isinstance(bare, exp.Cast) and bare.to.is_type(exp.DType.INTERVAL))


_UNIT_WORDS = frozenset({"year", "month", "day", "hour", "minute", "second"})


def interval_constant(node: exp.Interval) -> exp.Expr | None:
    """``interval '1 mon'``, ``'P1Y'``, ``'1-2'``: PostgreSQL's spellings in the one that DuckDB reads."""
    if not (isinstance(node.this, exp.Literal) and node.this.is_string):
        return None
    unit = node.unit.name.lower() if node.unit is not None else ""
    if unit in _UNIT_WORDS:
        return None
    return exp.Interval(this=exp.Literal.string(intervals.written(f"{node.this.name} {unit}".strip())))


def _refused(what: str, hint: str) -> SqlError:
    return SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"{what} is not supported", hint=hint)
