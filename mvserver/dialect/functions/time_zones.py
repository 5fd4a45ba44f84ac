"""Names of time zones as PostgreSQL takes them, where they are constants.

DuckDB knows other abbreviations (``BST`` is Bangladesh's time there, ``PST`` has a summer), and reads ``UTC+3`` as
three hours east, where POSIX and PostgreSQL count to the west.
"""

from __future__ import annotations

import re

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog.static_data import timezone_abbreviations
from mvserver.pgcatalog.timezones import zones

_POSIX = re.compile(r"(?:<[^>]+>|[a-z]*)(?P<sign>[+-]?)(?P<hours>\d{1,2})(?::(?P<minutes>\d{2}))?", re.I)
_HOURS_MAX = 23
_WITH_ABBREVIATION = re.compile(r"(?P<time>.*\d.*?)\s*(?P<zone>[a-z]{3,})\s*", re.I | re.S)
_NO_ZONES = frozenset({"utc", "gmt"})  # DuckDB's are the same


def adapt(node: exp.Expr) -> None:
    """The constant zone of AT TIME ZONE and of functions, in place. 22023 for one that is none."""
    if isinstance(node, exp.AtTimeZone | exp.TimestampTrunc):
        zone = node.args.get("zone")
    elif isinstance(node, exp.Anonymous) and node.name.lower() == "timezone" and len(node.expressions) == 2:
        zone = node.expressions[0]
    elif isinstance(node, exp.Anonymous) and node.name.lower() == "make_timestamptz" and len(node.expressions) == 7:
        zone = node.expressions[6]
    else:
        return
    if isinstance(zone, exp.Literal) and zone.is_string:
        zone.set("this", resolved(zone.name))


def resolved(name: str) -> str:
    """DuckDB's name of a zone: an abbreviation first, then a zone of IANA's data, then POSIX's form."""
    word = name.lower()
    meant = timezone_abbreviations().get(word)
    if meant is not None:
        return _offset(int(meant)) if meant.lstrip("-").isdigit() else meant
    if word in zones():
        return zones()[word]
    posix = _POSIX.fullmatch(name)
    if posix is None or int(posix["hours"]) > _HOURS_MAX:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'time zone "{name}" not recognized')
    seconds = int(posix["hours"]) * 3600 + int(posix["minutes"] or 0) * 60
    return _offset(seconds if posix["sign"] == "-" else -seconds)


def with_offset(text: str) -> str:
    """A time with an abbreviation, ``2024-07-01 12:00 PST``, with what that stands for."""
    found = _WITH_ABBREVIATION.fullmatch(text)
    meant = None if found is None else timezone_abbreviations().get(found["zone"].lower())
    if found is None or meant is None or found["zone"].lower() in _NO_ZONES:
        return text
    if not meant.lstrip("-").isdigit():
        return f"{found['time']} {meant}"
    time = found["time"] if ":" in found["time"] else f"{found['time']} 00:00"
    return f"{time}{_offset(int(meant)).removeprefix('GMT')}"


def _offset(seconds: int) -> str:
    hours, rest = divmod(abs(seconds), 3600)
    return f"GMT{'-' if seconds < 0 else '+'}{hours:02}:{rest // 60:02}"
