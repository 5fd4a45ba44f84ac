"""Calendar arithmetic on PostgreSQL's whole range: microseconds and days as integers, years before Christ, infinities.

Python's and Arrow's own date types end at the years 1 and 9999, and neither knows an infinite day.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mvserver import sqlstates
from mvserver.errors import SqlError

DAY_US = 86_400_000_000
UNIX_TO_2000_DAYS = 10_957
UNIX_TO_2000_US = UNIX_TO_2000_DAYS * DAY_US

# how the query engine and PostgreSQL mark infinite days and instants
DATE_INFINITY, DATE_MINUS_INFINITY = 2**31 - 1, -(2**31 - 1)
STAMP_INFINITY, STAMP_MINUS_INFINITY = 2**63 - 1, -(2**63 - 1)
PG_DATE_INFINITY, PG_DATE_MINUS_INFINITY = 2**31 - 1, -(2**31)
PG_STAMP_INFINITY, PG_STAMP_MINUS_INFINITY = 2**63 - 1, -(2**63)

# what Python's and Arrow's calendars write as PostgreSQL does; a day is left for the zone's offset
PLAIN_DATE_FROM, PLAIN_DATE_TO = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
PYTHON_STAMP_FROM, PYTHON_STAMP_TO = PLAIN_DATE_FROM * DAY_US, (PLAIN_DATE_TO + 1) * DAY_US
PLAIN_STAMP_FROM, PLAIN_STAMP_TO = (PLAIN_DATE_FROM + 1) * DAY_US, PLAIN_DATE_TO * DAY_US

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day counted from 1970-01-01, proleptic Gregorian; the year 0 is 1 BC."""
    days += 719_468
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def days_from_civil(year: int, month: int, day: int) -> int:
    """The inverse of ``civil``."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def date_text(days: int) -> str:
    if days >= DATE_INFINITY:
        return "infinity"
    if days <= DATE_MINUS_INFINITY:
        return "-infinity"
    text, suffix = _date(days)
    return text + suffix


def _date(days: int) -> tuple[str, str]:
    year, month, day = civil(days)
    return f"{year if year > 0 else 1 - year:04d}-{month:02d}-{day:02d}", "" if year > 0 else " BC"


def time_text(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def stamp_text(microseconds: int) -> str:
    """A timestamp without a zone."""
    return _stamp(microseconds, "")


def _stamp(microseconds: int, offset: str) -> str:
    if microseconds >= STAMP_INFINITY:
        return "infinity"
    if microseconds <= STAMP_MINUS_INFINITY:
        return "-infinity"
    days, rest = divmod(microseconds, DAY_US)
    text, suffix = _date(days)
    return f"{text} {time_text(rest)}{offset}{suffix}"


def instant_text(microseconds: int, zone: tzinfo) -> str:
    """A timestamp with a zone, as a session in ``zone`` sees it."""
    if not STAMP_MINUS_INFINITY < microseconds < STAMP_INFINITY:
        return _stamp(microseconds, "")
    offset = offset_seconds(microseconds, zone)
    return _stamp(microseconds + offset * 1_000_000, offset_text(offset))


def offset_seconds(microseconds: int, zone: tzinfo) -> int:
    """East of Greenwich. Outside of Python's calendar the zone's rules of the nearest year it has are used, shifted by
    whole cycles of 400 years so that the weekdays agree."""
    cycle = 146_097 * DAY_US
    while microseconds < PLAIN_STAMP_FROM + DAY_US:
        microseconds += cycle
    while microseconds > PLAIN_STAMP_TO - DAY_US:
        microseconds -= cycle
    offset = (_EPOCH + timedelta(microseconds=microseconds)).astimezone(zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def offset_text(seconds: int) -> str:
    """``+02``, ``+05:30`` or ``+00:53:28``."""
    sign, size = ("-", -seconds) if seconds < 0 else ("+", seconds)
    hours, rest = divmod(size, 3600)
    text = f"{sign}{hours:02d}"
    if rest:
        text += f":{rest // 60:02d}"
        if rest % 60:
            text += f":{rest % 60:02d}"
    return text


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """A session's TimeZone setting; 22023 where it is unknown."""
    if name.upper() in ("UTC", "GMT", "ETC/UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f'invalid value for parameter "TimeZone": "{name}"'
        ) from error
