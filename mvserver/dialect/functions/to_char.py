"""to_char(value, 'pattern') as an expression of DuckDB's functions; the pattern must be a constant.

What strftime writes as PostgreSQL does is left to it, in one call for as many tokens as follow each other; the rest are
small expressions, joined with ``||``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.functions.time_patterns import Token, tokens
from mvserver.errors import SqlError

_PADDED = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d", "HH24": "%H", "HH12": "%I", "HH": "%I", "MI": "%M", "SS": "%S",
    "MS": "%g", "FF3": "%g", "US": "%f", "FF6": "%f", "DDD": "%j", "IW": "%V", "IYYY": "%G", "ID": "%u", "Mon": "%b",
    "Dy": "%a",
}  # fmt: skip
_YEARS = frozenset({"YYYY", "YY", "IYYY"})
"""Their codes count a year 0, and have their zeros always."""
_BARE = {
    **{token: code for token, code in _PADDED.items() if token not in _YEARS},
    "MM": "%-m", "DD": "%-d", "HH24": "%-H", "HH12": "%-I", "HH": "%-I", "MI": "%-M", "SS": "%-S",
    "DDD": "%-j", "Month": "%B", "Day": "%A",
}  # fmt: skip
_NAMES = {"MONTH": "%B", "Month": "%B", "month": "%B", "MON": "%b", "mon": "%b", "DAY": "%A", "Day": "%A",
          "day": "%A", "DY": "%a", "dy": "%a"}  # fmt: skip
_LONG_NAME = 9  # to which names of months and days are padded
_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def field(name: str, value: exp.Expr) -> exp.Expr:
    """A field of a time or an interval, with PostgreSQL's years before Christ."""
    if name in ("year", "isoyear", "decade"):
        return call(f"_{name}_field", value.copy())
    return call("date_part", _text(name), value.copy())


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _joined(parts: list[exp.Expr]) -> exp.Expr:
    if not parts:
        return _text("")
    whole = parts[0]
    for part in parts[1:]:
        whole = exp.DPipe(this=whole, expression=part)
    return exp.Paren(this=whole) if len(parts) > 1 else whole


def _unsupported(token: str) -> SqlError:
    return SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f'to_char with "{token}" in its pattern is not supported')


# --- dates and times ------------------------------------------------------------------------------------------------
def time_text(value: exp.Expr, pattern: str, *, zoned: bool, zone: str) -> exp.Expr:
    """Of a timestamp or date; ``zoned``: with time zone, to be shown in ``zone``."""
    parts: list[exp.Expr] = []
    pending: list[Token] = []  # what strftime writes

    def flush() -> None:
        if pending:
            parts.append(_formatted(value, pending))
            pending.clear()

    for token in tokens(pattern):
        if token.literal or (_code(token) is not None and not token.ordinal):
            pending.append(token)
            continue
        flush()
        parts.append(_time_part(value, token, zoned=zoned, zone=zone))
    flush()
    return _joined(parts)


def _code(token: Token) -> str | None:
    if token.literal:
        return token.text.replace("%", "%%")
    return (_PADDED if token.fill else _BARE).get(token.text)


def _formatted(value: exp.Expr, found: list[Token]) -> exp.Expr:
    """By strftime, but for the years before Christ."""
    groups = [(years, list(group)) for years, group in groupby(found, key=_is_year)]
    whole = _strftime(value, found)
    if not any(years for years, _ in groups):
        return whole
    parts = [
        part
        for years, group in groups
        for part in ([_numbered(value, token) for token in group] if years else [_strftime(value, group)])
    ]
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=_before_christ(value), true=_joined(parts))], default=whole))


def _is_year(token: Token) -> bool:
    return not token.literal and token.text in _YEARS


def _strftime(value: exp.Expr, found: list[Token]) -> exp.Expr:
    return call("strftime", value.copy(), _text("".join(_code(token) or "" for token in found)))


def _before_christ(value: exp.Expr) -> exp.Expr:
    return exp.LT(this=value.copy(), expression=exp.cast(_text("0001-01-01"), "DATE", dialect="duckdb"))


def _time_part(value: exp.Expr, token: Token, *, zoned: bool, zone: str) -> exp.Expr:
    code = _code(token)
    if code is not None and not _is_year(token):
        return _ordinal(call("strftime", value.copy(), _text(code)), token)
    if token.text in _NAMES:
        return _name(value, token)
    if token.text in ("TZ", "tz"):
        return _zone(token.text, zoned=zoned, zone=zone)
    if token.text in ("OF", "TZH", "TZM"):
        return _offset(value, token.text, zoned=zoned)
    return _numbered(value, token)


