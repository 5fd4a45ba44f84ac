"""The time zones of IANA's data, and as pg_timezone_names has them: what their clocks say now."""

from __future__ import annotations

import datetime as dt
import zoneinfo

import pyarrow as pa
import pytz

_SCHEMA = pa.schema(
    [("name", pa.string()), ("abbrev", pa.string()), ("utc_offset", pa.duration("us")), ("is_dst", pa.bool_())]
)
_MANY = 400  # of some 600
_known: dict[str, str] = {}


def timezones_table() -> pa.Table:
    rows = []
    for name in pytz.all_timezones:
        now = dt.datetime.now(pytz.timezone(name))
        rows.append({"name": name, "abbrev": now.tzname(), "utc_offset": now.utcoffset(), "is_dst": bool(now.dst())})
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def zones() -> dict[str, str]:
    """Their names by what they are in lower case. Files that cannot be opened at the moment are left out by Python
    without a word, so few names are no reason not to look again."""
    if len(_known) < _MANY:
        names = zoneinfo.available_timezones()
        _known.update((zone.lower(), zone) for zone in names if not zone.startswith(("posix", "right")))
    return _known
