"""Interval constants of continuous queries: PostgreSQL's spellings as months, days and microseconds in one text."""

from __future__ import annotations

import re

from mvserver.types import intervals

_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)\s*", re.ASCII)


def parts_of(text: str) -> tuple[int, int, int]:
    """Months, days and microseconds of what :func:`parse_interval` gives."""
    months, days, micros = text.split(" ")
    return int(months), int(days), int(micros)


def parse_interval(text: str, default_unit: str | None = None) -> str:
    """``'1 day 02:30'``, ``'P3M'``, ``'1 day ago'``; a bare number takes ``default_unit``. 22007 for what is none."""
    if default_unit is not None and _NUMBER.fullmatch(text):
        text = f"{text} {default_unit}"
    months, days, micros = intervals.parse(text)
    return f"{months} {days} {micros}"