def _numbered(value: exp.Expr, token: Token) -> exp.Expr:
    build = _PARTS.get(token.text)
    if build is None:
        raise _unsupported(token.text)
    width, part = build(value)
    if width == 0:
        return _ordinal(part, token)
    return _ordinal(_shown(part, token, width), token)


def _shown(number: exp.Expr, token: Token, width: int) -> exp.Expr:
    if not token.fill:
        return exp.cast(number, "TEXT", dialect="duckdb")
    padded = "_sign_padded" if token.text in _SIGN_APART else "_zero_padded"
    return call(padded, number, _number(width))


_SIGN_APART = frozenset({"CC", "YYYY", "MM", "HH24", "MI", "SS"})
"""Tokens whose width does not count a minus."""


def _ordinal(shown: exp.Expr, token: Token) -> exp.Expr:
    if not token.ordinal:
        return shown
    digits = call("replace", shown.copy(), _text(","), _text("")) if token.text == "Y,YYY" else shown.copy()
    suffix = call("_ordinal_suffix", exp.cast(digits, "BIGINT", dialect="duckdb"))
    return exp.DPipe(this=shown, expression=call("upper", suffix) if token.ordinal == "TH" else suffix)


def _name(value: exp.Expr, token: Token) -> exp.Expr:
    shown = call("strftime", value.copy(), _text(_NAMES[token.text]))
    if token.text.isupper():
        shown = call("upper", shown)
    elif token.text.islower():
        shown = call("lower", shown)
    if token.fill and token.text.upper() in ("MONTH", "DAY"):
        shown = call("rpad", shown, _number(_LONG_NAME), _text(" "))
    return shown


def _zone(token: str, *, zoned: bool, zone: str) -> exp.Expr:
    if not zoned:
        return _text("")
    if zone.upper() not in ("UTC", "ETC/UTC", "GMT"):
        raise _unsupported(token)  # the abbreviation is not known for other zones
    shown = "GMT" if zone.upper() == "GMT" else "UTC"
    return _text(shown if token == "TZ" else shown.lower())  # noqa: S105 - a pattern's token


def _offset(value: exp.Expr, token: str, *, zoned: bool) -> exp.Expr:
    if not zoned:
        return _text("00" if token == "TZM" else "+00")  # noqa: S105 - a pattern's token
    seconds = exp.cast(call("date_part", _text("timezone"), value.copy()), "BIGINT", dialect="duckdb")
    return call({"OF": "_zone_offset", "TZH": "_zone_hours", "TZM": "_zone_minutes"}[token], seconds)


def _part(name: str) -> Callable[[exp.Expr], exp.Expr]:
    return lambda value: field(name, value)


_YEAR_DIGITS = 4  # all of them, however many there are


def _cut_year(name: str, digits: int) -> Callable[[exp.Expr], tuple[int, exp.Expr]]:
    def build(value: exp.Expr) -> tuple[int, exp.Expr]:
        year = call("abs", field(name, value))
        if digits == _YEAR_DIGITS:
            return digits, year
        return digits, exp.Mod(this=year, expression=_number(10**digits))

    return build


def _seventh(name: str) -> Callable[[exp.Expr], exp.Expr]:
    """The how manyeth seven days a day of the month or year is in."""
    return lambda value: exp.IntDiv(
        this=exp.Paren(this=exp.Add(this=_part(name)(value), expression=_number(6))), expression=_number(7)
    )


def _meridiem(morning: str, afternoon: str) -> Callable[[exp.Expr], tuple[int, exp.Expr]]:
    return lambda value: (
        0,
        exp.Case(
            ifs=[exp.If(this=exp.LT(this=_part("hour")(value), expression=_number(12)), true=_text(morning))],
            default=_text(afternoon),
        ),
    )


def _era(before: str, after: str) -> Callable[[exp.Expr], tuple[int, exp.Expr]]:
    return lambda value: (
        0,
        exp.Case(
            ifs=[exp.If(this=exp.GT(this=_part("year")(value), expression=_number(0)), true=_text(after))],
            default=_text(before),
        ),
    )


def _fraction(digits: int) -> Callable[[exp.Expr], tuple[int, exp.Expr]]:
    return lambda value: (0, call("left", call("strftime", value.copy(), _text("%f")), _number(digits)))


def _roman(value: exp.Expr, *, lower: bool) -> tuple[int, exp.Expr]:
    names = exp.Array(expressions=[_text((n.lower() if lower else n).ljust(4)) for n in _ROMAN])
    return 0, call("list_extract", names, _part("month")(value))


