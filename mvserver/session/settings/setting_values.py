"""The canonical forms of settings, made from their texts, with PostgreSQL's errors.

A checker takes the setting's name and the text a client gave and returns what SHOW prints; it raises 22023 for a value
that is not one, and 0A000 for a value of PostgreSQL's that this server does not honour (rather than accept it and act
otherwise).
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from functools import lru_cache

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog.timezones import zones
from mvserver.quoting import quoted
from mvserver.resume_tokens import is_token

Checker = Callable[[str, str], str]

_TRUE = ("on", "true", "yes", "1")
_FALSE = ("off", "false", "no", "0")
_DURATION = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*")
_QUANTITY = re.compile(r"\s*(-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*(.*?)\s*")
_UNIT_BYTES = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_UNIT_MS = {"us": 0.001, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_INT_MAX = 2_147_483_647
_TOO_LARGE = "Value exceeds integer range."
_OFFSET = re.compile(r"(?:gmt|utc)?\s*([+-]?)(\d{1,2})(?::?00)?", re.IGNORECASE)


def invalid(name: str, value: str, hint: str | None = None) -> SqlError:
    return SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'invalid value for parameter "{name}": "{value}"', hint=hint)


def not_honoured(name: str, value: str, hint: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED, f'value "{value}" of parameter "{name}" is not supported', hint=hint
    )


def text(name: str, value: str) -> str:
    return value


def boolean(name: str, value: str) -> str:
    """PostgreSQL takes any unambiguous beginning of true, false, yes and no, and on, off, 1, 0."""
    word = value.strip().lower()
    if word and (word in _TRUE or "true".startswith(word) or "yes".startswith(word)):
        return "on"
    if word and (word in _FALSE or "false".startswith(word) or "no".startswith(word) or word == "of"):
        return "off"
    raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'parameter "{name}" requires a Boolean value')


def integer(minimum: int, maximum: int) -> Checker:
    def check(name: str, value: str) -> str:
        match = _QUANTITY.fullmatch(value)
        if match is None or match[2]:
            raise invalid(name, value)
        number = round(float(match[1]))  # as PostgreSQL, also where it has a fraction
        if abs(number) > _INT_MAX:
            raise invalid(name, value, _TOO_LARGE)
        if not minimum <= number <= maximum:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'{number} is outside the valid range for parameter "{name}" ({minimum} .. {maximum})',
            )
        return str(number)

    return check


def real(minimum: float, maximum: float) -> Checker:
    def check(name: str, value: str) -> str:
        try:
            number = float(value.strip())
        except ValueError as error:
            raise invalid(name, value) from error
        if not math.isfinite(number):
            raise invalid(name, value)
        if not minimum <= number <= maximum:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'{number:g} is outside the valid range for parameter "{name}" ({minimum:g} .. {maximum:g})',
            )
        return f"{number:g}"

    return check


def memory(minimum: int, maximum: int = _INT_MAX, unit: str = "kB") -> Checker:
    """An amount in units of ``kB`` or ``8kB`` (a block) where it has none; printed with the largest that divides it."""
    size = _UNIT_BYTES["kB"] * (8 if unit == "8kB" else 1)

    def check(name: str, value: str) -> str:
        match = _QUANTITY.fullmatch(value)
        if match is None:
            raise invalid(name, value)
        if match[2] and match[2] not in _UNIT_BYTES:
            raise invalid(name, value, 'Valid units for this parameter are "B", "kB", "MB", "GB", and "TB".')
        number = round(float(match[1]) * (_UNIT_BYTES[match[2]] / size if match[2] else 1))
        if abs(number) > _INT_MAX:
            raise invalid(name, value, _TOO_LARGE)
        if not minimum <= number <= maximum:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'{number} {unit} is outside the valid range for parameter "{name}" ({minimum} .. {maximum})',
            )
        return next(
            f"{number * size // _UNIT_BYTES[name]}{name}"
            for name in ("TB", "GB", "MB", "kB")
            if number * size % _UNIT_BYTES[name] == 0
        )

    return check


def choice(*values: str) -> Checker:
    def check(name: str, value: str) -> str:
        word = value.strip().lower()
        if word not in values:
            raise invalid(name, value, f"Available values: {', '.join(values)}.")
        return word

    return check


def only(honoured: str, *known: str) -> Checker:
    """One value is honoured; ``known`` are PostgreSQL's others, refused by name."""

    def check(name: str, value: str) -> str:
        word = value.strip().lower()
        if word == honoured.lower():
            return honoured
        if word in known:
            raise not_honoured(name, value, f'Only "{honoured}" is supported.')
        raise invalid(name, value, f"Available values: {honoured}.")

    return check


