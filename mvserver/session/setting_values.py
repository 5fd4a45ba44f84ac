"""How the text of a setting becomes its canonical form, with PostgreSQL's errors.

A checker takes the setting's name and the text a client gave and returns what SHOW prints; it raises 22023 for a value
that is not one, and 0A000 for a value of PostgreSQL's that this server does not honour (rather than accept it and act
otherwise).
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable
from functools import cache, lru_cache

from mvserver import sqlstates
from mvserver.errors import SqlError

Checker = Callable[[str, str], str]

_TRUE = ("on", "true", "yes", "1")
_FALSE = ("off", "false", "no", "0")
_DURATION = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*")
_UNIT_MS = {"us": 0.001, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_INT_MAX = 2_147_483_647
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
        try:
            number = int(value.strip())
        except ValueError as error:
            raise invalid(name, value) from error
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
        if not minimum <= number <= maximum:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'{number:g} is outside the valid range for parameter "{name}" ({minimum:g} .. {maximum:g})',
            )
        return f"{number:g}"

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
        raise invalid(name, value, 'Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".')
    if not 0 <= amount <= _INT_MAX:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'{amount} ms is outside the valid range for parameter "{name}" (0 .. {_INT_MAX})',
        )
    for unit in ("d", "h", "min", "s"):
        if amount and amount % _UNIT_MS[unit] == 0:
            return f"{amount // int(_UNIT_MS[unit])}{unit}"
    return f"{amount}ms" if amount else "0"


def freshness(name: str, value: str) -> str:
    """``any``, ``latest``, or a duration that is longer than none."""
    word = value.strip().lower()
    if word in ("any", "latest"):
        return word
    if not milliseconds(word):
        raise invalid(name, value, 'Available values: any, latest, and durations such as "500ms" or "2s".')
    return duration(name, word)


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


def client_encoding(name: str, value: str) -> str:
    word = re.sub(r"[^a-z0-9]", "", value.lower())
    if word in ("utf8", "unicode", "default"):
        return "UTF8"
    if word == "sqlascii":  # PostgreSQL converts nothing then: the client gets the server's UTF8
        return "SQL_ASCII"
    raise not_honoured(name, value, "Text is always UTF8.")


@cache
def _zones() -> dict[str, str]:
    return {zone.lower(): zone for zone in zoneinfo.available_timezones() if not zone.startswith(("posix", "right"))}


def time_zone(name: str, value: str) -> str:
    """A name of the IANA data base, or whole hours east of Greenwich (PostgreSQL's sign for bare numbers)."""
    word = value.strip().strip("'")
    if word.lower() in ("local", "default", "z", "utc"):
        return "UTC"
    zone = _zones().get(word.lower())
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
        return word if re.fullmatch(r"[a-z_][a-z0-9_$]*", word) else '"' + word.replace('"', '""') + '"'

    return ", ".join(quote(word) for word in split_identifiers(name, value))
