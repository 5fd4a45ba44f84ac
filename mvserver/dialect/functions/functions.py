"""Functions that PostgreSQL and DuckDB spell differently or answer with other types."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.functions import json_operators, regular_expressions, to_char
from mvserver.dialect.functions.bytea_texts import hexadecimal
from mvserver.dialect.functions.casts import SHOWN_AS, rounded_time
from mvserver.dialect.functions.checked_functions import edged, is_null
from mvserver.dialect.functions.from_text import from_text
from mvserver.dialect.functions.intervals import make_interval
from mvserver.dialect.functions.json_operators import JSON_PATHS
from mvserver.dialect.functions.to_number import number_of
from mvserver.dialect.guard import function_name
from mvserver.errors import SqlError
from mvserver.pgcatalog.session_functions import SessionFacts, replace_function
from mvserver.sql.pull_functions import table
from mvserver.sql.pull_parser import CALLED
from mvserver.types import oids


def adapt_function(node: exp.Expr, facts: SessionFacts) -> exp.Expr | None:
    assert isinstance(node, exp.Func)  # noqa: S101 - chosen by type
    name = function_name(node)
    replaced = replace_function(name, _arguments(node), facts)
    if replaced is not None:
        if name in _NAMES:
            replaced.meta[SHOWN_AS] = (oids.NAME, -1)
        return replaced
    expression = regular_expressions.adapt(node)
    if expression is not None:
        return expression
    strict = edged(node)
    if strict is not None:
        for inner in list(strict.find_all(exp.Anonymous)):
            matched = regular_expressions.adapt(inner)  # what substring(text FROM pattern) has become
            if matched is not None:
                inner.replace(matched)
        return strict
    if isinstance(node, exp.Anonymous):
        special = _SPECIAL.get((name, len(node.expressions)))
        replacement = special(node) if special is not None else None
        if replacement is not None:
            return replacement
        if name == "format" and node.expressions:  # with a schema before its name
            return _format(node.expressions[0], node.expressions[1:])
        if name == "make_interval":
            return make_interval(node)
        if name in ("json_build_object", "jsonb_build_object"):
            for key in node.expressions[::2]:
                if not (isinstance(key, exp.Literal) and key.is_string):
                    key.replace(exp.cast(key.copy(), "TEXT", dialect="duckdb"))
        if name in JSON_PATHS:
            return json_operators.at_path(name, node.expressions)
        if name in ("num_nulls", "num_nonnulls"):
            return _counted(node.expressions, nulls=name == "num_nulls")
        if name == "array_position":
            return exp.Anonymous(this="list_position", expressions=node.expressions)
        known = table().get(name)
        node.set("this", name if known is None else known.duckdb or name)
    if isinstance(node, exp.ArraySize) and node.args.get("expression") is not None:  # array_length(array, dimension)
        return exp.Anonymous(this="_array_length", expressions=[node.this.copy(), node.expression.copy()])
    if isinstance(node, _INT4_FUNCTIONS):
        return exp.cast(node.copy(), "INT", dialect="duckdb") if not isinstance(node.parent, exp.Cast) else None
    if isinstance(node, exp.Extract):
        return _extract(node)
    if isinstance(node, exp.Encode | exp.Decode):
        return _encoding(node)
    if isinstance(node, exp.ToNumber):
        return number_of(node.this, _constant("to_number", node.args["format"]))
    if isinstance(node, exp.Anonymous) and name == "trim_scale":
        return _trim_scale(node)
    if isinstance(node, exp.Hex):
        return exp.Anonymous(this="to_hex", expressions=[node.this.copy()])
    if isinstance(node, exp.Format):
        return _format(node.this, node.expressions)
    if isinstance(node, exp.TimestampTrunc):
        _check_unit(node)
        return None
    if isinstance(node, exp.Sqrt | exp.Ln | exp.Log):
        return _defined(node)
    if isinstance(node, exp.CurrentTimestamp):
        return _to_digits(node, exp.Anonymous(this="_now", expressions=[]), "timestamptz")
    if isinstance(node, exp.CurrentDate):
        return exp.cast(exp.Anonymous(this="_now", expressions=[]), "DATE", dialect="duckdb")
    if isinstance(node, exp.Localtimestamp):
        local = exp.cast(exp.Anonymous(this="_now", expressions=[]), "TIMESTAMP", dialect="duckdb")
        return _to_digits(node, local, "timestamp")
    return None


def _to_digits(node: exp.Expr, now: exp.Expr, kind: str) -> exp.Expr:
    """``current_timestamp(0)``: with so many digits of the second's fraction."""
    digits = node.this
    return rounded_time(now, kind, int(digits.name)) if isinstance(digits, exp.Literal) and digits.is_int else now


_NAMES = frozenset({
    "current_catalog", "current_database", "current_role", "current_schema", "current_user", "session_user", "user",
})  # fmt: skip
"""Functions whose result is of type name."""
_INT4_FUNCTIONS = (exp.Length, exp.StrPosition, exp.ArraySize, exp.BitLength)


