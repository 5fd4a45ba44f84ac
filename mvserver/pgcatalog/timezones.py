"""The time zones of IANA's data, and as pg_timezone_names has them: what their clocks say now."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from functools import cache

import pyarrow as pa
import pytz

_SCHEMA = pa.schema(
    [("name", pa.string()), ("abbrev", pa.string()), ("utc_offset", pa.duration("us")), ("is_dst", pa.bool_())]
)


def timezones_table() -> pa.Table:
    rows = []
    for name in pytz.all_timezones:
        now = dt.datetime.now(pytz.timezone(name))
        rows.append({"name": name, "abbrev": now.tzname(), "utc_offset": now.utcoffset(), "is_dst": bool(now.dst())})
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


@cache
def zones() -> dict[str, str]:
    """Their names by what they are in lower case."""
    return {zone.lower(): zone for zone in zoneinfo.available_timezones() if not zone.startswith(("posix", "right"))}
