"""Parameters of date, time, timestamp and timestamptz.

Values that Python's types cannot hold (infinities, years before Christ or after 9999, 24:00:00) are handed on as text
in ISO form.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.types import clock, oids
from mvserver.types.parameter import Decoder, bad_binary, bad_text

_INT4 = struct.Struct("!i")
_INT8 = struct.Struct("!q")
_EPOCH = datetime(1970, 1, 1)

_DATE = r"(?P<year>[0-9]{4,6})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})|(?P<compact>[0-9]{8})"
_CLOCK = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{0,12}))?)?"
_OFFSET = r"(?P<sign>[+-])(?P<oh>[0-9]{1,2})(?::?(?P<om>[0-9]{2})(?::?(?P<os>[0-9]{2}))?)?"
_ZONE = rf"\s*(?:(?P<utc>Z|UTC|GMT)|{_OFFSET}|(?P<name>[A-Za-z_]+/[A-Za-z0-9_+/-]+))"
_STAMP = re.compile(
    rf"\s*(?:{_DATE})(?:(?:\s+|T){_CLOCK}(?:{_ZONE})?)?(?P<era>\s*(?:BC|AD))?\s*", re.ASCII | re.IGNORECASE
)
_TIME = re.compile(rf"\s*{_CLOCK}\s*", re.ASCII)
_INFINITY = re.compile(r"\s*([+-]?)infinity\s*", re.ASCII | re.IGNORECASE)


_TEXT_MAX = 200  # longer than any spelling of a point in time


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return pattern.fullmatch(text) if len(text) <= _TEXT_MAX else None


def _bad(name: str, text: str) -> SqlError:
    return bad_text(name, text, sqlstates.INVALID_DATETIME_FORMAT)


def _overflow(text: str) -> SqlError:
    return SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, f'date/time field value out of range: "{text[:200]}"')


def _clock_us(match: re.Match[str], text: str) -> int:
    if match["hour"] is None:
        return 0
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    digits = match["fraction"] or ""
    fraction = (int(digits) * 1_000_000 * 2 + 10 ** len(digits)) // (2 * 10 ** len(digits)) if digits else 0
    count = (hour * 3600 + minute * 60 + second) * 1_000_000 + fraction
    if minute > 59 or second > 60 or count > clock.DAY_US:
        raise _overflow(text)
    return count


def _day(match: re.Match[str], text: str) -> int:
    if match["compact"]:
        year, month, day = int(match["compact"][:4]), int(match["compact"][4:6]), int(match["compact"][6:])
    else:
        year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if (match["era"] or "").strip().upper() == "BC":
        year = 1 - year
        if year == 1:
            raise _overflow(text)
    elif year == 0:
        raise _overflow(text)
    days = clock.days_from_civil(year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None
    if days is None or clock.civil(days) != (year, month, day):
        raise _overflow(text)
    return days


def _infinity(text: str) -> str | None:
    match = _match(_INFINITY, text)
    return None if match is None else ("-infinity" if match[1] == "-" else "infinity")


def _date_value(days: int) -> date | str:
    if clock.PLAIN_DATE_FROM <= days <= clock.PLAIN_DATE_TO:
        return date(1970, 1, 1) + timedelta(days=days)
    return clock.date_text(days)


def _stamp_value(count: int) -> datetime | str:
    if clock.PYTHON_STAMP_FROM <= count < clock.PYTHON_STAMP_TO:
        return _EPOCH + timedelta(microseconds=count)
    return clock.stamp_text(count)


def _instant_value(count: int) -> datetime | str:
    if clock.PYTHON_STAMP_FROM <= count < clock.PYTHON_STAMP_TO:
        return _EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=count)
    return clock.instant_text(count, UTC)


def _date_from_text(text: str) -> date | str:
    match = _match(_STAMP, text)
    if match is None:
        infinity = _infinity(text)
        if infinity is None:
            raise _bad("date", text)
        return infinity
    _clock_us(match, text)  # a time of day is checked and dropped, as a cast does
    return _date_value(_day(match, text))


def _time_value(count: int) -> time | str:
    if count == clock.DAY_US:
        return "24:00:00"
    seconds, microsecond = divmod(count, 1_000_000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, microsecond)


def _time_from_text(text: str) -> time | str:
    match = _match(_TIME, text)
    if match is None:
        raise _bad("time", text)
    return _time_value(_clock_us(match, text))


def _stamp_from_text(text: str) -> datetime | str:
    match = _match(_STAMP, text)
    if match is None:
        infinity = _infinity(text)
        if infinity is None:
            raise _bad("timestamp", text)
        return infinity
    return _stamp_value(_day(match, text) * clock.DAY_US + _clock_us(match, text))


def _instant_from_text(zone: str) -> Callable[[str], datetime | str]:
    def decode(text: str) -> datetime | str:
        match = _match(_STAMP, text)
        if match is None:
            infinity = _infinity(text)
            if infinity is None:
                raise _bad("timestamp with time zone", text)
            return infinity
        local = _day(match, text) * clock.DAY_US + _clock_us(match, text)
        return _instant_value(local - _offset_us(match, local, zone, text))

    return decode


def _offset_us(match: re.Match[str], local: int, zone: str, text: str) -> int:
    if match["utc"]:
        return 0
    if match["sign"]:
        seconds = int(match["oh"]) * 3600 + int(match["om"] or 0) * 60 + int(match["os"] or 0)
        if seconds > 15 * 3600 + 3599 or int(match["om"] or 0) > 59:
            raise SqlError(
                sqlstates.INVALID_TIME_ZONE_DISPLACEMENT, f'time zone displacement out of range: "{text[:200]}"'
            )
        return (-seconds if match["sign"] == "-" else seconds) * 1_000_000
    return local_offset_us(local, clock.zone_of(match["name"] or zone))


def local_offset_us(local: int, zone: tzinfo) -> int:
    """The offset that makes a wall-clock reading an instant. In the hour that a change of the clock skips, and in the
    one that it repeats, the standard time counts, as in PostgreSQL."""
    before = clock.offset_seconds(local - clock.DAY_US, zone)
    after = clock.offset_seconds(local + clock.DAY_US, zone)
    fits = [offset for offset in (before, after) if clock.offset_seconds(local - offset * 1_000_000, zone) == offset]
    if len(fits) == 2:
        return min(fits) * 1_000_000 if before != after else before * 1_000_000
    return (fits[0] if fits else before) * 1_000_000


def _date_from_binary(raw: bytes) -> date | str:
    if len(raw) != 4:
        raise bad_binary()
    (days,) = _INT4.unpack(raw)
    if days == clock.PG_DATE_INFINITY:
        return "infinity"
    if days == clock.PG_DATE_MINUS_INFINITY:
        return "-infinity"
    return _date_value(days + clock.UNIX_TO_2000_DAYS)


def _time_from_binary(raw: bytes) -> time | str:
    if len(raw) != 8:
        raise bad_binary()
    (count,) = _INT8.unpack(raw)
    if not 0 <= count <= clock.DAY_US:
        raise SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, "time out of range")
    return _time_value(count)


def _stamps_from_binary(value: Callable[[int], datetime | str]) -> Callable[[bytes], datetime | str]:
    def decode(raw: bytes) -> datetime | str:
        if len(raw) != 8:
            raise bad_binary()
        (count,) = _INT8.unpack(raw)
        if count == clock.PG_STAMP_INFINITY:
            return "infinity"
        if count == clock.PG_STAMP_MINUS_INFINITY:
            return "-infinity"
        return value(count + clock.UNIX_TO_2000_US)

    return decode


def decoders(zone: str) -> dict[int, Decoder]:
    """Those that depend on the session's zone, which says what a text without an offset means."""
    return {oids.TIMESTAMPTZ: Decoder(_instant_from_text(zone), _stamps_from_binary(_instant_value))}


DECODERS: dict[int, Decoder] = {
    oids.DATE: Decoder(_date_from_text, _date_from_binary),
    oids.TIME: Decoder(_time_from_text, _time_from_binary),
    oids.TIMESTAMP: Decoder(_stamp_from_text, _stamps_from_binary(_stamp_value)),
}
