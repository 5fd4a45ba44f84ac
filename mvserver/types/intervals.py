"""interval: months, days and microseconds kept apart, in PostgreSQL's own style of writing."""

from __future__ import annotations

import re
import struct
from typing import Any, NamedTuple

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.types import oids
from mvserver.types.clock import DAY_US, time_text
from mvserver.types.column import BINARY_FORMAT, Column, Encoder, per_cell
from mvserver.types.parameter import Decoder, bad_binary, bad_text

_BINARY = struct.Struct("!qii")
_TEXT_MAX = 1_000  # longer than any interval that is written by something in earnest
_MONTHS_MAX = 2**31 - 1
_MICROSECONDS_MAX = 2**63 - 1


class Parts(NamedTuple):
    months: int
    days: int
    microseconds: int

    def plus(self, other: Parts) -> Parts:
        return Parts(*(a + b for a, b in zip(self, other, strict=True)))

    def negated(self) -> Parts:
        return Parts(*(-value for value in self))


def encoder(form: int, arrow: Any) -> Encoder:
    if form == BINARY_FORMAT:
        return per_cell(lambda parts: _BINARY.pack(parts.microseconds, parts.days, parts.months), _values(arrow))
    return per_cell(lambda parts: interval_text(parts).encode(), _values(arrow))


def _values(arrow: Any) -> Any:
    def of_intervals(array: Column) -> list[Parts | None]:
        return [
            None if value is None else Parts(value.months, value.days, value.nanoseconds // 1000)
            for value in array.to_pylist()
        ]

    def of_durations(array: Column) -> list[Parts | None]:
        counts = array.cast(pa.duration("us"), safe=False).view(pa.int64()).to_pylist()
        return [None if count is None else Parts(0, 0, count) for count in counts]

    return of_durations if pa.types.is_duration(arrow) else of_intervals


def interval_text(parts: Parts) -> str:
    """``1 year 2 mons 3 days 04:05:06.5``; after a negative part a positive one carries its sign."""
    years, months = _towards_zero(parts.months, 12)
    written: list[str] = []
    negative = False
    for value, unit in ((years, "year"), (months, "mon"), (parts.days, "day")):
        if value:
            sign = "+" if negative and value > 0 else ""
            written.append(f"{sign}{value} {unit}{'' if value == 1 else 's'}")
            negative = value < 0
    if parts.microseconds or not written:
        sign = "-" if parts.microseconds < 0 else ("+" if negative else "")
        written.append(sign + time_text(abs(parts.microseconds)))
    return " ".join(written)


def _towards_zero(value: int, by: int) -> tuple[int, int]:
    quotient, rest = divmod(abs(value), by)
    return (-quotient, -rest) if value < 0 else (quotient, rest)


_MONTHS = {"year": 12, "yr": 12, "y": 12, "month": 1, "mon": 1, "decade": 120, "century": 1200, "millennium": 12000}
_DAYS = {"day": 1, "d": 1, "week": 7, "w": 7}
_MICROSECONDS = {
    "hour": 3_600_000_000, "hr": 3_600_000_000, "h": 3_600_000_000, "minute": 60_000_000, "min": 60_000_000,
    "m": 60_000_000, "second": 1_000_000, "sec": 1_000_000, "s": 1_000_000, "millisecond": 1_000, "msec": 1_000,
    "ms": 1_000, "microsecond": 1, "usec": 1, "us": 1,
}  # fmt: skip
_MONTH_DAYS = 30  # of a fraction
_IRREGULAR = {"centuries": "century", "millennia": "millennium", "us": "us", "ms": "ms", "s": "s"}
_NUMBER = r"([+-]?)([0-9]{1,18})(?:\.([0-9]{0,9}))?"
_TOKEN = re.compile(
    r"\s*(?:([+-]?)([0-9]{1,10}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?)?|" + _NUMBER + r"\s*([a-z]*))\s*",
    re.ASCII | re.IGNORECASE,
)
_ISO_PART = re.compile(_NUMBER + r"([YMWDHS])", re.ASCII)
_ISO_DATE = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME = {"H": "hour", "M": "minute", "S": "second"}


def unit_of(word: str) -> str | None:
    """The singular unit that a word names."""
    lowered = word.lower()
    unit = _IRREGULAR.get(lowered, lowered.removesuffix("s"))
    return unit if unit in _MONTHS or unit in _DAYS or unit in _MICROSECONDS else None


def parse(text: str) -> Parts:
    """PostgreSQL's style, its verbose form with ``ago``, and ISO 8601 with designators."""
    word = text.strip() if len(text) <= _TEXT_MAX else ""
    parts = _iso(word) if word[:1] in ("P", "p") else _years_and_months(word) or _words(word)
    if parts is None:
        raise bad_text("interval", text, sqlstates.INVALID_DATETIME_FORMAT)
    if abs(parts.months) > _MONTHS_MAX or abs(parts.days) > _MONTHS_MAX or abs(parts.microseconds) > _MICROSECONDS_MAX:
        raise SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, f'interval field value out of range: "{text[:200]}"')
    return parts


