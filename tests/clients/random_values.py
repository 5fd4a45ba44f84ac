"""Random expressions over values at the edges of their types, a family at a time; the same seed makes the same ones."""

from __future__ import annotations

import random
from collections.abc import Callable

DAYS = ("2024-02-29", "1999-12-31", "2000-01-01", "0001-01-01", "1582-10-15", "9999-12-31", "1970-01-01", "2024-03-31")
CLOCKS = ("00:00:00", "23:59:59.999999", "12:00:00.5", "01:02:03.000004", "09:30:00")
SPANS = (
    "1 day", "-1 day", "1 month", "1 year 2 months 3 days", "36 hours", "-00:00:01.5", "1 mon -1 day", "0",
    "2 weeks", "-3 years 04:05:06.789", "100 days", "90 minutes",
)  # fmt: skip
UNITS = ("year", "month", "day", "hour", "minute", "second", "week", "quarter", "decade", "century")
FIELDS = ("year", "month", "day", "hour", "minute", "second", "dow", "doy", "isodow", "week", "quarter")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
PATTERNS = (
    "YYYY-MM-DD HH24:MI:SS", "FMMonth DD, YYYY", "Dy DD Mon YY", "HH12:MI:SS AM", "IYYY-IW-ID", "DDD Q J",
    "HH24:MI:SS.US",
    "SSSS MS", "FMDay FMDD FMMon", "YYYY\"th year\" CC",
)  # fmt: skip
NUMBERS = (
    "0",
    "1",
    "-1",
    "0.5",
    "-0.5",
    "1.005",
    "123456.789",
    "-99999.995",
    "0.000001",
    "12345678901234567.89",
    "7",
    "1e3",
)
FRACTIONS = ("0", "0.5", "-0.5", "0.000001", "-0.25")  # no digits before the point
FLOATS = (
    "0", "-0", "1", "0.1", "1e15", "1e16", "123456789012345680", "1e-5", "0.0001", "1.5e300", "-2.5e-300", "3.4e38",
    "NaN", "Infinity", "-Infinity", "100000", "1e20", "0.30000000000000004",
)  # fmt: skip
PICTURES = (
    "999999.99",
    "FM999,999.009",
    "0000",
    "S9999",
    "99.9",
    "FM0.00",
    "9,999,999",
    "MI999.9",
    "999PR",
    "FM990.999",
)
BYTES = ("", "\\\\x", "\\\\x00", "\\\\xdeadbeef", "\\\\xFF00ff", "abc", "\\\\x0a0d09")
UUIDS = (
    "00000000-0000-0000-0000-000000000000", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
    "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}", "a0eebc999c0b4ef8bb6d6bb9bd380a11",
)  # fmt: skip
COMPARISONS = ("<", "<=", "=", "<>", ">=", ">")


