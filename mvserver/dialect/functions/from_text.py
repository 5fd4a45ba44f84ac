"""to_date and to_timestamp of text with a constant pattern.

PostgreSQL reads generously: fewer digits, other separators, text behind the last field. So the fields are first taken
out with a regular expression made from the pattern and put into one form, which strptime then reads strictly. A text
that does not match stays as it is, which strptime refuses.
"""

from __future__ import annotations

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.functions.time_patterns import Token, tokens
from mvserver.errors import SqlError

SEPARATOR = "|"
"""Between the fields in their one form: an error's text with it was well-formed, and a field of it out of range."""

_FIELDS = {
    "YYYY": (r"(\d{1,4})", "%Y"), "YY": (r"(\d{2})", "%y"), "MM": (r"(\d{1,2})", "%m"), "DD": (r"(\d{1,2})", "%d"),
    "DDD": (r"(\d{1,3})", "%j"), "HH24": (r"(\d{1,2})", "%H"), "HH12": (r"(\d{1,2})", "%I"), "HH": (r"(\d{1,2})", "%I"),
    "MI": (r"(\d{1,2})", "%M"), "SS": (r"(\d{1,2})", "%S"), "MS": (r"(\d{3})", "%g"), "US": (r"(\d{6})", "%f"),
    "MON": (r"([A-Za-z]{3})", "%b"), "MONTH": (r"([A-Za-z]+)", "%B"), "AM": (r"([AaPp][Mm])", "%p"),
    "PM": (r"([AaPp][Mm])", "%p"),
}  # fmt: skip
_SKIPPED = {"DAY": r"[A-Za-z]+", "DY": r"[A-Za-z]{3}", "Q": r"\d", "D": r"\d", "ID": r"\d"}
_FIELDS_MAX = 9  # RE2 has nine back references


def from_text(text: exp.Expr, pattern: str, function: str) -> exp.Expr:
    """The timestamp without time zone that ``text`` says by ``pattern``."""
    expression: list[str] = []
    codes: list[str] = []
    for token in tokens(pattern):
        name = token.text.upper()
        if token.literal:
            expression.append(_literal(token))
        elif name in _SKIPPED:
            expression.append(_SKIPPED[name])
        elif name in _FIELDS and _FIELDS[name][1] not in codes:
            field, code = _FIELDS[name]
            expression.append(field)
            codes.append(code)
        else:
            raise _refused(function, f'"{token.text}" in its pattern')
    if not {"%Y", "%y"} & set(codes):
        raise _refused(function, "a pattern without a year")
    if len(codes) > _FIELDS_MAX:
        raise _refused(function, "more than nine fields")
    groups = SEPARATOR.join(f"\\{number}" for number in range(1, len(codes) + 1))
    taken = _call("regexp_replace", text, rf"^\s*{''.join(expression)}(?s:.*)$", groups)
    return _call("strptime", taken, SEPARATOR.join(codes))


def _literal(token: Token) -> str:
    if all(not char.isalnum() for char in token.text):
        return r"[^0-9A-Za-z]*"
    return f".{{{len(token.text)}}}"


def _refused(function: str, what: str) -> SqlError:
    return SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"{function} with {what} is not supported")


def _call(name: str, subject: exp.Expr, *texts: str) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[subject.copy(), *(exp.Literal.string(text) for text in texts)])