_YEARS_MONTHS = re.compile(r"([+-]?)([0-9]{1,9})-([0-9]{1,2})(\s+.+)?", re.ASCII)
_DAY_CLOCK = re.compile(r"\s+([+-]?)([0-9]{1,10})(\s+[+-]?[0-9]+:.+)", re.ASCII)


def _years_and_months(text: str) -> Parts | None:
    """The standard's ``1-2`` and ``1-2 3 04:05:06``; None where it is neither."""
    match = _YEARS_MONTHS.fullmatch(text)
    if match is None:
        return None
    if int(match[3]) > 11:
        raise SqlError(sqlstates.INTERVAL_FIELD_OVERFLOW, f'interval field value out of range: "{text}"')
    months = int(match[2]) * 12 + int(match[3])
    rest = match[4] or ""
    day = _DAY_CLOCK.fullmatch(rest)
    found = _words(f"{day[1]}{day[2]} days {day[3]}" if day else rest.strip()) if rest else Parts(0, 0, 0)
    return None if found is None else found._replace(months=found.months + (-months if match[1] == "-" else months))


def _words(text: str) -> Parts | None:
    text = re.sub(r"(?<![0-9])\.(?=[0-9])", "0.", text.removeprefix("@").strip())
    ago = text.lower().endswith("ago")
    if ago:
        text = text[:-3].strip()
    if not text:
        return None
    total, at, bare = Parts(0, 0, 0), 0, False
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at or (bare and match[2] is None):
            return None
        at = match.end()
        bare = match[2] is None and not match[9]  # of seconds, or of days before a clock: nothing else may follow
        unit = match[9] or ("second" if at == len(text) else "day")
        part = _clock(match) if match[2] is not None else _unit(match[6], match[7], match[8], unit)
        if part is None:
            return None
        total = total.plus(part)
    return total.negated() if ago else total


def _clock(match: re.Match[str]) -> Parts | None:
    hours, minutes, seconds = int(match[2]), int(match[3]), int(match[4] or 0)
    if minutes > 59 or seconds > 59:
        return None
    count = (hours * 3600 + minutes * 60 + seconds) * 1_000_000 + round(_fraction(match[5]) * 1_000_000)
    return Parts(0, 0, -count if match[1] == "-" else count)


def _unit(sign: str, whole: str, digits: str | None, unit: str) -> Parts | None:
    """A fraction is handed down: of years to whole months, of months and weeks to days, of days to their time."""
    word = unit_of(unit)
    if word is None:
        return None
    count, fraction = int(whole), _fraction(digits)
    if word in _MICROSECONDS:
        size = _MICROSECONDS[word]
        parts = Parts(0, 0, count * size + _microseconds(fraction * size))
    elif word in _DAYS:
        size = _DAYS[word]
        parts = Parts(0, count * size, 0).plus(_days(fraction * size))
    elif _MONTHS[word] == 1:
        parts = Parts(count, 0, 0).plus(_days(fraction * _MONTH_DAYS))
    else:
        size = _MONTHS[word]
        parts = Parts(count * size + round(fraction * size), 0, 0)
    return parts.negated() if sign == "-" else parts


def _fraction(digits: str | None) -> float:
    """As PostgreSQL has it, a floating-point number: it says how a half is rounded."""
    return float(f"0.{digits}") if digits else 0.0


def _days(count: float) -> Parts:
    return Parts(0, int(count), _microseconds((count - int(count)) * DAY_US))


def _microseconds(count: float) -> int:
    whole = int(count)
    return whole + (count - whole > 0.5)


def _iso(text: str) -> Parts | None:
    date, separator, time = text[1:].upper().partition("T")
    if not date and not time:
        return None
    total = Parts(0, 0, 0)
    for section, units in ((date, _ISO_DATE), (time, _ISO_TIME)):
        at = 0
        while at < len(section):
            match = _ISO_PART.match(section, at)
            if match is None or match[4] not in units:
                return None
            at = match.end()
            part = _unit(match[1], match[2], match[3], units[match[4]])
            if part is None:
                return None
            total = total.plus(part)
    return None if separator and not time else total


def _written(parts: Parts) -> str:
    """Without the plus signs of PostgreSQL's style, which other readers do not know."""
    return f"{parts.months} months {parts.days} days {parts.microseconds} microseconds"


def written(text: str) -> str:
    """An interval in any of PostgreSQL's spellings, in one that every reader knows."""
    return _written(parse(text))


def _from_binary(raw: bytes) -> str:
    if len(raw) != _BINARY.size:
        raise bad_binary()
    microseconds, days, months = _BINARY.unpack(raw)
    return _written(Parts(months, days, microseconds))


# as text, since no Python type keeps months, days and microseconds apart
DECODERS = {oids.INTERVAL: Decoder(written, _from_binary)}