_PARTS: dict[str, Callable[[exp.Expr], tuple[int, exp.Expr]]] = {
    "Q": lambda value: (1, _part("quarter")(value)),
    "W": lambda value: (1, _seventh("day")(value)),
    "WW": lambda value: (2, _seventh("doy")(value)),
    "D": lambda value: (1, exp.Add(this=_part("dow")(value), expression=_number(1))),
    "CC": lambda value: (2, _part("century")(value)),
    "J": lambda value: (
        1, exp.cast(call("floor", call("julian", exp.cast(value.copy(), "DATE", dialect="duckdb"))), "BIGINT",
                    dialect="duckdb"),
    ),
    "YYYY": _cut_year("year", _YEAR_DIGITS), "IYYY": _cut_year("isoyear", _YEAR_DIGITS),
    "Y,YYY": lambda value: (0, call("_grouped_year", call("abs", field("year", value)))),
    "YY": _cut_year("year", 2),
    "YYY": _cut_year("year", 3),
    "Y": _cut_year("year", 1),
    "IYY": _cut_year("isoyear", 3),
    "IY": _cut_year("isoyear", 2),
    "I": _cut_year("isoyear", 1),
    "IDDD": lambda value: (
        3,
        exp.Add(
            this=exp.Mul(this=exp.Paren(this=exp.Sub(this=_part("week")(value), expression=_number(1))),
                         expression=_number(7)),
            expression=_part("isodow")(value),
        ),
    ),
    "SSSS": lambda value: (1, call("_second_of_day", value.copy())),
    "SSSSS": lambda value: (1, call("_second_of_day", value.copy())),
    "AM": _meridiem("AM", "PM"), "PM": _meridiem("AM", "PM"), "am": _meridiem("am", "pm"), "pm": _meridiem("am", "pm"),
    "A.M.": _meridiem("A.M.", "P.M."), "P.M.": _meridiem("A.M.", "P.M."), "a.m.": _meridiem("a.m.", "p.m."),
    "p.m.": _meridiem("a.m.", "p.m."),
    "AD": _era("BC", "AD"), "BC": _era("BC", "AD"), "ad": _era("bc", "ad"), "bc": _era("bc", "ad"),
    "A.D.": _era("B.C.", "A.D."), "B.C.": _era("B.C.", "A.D."), "a.d.": _era("b.c.", "a.d."),
    "b.c.": _era("b.c.", "a.d."),
    **{f"FF{digits}": _fraction(digits) for digits in (1, 2, 4, 5)},
    "RM": lambda value: _roman(value, lower=False), "rm": lambda value: _roman(value, lower=True),
}  # fmt: skip
"""By token: the width that its number is padded to (0: a text), and the number."""


# --- intervals ------------------------------------------------------------------------------------------------------
_INTERVAL_PARTS = {
    "YYYY": ("year", 4), "MM": ("month", 2), "DD": ("day", 2), "HH24": ("hour", 2), "MI": ("minute", 2),
}  # fmt: skip


def interval_text(value: exp.Expr, pattern: str) -> exp.Expr:
    parts: list[exp.Expr] = []
    for token in tokens(pattern):
        if token.literal:
            parts.append(_text(token.text))
            continue
        if token.text in _INTERVAL_PARTS:
            name, width = _INTERVAL_PARTS[token.text]
            number = _part(name)(value)
        elif token.text in ("SS", "MS", "US"):
            micros = _part("microseconds")(value)
            unit, width = {"SS": (1_000_000, 2), "MS": (1_000, 3), "US": (1, 6)}[token.text]
            number = exp.IntDiv(this=micros, expression=_number(unit))
            if token.text != "SS":
                number = exp.Mod(this=exp.Paren(this=number), expression=_number(10**width))
        else:
            raise _unsupported(token.text)
        parts.append(_ordinal(_shown(number, token, width), token))
    return _joined(parts)


# --- numbers --------------------------------------------------------------------------------------------------------
_DIGITS = re.compile(r"[09]")
_NUMBER_WHOLE = re.compile(
    r"^(?P<fill>FM|fm)?(?P<before>(?:[^0-9.,A-Za-z\"]|\"[^\"]*\")*)(?P<sign>S|s|MI|mi)?(?P<fill2>FM|fm)?"
    r"(?P<whole>[09,Gg]*)(?:(?P<point>[.Dd])(?P<fraction>[09]*))?"
    r"(?P<end>S|s|MI|mi|PR|pr)?(?P<after>(?:[^0-9.,A-Za-z\"]|\"[^\"]*\")*)$"
)


