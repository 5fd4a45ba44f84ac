"""The date and time overloads of + - and *: dates with whole days, timestamps with intervals, differences."""

from __future__ import annotations

from collections.abc import Callable

from mvserver.compiler.capabilities.build import (
    DATE,
    INSTANT,
    INTEGER,
    INTERVAL,
    TIME,
    TIMESTAMP,
    example,
    on,
)
from mvserver.compiler.capabilities.model import Overload
from mvserver.sql import types as t
from mvserver.sql.worked_examples import Example


def _difference(left: str, right: str) -> str:
    """Days and the rest, as PostgreSQL makes an interval of two timestamps."""
    micros = f"(unix_micros(CAST({left} AS TIMESTAMP_LTZ)) - unix_micros(CAST({right} AS TIMESTAMP_LTZ)))"
    return (
        f"make_interval(0, 0, 0, CAST({micros} div 86400000000L AS INT), 0, 0, "
        f"CAST(({micros} % 86400000000L) AS DECIMAL(18,0)) / 1000000)"
    )


PLUS: tuple[Callable[[str], Overload], ...] = (
    on((DATE, INTEGER), t.DATE, "date_add({0}, {1})"),
    on((INTEGER, DATE), t.DATE, "date_add({1}, {0})"),
    on((DATE, INTERVAL), t.TIMESTAMP, "(CAST({0} AS TIMESTAMP_NTZ) + {1})"),
    on((INTERVAL, DATE), t.TIMESTAMP, "(CAST({1} AS TIMESTAMP_NTZ) + {0})"),
    on((TIMESTAMP, INTERVAL), t.TIMESTAMP, "({0} + {1})"),
    on((INTERVAL, TIMESTAMP), t.TIMESTAMP, "({1} + {0})"),
    on((INSTANT, INTERVAL), t.TIMESTAMP_LTZ, "({0} + {1})"),
    on((INTERVAL, INSTANT), t.TIMESTAMP_LTZ, "({1} + {0})"),
    on((INTERVAL, INTERVAL), t.INTERVAL, "({0} + {1})"),
    on(
        (DATE, TIME),
        t.TIMESTAMP,
        "CAST(concat(CAST({0} AS STRING), ' ', CAST({1} AS STRING)) AS TIMESTAMP_NTZ)",
    ),
)
MINUS: tuple[Callable[[str], Overload], ...] = (
    on((DATE, INTEGER), t.DATE, "date_sub({0}, {1})"),
    on((DATE, DATE), t.INTEGER, "datediff({0}, {1})"),
    on((DATE, INTERVAL), t.TIMESTAMP, "(CAST({0} AS TIMESTAMP_NTZ) - {1})"),
    on((TIMESTAMP, INTERVAL), t.TIMESTAMP, "({0} - {1})"),
    on((INSTANT, INTERVAL), t.TIMESTAMP_LTZ, "({0} - {1})"),
    on((TIMESTAMP, TIMESTAMP), t.INTERVAL, lambda a, _: _difference(str(a[0]), str(a[1]))),
    on((INSTANT, INSTANT), t.INTERVAL, lambda a, _: _difference(str(a[0]), str(a[1]))),
    on((INTERVAL, INTERVAL), t.INTERVAL, "({0} - {1})"),
    on((INTERVAL,), t.INTERVAL, "(- {0})"),
)
TIMES: tuple[Callable[[str], Overload], ...] = (
    on((INTERVAL, INTEGER), t.INTERVAL, "({0} * {1})"),
    on((INTEGER, INTERVAL), t.INTERVAL, "({1} * {0})"),
)
PLUS_EXAMPLES: tuple[Example, ...] = (
    example("DATE '2024-02-28' + 2", "2024-03-01"),
    example("3 + DATE '2024-01-30'", "2024-02-02"),
    example("TIMESTAMP '2024-01-31 10:00:00' + INTERVAL '1 month'", "2024-02-29 10:00:00"),
    example("DATE '2024-01-01' + INTERVAL '1 day 02:30'", "2024-01-02 02:30:00"),
    example("DATE '2024-01-01' + TIME '12:30:00'", "2024-01-01 12:30:00"),
)
MINUS_EXAMPLES: tuple[Example, ...] = (
    example("DATE '2024-03-01' - DATE '2024-02-01'", "29"),
    example("DATE '2024-03-01' - 1", "2024-02-29"),
    example("TIMESTAMP '2024-03-31 00:00:00' - INTERVAL '1 month'", "2024-02-29 00:00:00"),
    example("EXTRACT(EPOCH FROM (TIMESTAMP '2024-01-02 00:00:01' - TIMESTAMP '2024-01-01 00:00:00'))", "86401.000000"),
    example("EXTRACT(DAY FROM (TIMESTAMP '2024-03-01 06:00:00' - TIMESTAMP '2024-02-01 00:00:00'))", "29"),
)
TIMES_EXAMPLES: tuple[Example, ...] = (
    example("TIMESTAMP '2024-01-01 00:00:00' + INTERVAL '1 hour' * 36", "2024-01-02 12:00:00"),
)