def _defined(node: exp.Sqrt | exp.Ln | exp.Log) -> exp.Expr:
    """DuckDB answers NaN or minus infinity where PostgreSQL raises an error."""
    if isinstance(node, exp.Sqrt):
        return exp.Sqrt(this=exp.Anonymous(this="_not_negative", expressions=[node.this.copy()]))
    last = node.args.get("expression")
    positive = exp.Anonymous(this="_positive", expressions=[(last or node.this).copy()])
    if isinstance(node, exp.Ln):
        return exp.Ln(this=positive)
    if last is None or node.meta.get(CALLED, ("log",))[0] == "log10":
        return exp.Anonymous(this="log", expressions=[positive])
    base = exp.Anonymous(this="_positive", expressions=[node.this.copy()])
    return exp.Anonymous(this="log", expressions=[base, positive])


_EXTRACTED = frozenset({
    "century", "day", "decade", "dow", "doy", "epoch", "hour", "isodow", "isoyear", "julian", "microseconds",
    "millennium", "milliseconds", "minute", "month", "quarter", "second", "timezone", "timezone_hour",
    "timezone_minute", "week", "year",
})  # fmt: skip
_FIELD_SPELLINGS = {"ms": "milliseconds", "us": "microseconds", "millisecond": "milliseconds",
                    "microsecond": "microseconds", "centuries": "century", "millennia": "millennium"}  # fmt: skip
_FRACTIONAL = {"epoch": "_extract_epoch", "second": "_extract_second", "milliseconds": "_extract_milliseconds"}


def _extract(node: exp.Extract) -> exp.Expr:
    """PostgreSQL's extract is numeric with the fraction of the second, its date_part double precision."""
    part = node.this.name.lower()
    part = _FIELD_SPELLINGS.get(part, part)
    part = part.removesuffix("s") if part not in _EXTRACTED else part
    if part not in _EXTRACTED:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'unit "{node.this.name.lower()}" not recognized for type timestamp without time zone',
        )
    if isinstance(node.parent, exp.Cast) and part not in _FRACTIONAL:
        return to_char.field(part, node.expression)
    if part in _FRACTIONAL:
        value: exp.Expr = exp.Anonymous(this=_FRACTIONAL[part], expressions=[node.expression.copy()])
        kind = "DECIMAL(38, 3)" if part == "milliseconds" else "DECIMAL(38, 6)"
    else:
        value = to_char.field(part, node.expression)
        kind = "DECIMAL(38, 0)"
    if node.meta.get("date_part"):
        kind = "DOUBLE"
    return exp.cast(value, kind, dialect="duckdb")


def _encoding(node: exp.Encode | exp.Decode) -> exp.Expr:
    """encode(bytea, 'hex' | 'base64') and decode(text, ...), which sqlglot takes for character sets."""
    charset = node.args.get("charset")
    if isinstance(charset, exp.Expr) and is_null(charset):
        return exp.cast(exp.null(), "TEXT" if isinstance(node, exp.Encode) else "BLOB", dialect="duckdb")
    form = charset.name.lower() if isinstance(charset, exp.Expr) else ""
    names = {
        (True, "hex"): "_encode_hex", (True, "base64"): "_encode_base64", (False, "hex"): "_decode_hex",
        (False, "base64"): "_decode_base64",
    }  # fmt: skip
    name = names.get((isinstance(node, exp.Encode), form))
    if form == "escape":
        raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, "the encoding escape is not supported", hint="Use hex.")
    if name is None:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'unrecognized encoding: "{form}"')
    operand = node.this.copy()
    if isinstance(node, exp.Encode) and isinstance(operand, exp.Literal):
        operand = exp.cast(exp.Literal.string(hexadecimal(operand.name)), "BLOB", dialect="duckdb")
    return exp.Anonymous(this=name, expressions=[operand])


def _arguments(node: exp.Func) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [part for part in node.iter_expressions() if isinstance(part, exp.Expr)]


def _trim_scale(node: exp.Anonymous) -> exp.Expr:
    """The zeros are seen in a column of the result, and in a text; the value is the same without them."""
    (value,) = node.expressions
    bare = value.unnest()
    if isinstance(bare, exp.Literal) and not bare.is_string and "e" not in bare.name.lower():
        digits = bare.name.rstrip("0").rstrip(".") if "." in bare.name else bare.name
        return exp.cast(exp.Literal.string(digits), f"DECIMAL(38, {len(digits.partition('.')[2])})", dialect="duckdb")
    around = node.parent
    text = isinstance(around, exp.Cast) and around.to.is_type(*exp.DataType.TEXT_TYPES)
    item = around if isinstance(around, exp.Alias) else node
    select = item.parent
    listed = isinstance(select, exp.Select) and item.arg_key == "expressions" and select.parent_select is None
    if not text and not (listed and select is not None and not _is_sorted(select)):
        return exp.Paren(this=value.copy())
    shown = exp.Anonymous(this="_trimmed", expressions=[value.copy()])
    shown.meta[SHOWN_AS] = (oids.NUMERIC, -1)
    return shown


def _is_sorted(select: exp.Expr) -> bool:
    """Whether its columns are compared with each other, which their texts cannot be."""
    return bool(select.args.get("order") or select.args.get("distinct"))