def is_number_pattern(pattern: str) -> bool:
    return bool(_DIGITS.search(pattern)) and _NUMBER_WHOLE.match(pattern) is not None


def number_text(value: exp.Expr, pattern: str, *, exact: bool = True) -> exp.Expr:
    """By a pattern of 9 and 0 with grouping, a point, FM, a sign and text around it. A number that is not ``exact`` is
    rounded by its decimal notation, as PostgreSQL does it."""
    match = _NUMBER_WHOLE.match(pattern)
    if match is None or not _DIGITS.search(pattern) or (match["sign"] and match["end"]):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'to_char of a number with the pattern "{pattern}" is not supported',
            hint="Patterns of 9, 0, comma, point, G, D, FM, S, MI, PR and text in double quotes are supported.",
        )
    whole = match["whole"].upper()
    digits = _DIGITS.findall(whole)
    fraction = match["fraction"] or ""
    fill = not (match["fill"] or match["fill2"])
    zeros = len(digits) - digits.index("0") if "0" in digits else 0  # digits that are shown even as leading zeros
    sign = (match["sign"] or match["end"] or "").upper()
    rounded = value.copy() if exact else _rounded_float(value, len(digits), len(fraction))
    # not exp.cast: it takes one cast to DECIMAL for as good as another
    scaled = exp.Cast(this=rounded, to=exp.DataType.build(f"DECIMAL(38, {len(fraction)})", dialect="duckdb"))
    shown = call("_picture_digits", scaled, _number(len(digits)), _number(zeros), exp.Boolean(this=bool(fraction)))
    groups = [len(_DIGITS.findall(part)) for part in re.split(r"[,G]", whole)]
    body = (
        scaled.copy(),
        _grouped(shown, groups),
        _number(len(fraction)),
        _number(fraction.rfind("0") + 1),  # digits behind the point that FM keeps
        exp.Boolean(this=match["point"] is not None),
        exp.Boolean(this=fill),
    )
    signs = _text(f"{sign} first" if match["sign"] and sign == "MI" else f"{sign} last" if match["end"] else sign)
    if exact:
        shown = call("_picture", *body, signs)
    else:  # what is rounded to 0 keeps its sign
        negative = call("signbit", value.copy())
        shown = call("_picture_sign", call("_picture_body", *body), negative, exp.Boolean(this=fill), signs)
    if not exact and len(digits) >= len(_NAN):
        whole_nan = _grouped(_text(_NAN.rjust(zeros, "0").rjust(len(digits))), groups)
        nan = call("_picture_sign", whole_nan, exp.false(), exp.Boolean(this=fill), signs.copy())
        shown = exp.Paren(this=exp.Case(ifs=[exp.If(this=call("isnan", value.copy()), true=nan)], default=shown))
    parts = [
        *([_text(_unquoted(match["before"]))] if match["before"] else []),
        shown,
        *([_text(_unquoted(match["after"]))] if match["after"] else []),
    ]
    return _joined(parts)


_NAN = "NaN"


def _rounded_float(value: exp.Expr, digits: int, fraction: int) -> exp.Expr:
    """By its decimal notation. What has more digits than the pattern, as infinity has, stays too large, and so is what
    is no number where its name has no place."""
    large = exp.cast(_text(f"1e{digits + 1}"), "DOUBLE", dialect="duckdb")
    within = exp.LTE(this=exp.Abs(this=value.copy()), expression=large.copy())
    shown = call("printf", _text(f"%.{fraction}f"), value.copy())
    beyond = exp.If(this=exp.Not(this=within), true=exp.cast(large, "TEXT", dialect="duckdb"))
    return exp.Paren(this=exp.Case(ifs=[beyond], default=shown))


def _grouped(shown: exp.Expr, groups: list[int]) -> exp.Expr:
    if len(groups) < 2:
        return shown
    return call("_picture_groups", shown, _text(_splitter(groups)), _text(_group_text(groups)))


_GROUPS_MAX = 9  # RE2 has nine back references


def _splitter(groups: list[int]) -> str:
    if len(groups) > _GROUPS_MAX or 0 in groups:
        raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, "to_char with this grouping of digits is not supported")
    return "^" + "".join(f"(.{{{size}}})" for size in groups) + "$"


def _group_text(groups: list[int]) -> str:
    return ",".join(f"\\{number}" for number in range(1, len(groups) + 1))


def _unquoted(text: str) -> str:
    return text.replace('"', "")
