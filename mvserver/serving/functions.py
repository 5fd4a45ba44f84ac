"""Functions that PostgreSQL and DuckDB spell differently or answer with other types."""

from __future__ import annotations

import re

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog.session_functions import SessionFacts, replace_function
from mvserver.serving.guard import function_name

_RENAMED: dict[str, str] = {
    "json_build_object": "json_object", "jsonb_build_object": "json_object", "json_build_array": "json_array",
    "jsonb_build_array": "json_array", "json_agg": "json_group_array", "jsonb_agg": "json_group_array",
    "json_object_agg": "json_group_object", "jsonb_object_agg": "json_group_object", "jsonb_typeof": "json_typeof",
    "json_extract_path_text": "json_extract_string", "jsonb_extract_path_text": "json_extract_string",
    "jsonb_array_length": "json_array_length", "jsonb_array_elements": "json_array_elements",
    "row_to_json": "to_json", "string_to_array": "string_split", "every": "bool_and",
    "gen_random_uuid": "uuid", "uuid_generate_v4": "uuid",
}  # fmt: skip


def adapt_function(node: exp.Expr, facts: SessionFacts) -> exp.Expr | None:
    assert isinstance(node, exp.Func)  # noqa: S101 - chosen by type
    name = function_name(node)
    replaced = replace_function(name, _arguments(node), facts)
    if replaced is not None:
        return replaced
    if isinstance(node, exp.Anonymous):
        if name == "to_char" and len(node.expressions) == 2:
            return _to_char(node.expressions[0], node.expressions[1])
        if name == "array_position":
            return exp.Anonymous(this="list_position", expressions=node.expressions)
        if name in _RENAMED:
            node.set("this", _RENAMED[name])
        else:
            node.set("this", name)
    if isinstance(node, _INT4_FUNCTIONS):
        return exp.cast(node.copy(), "INT", dialect="duckdb") if not isinstance(node.parent, exp.Cast) else None
    if isinstance(node, exp.Extract):
        return _extract(node)
    if isinstance(node, exp.Encode | exp.Decode):
        return _encoding(node)
    if isinstance(node, exp.JSONArrayAgg):
        return exp.Anonymous(this="to_json", expressions=[exp.ArrayAgg(this=node.this.copy())])
    if isinstance(node, exp.Hex):
        return exp.Anonymous(this="to_hex", expressions=[node.this.copy()])
    if isinstance(node, exp.Format):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED, "function format is not supported", hint="Use || or concat instead."
        )
    if isinstance(node, exp.StrToTime):
        return exp.Cast(this=node.copy(), to=exp.DataType.build("TIMESTAMPTZ", dialect="duckdb"))
    if isinstance(node, exp.CurrentTimestamp):
        return exp.Anonymous(this="now", expressions=[])
    if isinstance(node, exp.CurrentDate):
        return exp.cast(exp.Anonymous(this="now", expressions=[]), "DATE", dialect="duckdb")
    if isinstance(node, exp.ToChar | exp.TimeToStr):
        return _to_char(node.this, node.args.get("format"))
    return None


_INT4_FUNCTIONS = (exp.Length, exp.StrPosition, exp.ArraySize, exp.BitLength)


def _extract(node: exp.Extract) -> exp.Expr:
    """PostgreSQL's extract is numeric with the fraction of the second; date_part is double. Both become numeric."""
    part = node.this.name.lower()
    if part in ("epoch", "second", "seconds"):
        whole = "epoch" if part == "epoch" else "second"
        value: exp.Expr = exp.Anonymous(this=f"_extract_{whole}", expressions=[node.expression.copy()])
        return exp.cast(value, "DECIMAL(38, 6)", dialect="duckdb")
    return exp.cast(node.copy(), "DECIMAL(38, 0)", dialect="duckdb") if not isinstance(node.parent, exp.Cast) else node


def _encoding(node: exp.Encode | exp.Decode) -> exp.Expr:
    """encode(bytea, 'hex' | 'base64') and decode(text, ...), which sqlglot takes for character sets."""
    charset = node.args.get("charset")
    form = charset.name.lower() if isinstance(charset, exp.Expr) else ""
    names = {
        (True, "hex"): "_encode_hex", (True, "base64"): "to_base64", (False, "hex"): "unhex",
        (False, "base64"): "from_base64",
    }  # fmt: skip
    name = names.get((isinstance(node, exp.Encode), form))
    if name is None:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'unrecognized encoding: "{form}"')
    return exp.Anonymous(this=name, expressions=[node.this.copy()])


def _arguments(node: exp.Func) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [part for part in node.iter_expressions() if isinstance(part, exp.Expr)]


_SQLGLOT_TIME = {
    "%-d": "FMDD", "%-j": "FMDDD", "%-I": "FMHH12", "%-H": "FMHH24", "%-M": "FMMI", "%-m": "FMMM", "%-S": "FMSS",
    "%u": "D", "%d": "DD", "%j": "DDD", "%I": "HH12", "%H": "HH24", "%M": "MI", "%m": "MM", "%z": "OF", "%S": "SS",
    "%A": "TMDay", "%a": "TMDy", "%b": "TMMon", "%B": "TMMonth", "%Z": "TZ", "%f": "US", "%U": "WW", "%y": "YY",
    "%Y": "YYYY",
}  # fmt: skip
"""What sqlglot makes of a pattern, which is wrong for ``Month`` and ``Day``, back to what was written."""

_TO_CHAR = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d", "HH24": "%H", "HH12": "%I", "HH": "%I", "MI": "%M", "SS": "%S",
    "MS": "%g", "US": "%f", "MONTH": "%B", "MON": "%b", "DAY": "%A", "DY": "%a", "DDD": "%j", "AM": "%p", "PM": "%p",
    "IW": "%V", "IYYY": "%G", "ID": "%u", "TZ": "%Z", "D": "%w",
}  # fmt: skip
_TO_CHAR_TOKENS = re.compile("|".join(sorted(_TO_CHAR, key=len, reverse=True)) + r'|"[^"]*"', re.I)


def _to_char(value: exp.Expr, pattern: exp.Expr | None) -> exp.Expr:
    """to_char of times by strftime. Patterns of numbers (9, 0) are not supported."""
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "to_char is supported with a constant pattern only",
        )
    text = pattern.name
    for code, token in _SQLGLOT_TIME.items():
        text = text.replace(code, token)
    if re.search(r"[90]", text) and not re.search(r"[YMDHS]", text, re.I):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "to_char of numbers is not supported",
            hint="Use round(x, n)::text, or format the number in the client.",
        )

    def one(match: re.Match[str]) -> str:
        token = match[0]
        return token[1:-1].replace("%", "%%") if token.startswith('"') else _TO_CHAR[token.upper()]

    converted = _TO_CHAR_TOKENS.sub(one, text.replace("FM", "").replace("TM", ""))
    return exp.Anonymous(this="_to_char", expressions=[value.copy(), exp.Literal.string(converted)])
