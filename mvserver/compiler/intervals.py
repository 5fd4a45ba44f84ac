"""Interval constants: PostgreSQL's verbose and clock spellings, read into months, days and microseconds."""

from __future__ import annotations

import re
from fractions import Fraction

from mvserver import sqlstates
from mvserver.errors import SqlError

_MONTHS = {"year": 12, "decade": 120, "century": 1200, "millennium": 12000, "month": 1}
_DAYS = {"week": 7, "day": 1}
_MICROS = {
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_ALIASES = {
    "y": "year", "yr": "year", "yrs": "year", "years": "year",
    "mon": "month", "mons": "month", "months": "month",
    "w": "week", "weeks": "week", "d": "day", "days": "day",
    "h": "hour", "hr": "hour", "hrs": "hour", "hours": "hour",
    "m": "minute", "min": "minute", "mins": "minute", "minutes": "minute",
    "s": "second", "sec": "second", "secs": "second", "seconds": "second",
    "ms": "millisecond", "msec": "millisecond", "msecs": "millisecond", "milliseconds": "millisecond",
    "us": "microsecond", "usec": "microsecond", "usecs": "microsecond", "microseconds": "microsecond",
    "decades": "decade", "centuries": "century", "millenniums": "millennium",
}  # fmt: skip
_PART = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*([a-zA-Z]+)")
_CLOCK = re.compile(r"\s*([+-]?)(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d{1,6})?))?")


def canonical(months: int, days: int, micros: int) -> str:
    return f"{months} {days} {micros}"


def parts_of(text: str) -> tuple[int, int, int]:
    """Months, days and microseconds of the canonical form."""
    months, days, micros = text.split(" ")
    return int(months), int(days), int(micros)


def unit_of(word: str) -> str | None:
    """The singular unit that a word names."""
    lowered = word.lower()
    unit = _ALIASES.get(lowered, lowered)
    return unit if unit in _MONTHS or unit in _DAYS or unit in _MICROS else None


def parse_interval(text: str, default_unit: str | None = None) -> str:
    """``'1 day 02:30'``, ``'3 months'``, ``'-1 hour'``, ``'1 day ago'``; a bare number takes ``default_unit``."""
    original = text
    negative = False
    if text.strip().lower().endswith(" ago"):
        negative = True
        text = text.strip()[:-4]
    if default_unit is not None and re.fullmatch(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)\s*", text):
        text = f"{text} {default_unit}"
    months, days, micros = Fraction(0), Fraction(0), Fraction(0)
    at = 0
    seen = False
    while at < len(text) and text[at:].strip():
        clock = _CLOCK.match(text, at)
        part = _PART.match(text, at)
        if clock is not None:
            sign, hours, minutes, seconds = clock.groups()
            total = int(hours) * 3600 + int(minutes) * 60 + Fraction(seconds or "0")
            micros += (-total if sign == "-" else total) * 1_000_000
            at = clock.end()
        elif part is not None:
            amount, unit = Fraction(part.group(1)), unit_of(part.group(2))
            if unit is None:
                raise _invalid(original)
            months += amount * _MONTHS.get(unit, 0)
            days += amount * _DAYS.get(unit, 0)
            micros += amount * _MICROS.get(unit, 0)
            at = part.end()
        else:
            raise _invalid(original)
        seen = True
    if not seen:
        raise _invalid(original)
    # A fraction of a month is 30 days' worth, a fraction of a day 24 hours': PostgreSQL's rule.
    whole_months = int(months)
    days += (months - whole_months) * 30
    whole_days = int(days)
    micros += (days - whole_days) * 86_400_000_000
    sign_of_all = -1 if negative else 1
    return canonical(sign_of_all * whole_months, sign_of_all * whole_days, sign_of_all * round(micros))


def _invalid(text: str) -> SqlError:
    return SqlError(sqlstates.INVALID_DATETIME_FORMAT, f'invalid input syntax for type interval: "{text}"')