class Maker:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.one = self._random.choice

    def day(self) -> str:
        return f"date '{self.one(DAYS)}'"

    def stamp(self) -> str:
        return f"timestamp '{self.one(DAYS[:3] + DAYS[4:])} {self.one(CLOCKS)}'"

    def instant(self) -> str:
        return f"timestamptz '{self.one(DAYS[:2] + DAYS[6:])} {self.one(CLOCKS)}{self.one(('Z', '+02', '-05:30'))}'"

    def span(self) -> str:
        return f"interval '{self.one(SPANS)}'"

    def number(self) -> str:
        return self.one((
            f"{self.one(NUMBERS)}", f"({self.one(NUMBERS)})::numeric(20, {self.one('0123456')})",
            f"({self.one(FRACTIONS)})::numeric{self.one(('(6, 6)', '(9, 9)', '(12, 12)'))}",
        ))  # fmt: skip

    def double(self) -> str:
        return f"'{self.one(FLOATS)}'::float8"

    def dates(self) -> str:
        return self.one((
            lambda: f"{self.day()} + {self.one(('1', '-1', '365', '0'))}",
            lambda: f"{self.day()} - {self.day()}",
            lambda: f"{self.stamp()} + {self.span()}",
            lambda: f"{self.stamp()} - {self.stamp()}",
            lambda: f"date_trunc('{self.one(UNITS)}', {self.stamp()})",
            lambda: f"extract({self.one(FIELDS)} FROM {self.stamp()})",
            lambda: f"({self.stamp()})::date",
            lambda: f"({self.stamp()})::time",
            lambda: f"({self.day()} + time '{self.one(CLOCKS)}')::text",
            lambda: f"{self.stamp()} {self.one(COMPARISONS)} {self.day()}",
            lambda: f"age({self.stamp()}, {self.stamp()})",
            lambda: f"({self.stamp()})::text || '|' || ({self.day()})::text",
        ))()  # fmt: skip

    def intervals(self) -> str:
        return self.one((
            self.span,
            lambda: f"({self.span()})::text",
            lambda: f"{self.span()} {self.one('+-')} {self.span()}",
            lambda: f"{self.span()} * {self.one(('2', '-1', '0.5', '1.5'))}",
            lambda: f"-{self.span()}",
            lambda: f"extract({self.one(('epoch', 'day', 'hour', 'month', 'second', 'year'))} FROM {self.span()})",
            lambda: f"{self.span()} {self.one(COMPARISONS)} {self.span()}",
        ))()  # fmt: skip

    def patterns(self) -> str:
        return self.one((
            lambda: f"to_char({self.stamp()}, '{self.one(PATTERNS)}')",
            lambda: f"to_char(({self.one(NUMBERS)})::numeric, '{self.one(PICTURES)}')",
            lambda: f"to_char({self.one(('0', '5', '-5', '42', '1234', '-99999'))}, '{self.one(PICTURES)}')",
        ))()  # fmt: skip

    def numerics(self) -> str:
        return self.one((
            lambda: f"({self.one(NUMBERS)})::numeric({self.one(('5', '10', '20'))}, {self.one('0123')})",
            lambda: f"({self.number()})::text",
            lambda: f"{self.number()} {self.one('+-*')} {self.number()}",
            lambda: f"round(({self.one(NUMBERS)})::numeric(20, 6), {self.one('0123')})",
            lambda: f"{self.one(('ceil', 'floor', 'abs', 'sign'))}({self.number()})",
            lambda: f"({self.number()})::{self.one(('int', 'bigint', 'smallint', 'float8', 'real'))}",
            lambda: f"{self.number()} {self.one(COMPARISONS)} {self.number()}",
            lambda: f"mod({self.one(('7', '-7', '7.5', '-7.5'))}, {self.one(('2', '-2', '0.5', '3'))})",
        ))()  # fmt: skip

    def floats(self) -> str:
        return self.one((
            self.double,
            lambda: f"({self.double()})::text",
            lambda: f"'{self.one(FLOATS[:10])}'::float4",
            lambda: f"('{self.one(FLOATS[:10])}'::float4)::text",
            lambda: f"{self.double()} {self.one(COMPARISONS)} {self.double()}",
            lambda: f"({self.double()})::{self.one(('int', 'bigint'))}",
            lambda: f"round({self.double()})",
            lambda: f"{self.double()} {self.one('+-*')} {self.double()}",
        ))()  # fmt: skip

    def zones(self) -> str:
        return self.one((
            self.instant,
            lambda: f"({self.instant()})::text",
            lambda: f"{self.instant()} AT TIME ZONE '{self.one(ZONES)}'",
            lambda: f"{self.stamp()} AT TIME ZONE '{self.one(ZONES)}'",
            lambda: f"{self.instant()} + {self.span()}",
            lambda: f"date_trunc('{self.one(UNITS[:8])}', {self.instant()}, '{self.one(ZONES)}')",
            lambda: f"extract({self.one(FIELDS)} FROM {self.instant()})",
            lambda: f"({self.instant()})::date",
            lambda: f"{self.instant()} - {self.instant()}",
        ))()  # fmt: skip

    def bytes(self) -> str:
        raw = f"'{self.one(BYTES)}'::bytea".replace("\\\\", "\\")
        other = f"'{self.one(BYTES)}'::bytea".replace("\\\\", "\\")
        return self.one((
            raw, f"({raw})::text", f"encode({raw}, '{self.one(('hex', 'base64'))}')", f"octet_length({raw})",
            f"{raw} || {other}", f"{raw} {self.one(COMPARISONS)} {other}", f"md5({raw})",
            f"'{self.one(UUIDS)}'::uuid", f"('{self.one(UUIDS)}'::uuid)::text",
            f"'{self.one(UUIDS)}'::uuid {self.one(COMPARISONS)} '{self.one(UUIDS)}'::uuid",
        ))  # fmt: skip


FAMILIES: dict[str, Callable[[Maker], str]] = {
    "dates": Maker.dates, "intervals": Maker.intervals, "patterns": Maker.patterns, "numerics": Maker.numerics,
    "floats": Maker.floats, "zones": Maker.zones, "bytes": Maker.bytes,
}  # fmt: skip


def expressions(family: str, seed: int, count: int) -> list[str]:
    maker = Maker(seed)
    return list(dict.fromkeys(FAMILIES[family](maker) for _ in range(count)))