def only_on(name: str, value: str) -> str:
    if boolean(name, value) == "off":
        raise not_honoured(name, value, 'Only "on" is supported.')
    return "on"


def only_off(name: str, value: str) -> str:
    if boolean(name, value) == "on":
        raise not_honoured(name, value, 'Only "off" is supported.')
    return "off"


@lru_cache(maxsize=256)  # each statement asks for its time-out
def milliseconds(value: str) -> int | None:
    """A duration setting's text in milliseconds; None when it is not one."""
    match = _DURATION.fullmatch(value)
    return None if match is None else round(float(match[1]) * _UNIT_MS[match[2] or "ms"])


def duration(name: str, value: str) -> str:
    """A number of milliseconds, or a number with a unit; printed with the largest unit that divides it."""
    amount = milliseconds(value)
    if amount is None:
        if _QUANTITY.fullmatch(value) is None:
            raise invalid(name, value)
        raise invalid(name, value, 'Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".')
    if abs(amount) > _INT_MAX:
        raise invalid(name, value, _TOO_LARGE)
    if amount < 0:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'{amount} ms is outside the valid range for parameter "{name}" (0 .. {_INT_MAX})',
        )
    for unit in ("d", "h", "min", "s"):
        if amount and amount % _UNIT_MS[unit] == 0:
            return f"{amount // int(_UNIT_MS[unit])}{unit}"
    return f"{amount}ms" if amount else "0"