def _constant(name: str, pattern: exp.Expr) -> str:
    bare = pattern.unnest()
    if isinstance(bare, exp.Cast):
        bare = bare.this
    if not (isinstance(bare, exp.Literal) and bare.is_string):
        raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"{name} is supported with a constant pattern only")
    return bare.name


def _to_char(node: exp.Anonymous) -> exp.Expr:
    """A mark that ``typed_rewrites`` replaces: numbers, times and intervals have other patterns."""
    value, pattern = node.expressions
    return exp.Anonymous(this="_to_char", expressions=[value.copy(), exp.Literal.string(_constant("to_char", pattern))])


def _to_date(node: exp.Anonymous) -> exp.Expr:
    text, pattern = node.expressions
    name = node.name.lower()
    target = "DATE" if name == "to_date" else "TIMESTAMPTZ"
    return exp.cast(from_text(text, _constant(name, pattern), name), target, dialect="duckdb")


def _convert_from(node: exp.Anonymous) -> exp.Expr:
    """convert_from(bytea, 'UTF8') and convert_to(text, 'UTF8')."""
    name = node.name.lower()
    encoding = _constant(name, node.expressions[1])
    if encoding.upper().replace("-", "").replace("_", "") not in ("UTF8", "UNICODE"):
        raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"{name} of encodings other than UTF8 is not supported")
    spelled = "decode" if name == "convert_from" else "encode"
    return exp.Anonymous(this=spelled, expressions=[node.expressions[0].copy()])


_FORMAT = re.compile(r"%(?:(\d+)\$)?([sIL%])")


def _format(text: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    """format() with a constant pattern of %s, %I, %L and %%."""
    pattern = _constant("format", text)
    parts: list[exp.Expr] = []
    end = taken = 0
    for match in _FORMAT.finditer(pattern):
        parts.append(exp.Literal.string(pattern[end : match.start()]))
        end = match.end()
        if match[2] == "%":
            parts.append(exp.Literal.string("%"))
            continue
        taken = int(match[1]) if match[1] else taken + 1
        if not 0 < taken <= len(arguments):
            raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, "too few arguments for format()")
        shown = exp.cast(arguments[taken - 1].copy(), "TEXT", dialect="duckdb")
        if match[2] == "s":
            parts.append(exp.Coalesce(this=shown, expressions=[exp.Literal.string("")]))
        else:
            name = "_format_ident" if match[2] == "I" else "_quote_nullable"
            parts.append(exp.Anonymous(this=name, expressions=[shown]))
    parts.append(exp.Literal.string(pattern[end:]))
    if "%" in _FORMAT.sub("", pattern):
        raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, "format is supported with %s, %I, %L and %% only")
    whole = parts[0]
    for part in parts[1:]:
        whole = exp.DPipe(this=whole, expression=part)
    return exp.Paren(this=whole)


def _counted(arguments: Sequence[exp.Expr], *, nulls: bool) -> exp.Expr:
    """How many of the arguments are NULL, or are not."""
    tests: list[exp.Expr] = [exp.Is(this=exp.Paren(this=each.copy()), expression=exp.Null()) for each in arguments]
    wanted = tests if nulls else [exp.Not(this=test) for test in tests]
    ones = [exp.cast(exp.Paren(this=each), "INT", dialect="duckdb") for each in wanted]
    total = exp.Anonymous(this="list_sum", expressions=[exp.Array(expressions=ones)])
    return exp.cast(total, "INT", dialect="duckdb")


def _enum_range(node: exp.Anonymous) -> exp.Expr:
    """DuckDB has another name for the one with bounds; ``enum_operands`` replaces both."""
    return exp.Anonymous(this="enum_range_boundary", expressions=node.expressions)


_SPECIAL: dict[tuple[str, int], Callable[[exp.Anonymous], exp.Expr | None]] = {
    ("enum_range", 2): _enum_range, ("to_char", 2): _to_char, ("to_date", 2): _to_date, ("to_timestamp", 2): _to_date,
    ("convert_from", 2): _convert_from, ("convert_to", 2): _convert_from,
}  # fmt: skip
"""By name and number of arguments."""

_UNITS = frozenset({
    "MICROSECONDS", "MILLISECONDS", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "DECADE",
    "CENTURY", "MILLENNIUM", "SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS", "MONTHS", "YEARS", "DECADES", "CENTURIES",
    "MICROSECOND", "MILLISECOND", "QUARTERS", "MILLENNIA", "MILLENNIUMS", "CENTURYS", "US", "MS",
})  # fmt: skip
_UNIT_SPELLINGS = {"CENTURIES": "CENTURY", "MILLENNIA": "MILLENNIUM", "MILLENNIUMS": "MILLENNIUM"}


def _check_unit(node: exp.TimestampTrunc) -> None:
    unit = node.unit
    if not isinstance(unit, exp.Var):
        raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, "date_trunc is supported with a constant unit only")
    name = unit.name.upper()
    if name not in _UNITS:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'unit "{unit.name.lower()}" not recognized for type timestamp with time zone',
        )
    node.set("unit", exp.var(_UNIT_SPELLINGS.get(name, name)))