def in_unit(value: str, unit: str) -> str:
    """An amount as pg_settings has it: a bare number of the unit that it is kept in."""
    if value.lstrip("-").isdigit():
        return value
    if unit in _UNIT_MS:
        amount = milliseconds(value)
        return value if amount is None else str(amount // int(_UNIT_MS[unit]))
    match = _QUANTITY.fullmatch(value)
    if match is None or match[2] not in _UNIT_BYTES:
        return value
    size = _UNIT_BYTES["kB"] * 8 if unit == "8kB" else _UNIT_BYTES[unit]
    return str(int(match[1]) * _UNIT_BYTES[match[2]] // size)


def freshness(name: str, value: str) -> str:
    """``any``, ``latest``, or a duration that is longer than none."""
    word = value.strip().lower()
    if word in ("any", "latest"):
        return word
    if not milliseconds(word):
        raise invalid(name, value, 'Available values: any, latest, and durations such as "500ms" or "2s".')
    return duration(name, word)


def as_of(name: str, value: str) -> str:
    """A time or a resume token; empty for neither."""
    place = value.strip()
    if not place or is_token(place):
        return place
    try:
        dt.datetime.fromisoformat(place)
    except ValueError as error:
        raise invalid(name, value, "It is a time, as in '2026-01-31 12:00:00+00', or a resume token.") from error
    return place


def isolation(name: str, value: str) -> str:
    return choice("serializable", "repeatable read", "read committed", "read uncommitted")(
        name, " ".join(value.lower().split())
    )


def date_style(name: str, value: str) -> str:
    """The output is always ISO; the order of day and month is kept for clients that set it."""
    order = "MDY"
    for part in value.split(","):
        word = part.strip().lower()
        if word in ("sql", "postgres", "german"):
            raise not_honoured(name, value, "Dates are always written in ISO form.")
        if word in ("mdy", "dmy", "ymd"):
            order = word.upper()
        elif word in ("us", "noneuro", "noneuropean"):
            order = "MDY"
        elif word in ("euro", "european"):
            order = "DMY"
        elif word not in ("iso", "default"):
            raise invalid(name, value)
    return f"ISO, {order}"


def shortest_float_digits(name: str, value: str) -> str:
    """From 1 on PostgreSQL writes the shortest digits that read back the same, as is always done here."""
    number = integer(-15, 3)(name, value)
    if int(number) < 1:
        raise not_honoured(name, value, "Floating-point values are always written in full: use a value from 1 to 3.")
    return number


_ENCODINGS = frozenset(
    ("big5", "euccn", "eucjp", "eucjis2004", "euckr", "euctw", "gb18030", "gbk", "iso88595", "iso88596", "iso88597",
     "iso88598", "johab", "koi8", "koi8r", "koi8u", "sjis", "shiftjis", "shiftjis2004", "uhc", "win", "alt", "abc",
     "tcvn", "tcvn5712", "vscii", "mskanji", "mulinternal", "windows949", "windows950", "windows936", "windows932",
     *(f"latin{number}" for number in range(1, 11)),
     *(f"iso8859{number}" for number in (1, 2, 3, 4, 9, 10, 13, 14, 15, 16)),
     *(f"{prefix}{number}" for prefix in ("win", "windows")
       for number in (866, 874, *range(1250, 1259)))),
)  # fmt: skip


def client_encoding(name: str, value: str) -> str:
    """``SQL_ASCII`` is what libpq asks for in the C locale: PostgreSQL converts nothing then, nor is anything here."""
    word = re.sub(r"[^a-z0-9]", "", value.lower())
    if word in ("utf8", "unicode", "default"):
        return "UTF8"
    if word == "sqlascii":
        return "SQL_ASCII"
    if word not in _ENCODINGS:
        raise invalid(name, value)
    raise not_honoured(name, value, "Text is always UTF8.")


def time_zone(name: str, value: str) -> str:
    """A name of the IANA data base, or whole hours east of Greenwich (PostgreSQL's sign for bare numbers)."""
    word = value.strip().strip("'")
    if word.lower() in ("local", "default", "z", "utc"):
        return "UTC"
    zone = zones().get(word.lower())
    if zone is not None:
        return zone
    match = _OFFSET.fullmatch(word)
    if match is None or int(match[2]) > 14:
        raise invalid(name, value)
    posix = word[0].isalpha()  # GMT+2 is west of Greenwich by the POSIX rule, a bare +2 is east
    west = (match[1] != "-") == posix
    return f"Etc/GMT{'+' if west else '-'}{int(match[2])}" if int(match[2]) else "UTC"


def split_identifiers(name: str, value: str) -> tuple[str, ...]:
    """``a, "B", c`` as folded names; raises 22023 where an identifier is not closed."""
    names: list[str] = []
    rest = value.strip()
    while rest:
        match = re.match(r'"((?:[^"]|"")*)"|([^",]+)', rest)
        if match is None:
            raise invalid(name, value)
        names.append(match[1].replace('""', '"') if match[1] is not None else match[2].strip().lower())
        rest = rest[match.end() :].lstrip()
        if rest:
            if not rest.startswith(",") or not rest[1:].strip():
                raise SqlError(
                    sqlstates.INVALID_PARAMETER_VALUE,
                    f'invalid value for parameter "{name}": "{value}"',
                    detail="List syntax is invalid.",
                )
            rest = rest[1:].lstrip()
    return tuple(names)


def search_path(name: str, value: str) -> str:
    def quote(word: str) -> str:
        return word if re.fullmatch(r"[a-z_][a-z0-9_$]*", word) else quoted(word)

    return ", ".join(quote(word) for word in split_identifiers(name, value))
