"""Random expressions over one row, and rows that are awkward on purpose.

An expression is one text, which PostgreSQL reads as we do. Where the meaning differs by design, it is not written here;
docs/sql/functions.md has the notes.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

COLUMNS: dict[str, str] = {
    "id": "INTEGER",
    "i2": "SMALLINT",
    "i4": "INTEGER",
    "i8": "BIGINT",
    "n": "DECIMAL(10, 2)",
    "m": "DECIMAL(18, 6)",
    "f4": "REAL",
    "f8": "DOUBLE PRECISION",
    "s": "VARCHAR",
    "t": "VARCHAR",
    "number": "VARCHAR",  # texts that are or resemble numbers, truths, dates and times
    "truth": "VARCHAR",
    "moment": "VARCHAR",
    "clock": "VARCHAR",
    "b": "BOOLEAN",
    "d": "DATE",
    "ts": "TIMESTAMP",
    "tz": "TIMESTAMPTZ",
    "tm": "TIME",
}

_INF = float("inf")
_VALUES: dict[str, tuple[Any, ...]] = {
    "i2": (0, 1, -1, 7, -7, 32767, -32768, 100),
    "i4": (0, 1, -1, 2, -3, 10, 2**31 - 1, -(2**31), 12345),
    "i8": (0, 1, -1, 5, -8, 2**53 + 1, 2**63 - 1, -(2**63), 10**12),
    "n": tuple(map(Decimal, ("0", "0.01", "-0.01", "2.50", "-2.50", "0.05", "-1.15", "99999999.99", "-7", "1.05"))),
    "m": tuple(map(Decimal, ("0", "0.000001", "-0.5", "1.5", "2.5", "-3.000005", "123456.789012", "0.045", "10"))),
    "f4": (0.0, -0.0, 0.5, -1.5, 2.5, 0.1, 1e10, 16777216.0, float("nan"), _INF, -_INF),
    "f8": (0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 1e15, 123456789.125, 1e-5, 1e300, 1e-300,
        float("nan"), _INF, -_INF),
    "s": (
        "", " ", "a", "abc", "ABC", "aXbXc", "hello world", "é", "e\u0301", "straße", "漢字", "😀a😀", "a\nb", "a\tb",
        "%_\\", "a.b", "O'Neil", "  pad  ", "x,y,,z", ",", "aaa", "-12", "ABAB", "Ünï", "$1\\1", "\\", "\u00a0n",
        "[a]",
    ),
    "t": ("", "a", "b", "ab", " ", ",", "X", "é", "😀", "%", "_", "\\", "aa", "A", "l", "."),
    "number": (
        "12", " 12 ", "+5", "-0", "1e3", "1.5", "2.5", "-1.5", ".5", "5.", "", " ", "NaN", "Infinity", "-inf",
        "1d", "1f",
        "1L", "0x1F", "0b11", "1,5", "1 2", "１２", "\t7\n", "99999999999", "9223372036854775808", "1e400", "1e-400",
        "--1", "+-1", "e5", "1e", "true", "٣", "127", "-129", "0012", "1.", "+", "0.000000049", "\u00a012",
        "12\u2003",
        "Infinity ", "infinit", "nan", "+Infinity", "1__0", "1_000", "\v3", "\x1c4", "5\x01",
    ),
    "truth": (
        "t", "true", "TRUE", " yes ", "on", "1", "f", "no", "off", "0", "of", "o", "", "2", "truee", "Y", "N",
        "\ttrue\n",
        "fals", "\u00a0t",
    ),
    "moment": (
        "2024-02-29", "2023-02-29", "2024-2-9", "2024", "2024-02", "20240229", "2024-02-29 24:00:00",
        "2024-02-29 24:00:01",
        "2024-02-29 23:59:60", "2024-02-29T10:11:12.1234567", "2024-02-29 23:59:59.9999999", "10:11:12", "T10:11",
        "10:11",
        "2024-02-29 10:11:12+02:30", "2024-02-29 10:11:12-08", "2024-02-29 10:11:12Z", "2024-02-29Z", "2024-02-29T",
        "2024-02-29 ", " 2024-02-29", "2024-02-29 10", "2024-02-29 10:11", "2024-02-29 10:60:00",
        "2024-02-29 10:11:12.",
        "2024-02-29  10:11:12", "0001-01-01", "0000-01-01", "-0001-01-01", "+2024-01-01", "12024-01-01", "99-01-01",
        "2024-13-01", "2024-00-10", "2024-01-32", "1969-12-31 23:59:59.999999", "x", "", "2024-02-29x",
        "2024-02-29 x",
        "2024-02-29 10:11:12 UTC", "2024-02-29 10:11:12 +02", "2024-02-29 10:11:12+0230", "2024-02-29 1:2:3",
        "2024-02-29T10:11:12+14:30", "2024-02-29 10:11:12+16:00", "1582-10-10", "1500-02-29", "2024-02-29t10:11:12",
        "2024-02-29 10:11:12.5 +01:00", "294277-01-01", "2024-02-29 101112", "2024-02-29 GMT+2",
        "2024-02-29 10:11:12UTC+2",
    ),
    "clock": (
        "10:11:12", "10:11", "10", "24:00:00", "23:59:60", "25:00:00", "1:2:3", " 10:11:12 ", "10:11:12.1234567",
        "23:59:59.9999999", "10:11:12 PM", "10:11 am", "101112", "10:11:12+02", "2024-02-29 10:11:12", "", "x",
        "10:60",
        "10:11:12.", "T10:11:12", "-10:11:12",
    ),
    "b": (True, False),
    "d": tuple(
        map(dt.date.fromisoformat, (
            "2024-02-29", "2024-01-31", "2023-12-31", "1969-12-31", "1970-01-01", "1900-03-01", "2000-12-31",
            "1001-01-01",
            "9999-12-31", "2021-01-03", "2020-12-31", "1582-10-10", "2024-03-31", "2001-01-01", "1901-01-01",
        ))
    ),
    "ts": tuple(
        map(dt.datetime.fromisoformat, (
            "2024-02-29 23:59:59.999999", "2024-01-31 00:00:00", "1969-12-31 23:59:59.5", "2024-03-31 02:30:00",
            "2024-10-27 02:30:00", "1900-01-01 00:00:00", "2024-10-27 03:00:00", "2020-12-31 12:00:00.000001",
            "2000-01-01 00:00:00", "1582-10-10 01:02:03", "1001-01-01 00:00:00", "2024-11-03 01:30:00",
        ))
    ),
    "tm": tuple(map(dt.time.fromisoformat, ("00:00:00", "23:59:59.999999", "12:30:00", "10:11:12.345678"))),
}  # fmt: skip
_VALUES["tz"] = tuple(value.replace(tzinfo=dt.UTC) for value in _VALUES["ts"])


def rows(rng: random.Random) -> list[tuple[Any, ...]]:
    """Each value of each column at least once, beside chance others; some are NULL, and so is the last row."""
    count = max(map(len, _VALUES.values()))
    columns = []
    for name in COLUMNS:
        if name == "id":
            columns.append(list(range(count + 1)))
            continue
        values = list(_VALUES[name])
        rng.shuffle(values)
        given = list(itertools.islice(itertools.cycle(values), count))
        given[len(values) :] = [None if rng.random() < 0.15 else value for value in given[len(values) :]]
        columns.append([*given, None])
    return list(zip(*columns, strict=True))


# What an expression of a domain may be: {x} stands for one of domain x, {=a|b|c} for one of the words.
_FORMS: dict[str, tuple[str, ...]] = {
    "i": (
        "i2", "i4", "i8", "i4", "{=0|1|2|-1|3|7|10|100}", "{i} + {i}", "{i} - {i}", "{i} * {i}", "{i} / {i}",
        "{i} % {i}",
        "-{i}", "abs({i})", "length({s})", "position({t} IN {s})", "strpos({s}, {t})", "ascii({s})",
        "octet_length({s})",
        "bit_length({s})", "{d} - {d}", "CASE WHEN {b} THEN {i} ELSE {i} END", "coalesce({i}, {i})",
        "nullif({i}, {i})",
        "greatest({i}, {i})", "least({i}, {i}, {i})", "CAST({n} AS INTEGER)", "CAST({f} AS BIGINT)",
        "CAST(f4 AS SMALLINT)", "CAST({b} AS INTEGER)", "CAST(number AS {=SMALLINT|INTEGER|BIGINT})",
        "mod({i}, {i})", "{i} & {i}", "{i} | {i}", "{i} # {i}", "(~ {i})", "i4 << {=0|1|31|33}", "i8 >> {=0|1|63|65}",
        "i4 >> {=1|31|40}", "regexp_count({s}, {=regex})", "regexp_instr({s}, {=regex})",
        "width_bucket({f}, {=0e0|-3e0|5e0|1e0}, {=10e0|0e0|5e0}, {=5|1|0|-1})", "cardinality({w})",
        "array_position({w}, 'a')", "CAST(i8 AS {=INTEGER|SMALLINT})", "array_length({w}, 1)",
        "{a}[{=0|1|2|5|-1}]",
    ),
    "n": (
        "n", "m", "n", "{=0.5|2.5|-1.5|1.005|0.0|100.00}", "{n} + {n}", "{n} - {n}", "n * {n}", "m * n",
        "round({n} / n, 4)",
        "round({n} / {i}, 3)", "n % {n}", "{n} % m", "mod({n}, {i})", "round({n})", "round({n}, {=0|1|2|-1|-2|5})",
        "trunc({n})", "trunc({n}, {=0|1|-1|3})", "ceil({n})", "floor({n})", "abs({n})", "sign({n})", "div({n}, {n})",
        "-{n}", "{n} + {i}", "i4 * {n}", "CASE WHEN {b} THEN {n} ELSE {i} END", "coalesce({n}, {i})",
        "nullif({n}, {n})",
        "greatest({n}, {i})", "least({n}, {n})", "CAST({i} AS DECIMAL(20, 2))", "CAST({f} AS DECIMAL(20, 3))",
        "CAST(f4 AS DECIMAL(20, 3))", "CAST(number AS DECIMAL(20, 6))", "CAST(number AS DECIMAL(4, 1))",
        "extract({=year|month|day|hour|minute|second|dow|isodow|doy|week|isoyear|quarter|epoch|milliseconds|microseconds|"
        "century|decade|millennium} FROM {=ts|tz})",
        "extract({=year|month|day|dow|isodow|doy|week|isoyear|quarter|epoch|century|decade|millennium} FROM {d})",
        "extract({=hour|minute|second|milliseconds|microseconds|epoch} FROM tm)",
        "extract({=year|month|day|hour|minute|second|epoch} FROM {iv})", "factorial({=0|5|20})", "round({n}, 1) * 10",
        "CAST({n} AS DECIMAL(6, 1))", "CASE {i} WHEN 0 THEN {n} WHEN 1 THEN {n} END",
    ),
    "f": (
        "f8", "f4", "f8", "{=0.5e0|-2.5e0|1e0|0e0}", "{f} + {f}", "{f} - {f}", "{f} * {f}", "{f} / {f}", "-{f}",
        "abs({f})",
        "round({f})", "trunc({f})", "ceil({f})", "floor({f})", "sqrt({f})", "cbrt({f})", "exp({f})", "ln({f})",
        "log({f})",
        "sin({f})", "cos({f})", "atan({f})", "power({f}, {f})", "{f} + {i}", "{n} + {f}", "{f} * n", "sign({f})",
        "degrees({f})", "radians({f})", "asin({f})", "acos({f})", "atan2({f}, {f})", "sinh({f})", "tanh({f})",
        "cosh({f})",
        "CASE WHEN {b} THEN {f} ELSE {i} END", "coalesce({f}, {n})", "greatest({f}, {f})", "least({f}, {f}, {n})",
        "nullif(f8, {f})", "CAST({i} AS DOUBLE PRECISION)", "CAST({n} AS DOUBLE PRECISION)", "CAST(f8 AS REAL)",
        "CAST(number AS {=DOUBLE PRECISION|REAL})", "f4 * {=2|0.5|f4}", "f4 + i4", "f4 + n", "f4 / f4", "f4 - f8",
        "date_part('{=second|epoch|hour|dow|milliseconds}', {ts})", "cot({f})", "tan({f})", "log10({f})", "pi()",
        "CAST(i8 AS REAL)", "CAST(n AS REAL)",
    ),
    "s": (
        "s", "t", "s", "'{=a|é|x,y|%|\\|abc|}'", "{s} || {s}", "concat({s}, {i}, {t})",
        "concat_ws({t}, {s}, {i}, {t})",
        "concat_ws('-', {d}, {n2})", "substring({s}, {k})", "substring({s}, {k}, {k})", "left({s}, {k})",
        "right({s}, {k})",
        "substring({s} FROM {k} FOR {k})",
        "lpad({s}, {=0|3|8|-1}, {t})", "rpad({s}, {=0|3|8|-1}, {t})", "lpad({s}, 6)", "trim({s})", "ltrim({s})",
        "rtrim({s}, {t})", "btrim({s}, {t})", "trim(BOTH {t} FROM {s})", "trim(LEADING {t} FROM {s})",
        "replace({s}, {t}, {t})", "reverse({s})", "repeat({s}, {=-1|0|2|3})",
        "split_part({s}, {t}, {=1|2|3|-1|-2|0|9})",
        "translate({s}, {s}, {t})", "overlay({s} PLACING {t} FROM {=1|2|5|0} FOR {=0|1|2|-1})",
        "overlay({s} PLACING {t} FROM {=1|2|9})", "chr({=65|233|128512|0})", "to_hex({i})", "md5({s})",
        "quote_literal({s})",
        "regexp_replace({s}, {=regex}, {=replacement})", "regexp_replace({s}, {=regex}, {=replacement}, 'g')",
        "regexp_substr({s}, {=regex})", "CASE WHEN {b} THEN {s} ELSE {t} END", "coalesce({s}, {t})",
        "nullif({s}, {t})",
        "greatest({s}, {t})", "least({s}, {t})", "CAST({i} AS VARCHAR)", "CAST({f} AS VARCHAR)",
        "CAST(f4 AS VARCHAR)",
        "CAST({b} AS VARCHAR)", "CAST({d} AS VARCHAR)", "CAST({ts} AS VARCHAR)", "CAST({tz} AS VARCHAR)",
        "CAST(tm AS VARCHAR)",
        "CAST({s} AS VARCHAR(3))", "{s} || {i}", "{d} || {s}", "{n2} || ''", "CAST(n AS VARCHAR)", "f8 || 'x'",
        "to_char({ts}, {=pattern})", "to_char({d}, {=pattern})", "encode(CAST({s} AS BYTEA), '{=hex|base64}')",
        "array_to_string({w}, {t})", "array_to_string({w}, ',', {t})", "{w}[{=1|2|0|9}]", "array_to_string({a}, ',')",
        "array_to_string(regexp_match({s}, {=regex}), ',', '-')", "initcap({x})", "upper({x})", "lower({x})",
        "encode(sha256(CAST({s} AS BYTEA)), 'hex')", "CAST(CAST({s} AS BYTEA) AS VARCHAR)",
    ),
    "x": ("'{=aBc dEf|hello-World 9x|o''neil|a_b c|}'", "lower({x})", "upper({x})", "reverse({x})",
        "replace({x}, 'a', 'B')"),
    "t": ("t", "'{=a|,|X|é|ab|}'", "left({s}, 1)"),
    "k": ("i4 % 5", "{=1|2|3|0|-1|-2|9}", "i2 % 4", "length(t)"),
    "n2": ("n", "round(n, 1)", "CAST({i} AS DECIMAL(20, 2))", "m"),
    "w": (
        "string_to_array({s}, '{=,|X|a|😀|}')", "ARRAY[{s}, {t}]", "array_append(string_to_array(s, ','), {t})",
        "array_cat(ARRAY[{t}], string_to_array({s}, 'X'))", "array_remove(string_to_array({s}, ','), 'a')",
    ),
    "a": ("ARRAY[{i}, i4, 3]", "array_append(ARRAY[1, 2], i4)", "array_prepend(i4, ARRAY[7])",
        "array_remove(ARRAY[i4, 1, 2, 1], 1)"),
    "b": (
        "b", "{b} AND {b}", "{b} OR {b}", "NOT {b}", "{i} < {i}", "{n} = {n}", "{f} > {f}", "{f} = {f}", "{s} < {s}",
        "{s} = {t}", "{d} >= {d}", "{ts} < {ts}", "tz = {tz}", "{i} IS NULL", "{b} IS TRUE", "{b} IS NOT FALSE",
        "{i} IS DISTINCT FROM {i}", "{f} IS NOT DISTINCT FROM {f}", "{i} BETWEEN {i} AND {i}",
        "{n} BETWEEN {i} AND {f}",
        "{i} IN (1, {i}, NULL)", "{n} IN (0, 2.5, {i})", "{f} IN (0, {f})", "{s} NOT IN ({t}, 'a')",
        "{s} LIKE {=like}",
        "{s} NOT LIKE {=like}", "{x} ILIKE {=ilike}", "{s} LIKE {t} || '%'", "{s} LIKE '%' || {t}",
        "{s} LIKE {=escaped} ESCAPE '{=!|#|%}'", "{s} SIMILAR TO {=similar}", "{s} ~ {=regex}", "{x} ~* {=regex}",
        "{s} !~ {=regex}",
        "starts_with({s}, {t})", "CAST(truth AS BOOLEAN)", "CAST({i} AS BOOLEAN)", "CASE WHEN {b} THEN {b} END",
        "coalesce({b}, {b})", "f4 = f8", "f4 = {=0.1|0.5|16777217}", "f4 = n", "f4 < i4", "i4 = f4", "i8 = f8",
        "i8 > m",
        "{d} = {ts}", "{d} < tz", "{ts} <= tz", "{b} = {b}", "{b} < {b}", "tm < {tm}", "greatest({b}, {b})",
        "f4 IN (0.1, 2)", "{s} <> {s}",
    ),
    "d": (
        "d", "d", "DATE '{=2024-02-29|1999-12-31}'", "{d} + {k}", "{d} - {k}", "{k} + d", "CAST({ts} AS DATE)",
        "CAST(tz AS DATE)",
        "make_date({=2024|2023|1900|2000}, {=2|1|13|0}, {=28|29|30|0})", "CAST(moment AS DATE)", "coalesce({d}, {d})",
        "greatest({d}, {d})", "to_date({=dates})",
    ),
    "ts": (
        "ts", "ts", "TIMESTAMP '2024-03-31 02:30:00'", "{ts} + {iv}", "{ts} - {iv}", "{d} + {iv}",
        "CAST({d} AS TIMESTAMP)",
        "date_trunc('{=second|minute|hour|day|week|month|quarter|year|decade|century|millennium|milliseconds}', {ts})",
        "date_bin('{=15 minutes|1 day|1 week|7 seconds|1 hour 1 second}', {ts}, "
        "TIMESTAMP '{=2024-01-01 00:00:00|1999-12-31 23:00:01}')",
        "CAST(moment AS TIMESTAMP)", "{tz} AT TIME ZONE '{=Europe/Berlin|America/New_York|Asia/Kolkata|UTC}'",
        "coalesce({ts}, {d})", "{d} + tm", "greatest({ts}, {ts})", "CAST({tz} AS TIMESTAMP)",
        "make_timestamp(2024, {=2|12|1}, {=28|29}, {=0|23|24}, {=0|59|60}, {=0|59.999999|60|12.5})",
    ),
    "tz": (
        "tz", "tz", "{tz} + {iv}", "{tz} - {iv}",
        "{ts} AT TIME ZONE '{=Europe/Berlin|America/New_York|Asia/Kolkata|Australia/Lord_Howe|UTC}'",
        "date_trunc('{=minute|hour|day|week|month|quarter|year|decade}', {tz})", "CAST(moment AS TIMESTAMPTZ)",
        "CAST({ts} AS TIMESTAMPTZ)",
        "to_timestamp({=0|1.5|-1.5|1700000000.123456|f8|i4})", "CAST({d} AS TIMESTAMPTZ)", "to_timestamp({=stamps})",
    ),
    "tm": ("tm", "TIME '12:00:00'", "CAST({ts} AS TIME)", "CAST(clock AS TIME)"),
    "iv": (
        "INTERVAL '{=1 month|1 day|36 hours|-1 month|1 year 2 months 3 days 04:05:06.789|"
        "-3 days 5 hours|0.5 days|1 week|90 minutes}'",
        "{ts} - {ts}", "tz - {tz}", "INTERVAL '1 day' * {k}", "{k} * INTERVAL '1 month 2 hours'", "{iv} + {iv}",
        "{iv} - {iv}", "-{iv}",
    ),
}  # fmt: skip

_WORDS: dict[str, tuple[str, ...]] = {
    "regex": (
        "'a'", "'[a-c]+'", "'^a'", "'b$'", "'(a)(b)?'", "'.'", "'\\s'", "'\\d+'", "'[^a]'", "'a*'", "'x?'", "'\\w+'",
        "'(?:ab)+'", "'[[:space:]]'", "'\\.'", "'a|b'", "'(l+)o'", "'^$'", "'^'", "'$'", "'a.b'", "'[é漢]'",
        "'\\W'", "'\\S+$'",
    ),
    "replacement": ("''", "'X'", "'[\\&]'", "'\\\\'", "'$1'", "'<\\1>'"),
    "like": ("'a%'", "'%a'", "'%a%'", "'_'", "'_%'", "'%'", "''", "'\\%%'", "'%\\_%'", "'a_b'", "'%\\\\%'",
        "'a\\bc'", "'__'"),
    "ilike": ("'a%'", "'A%'", "'%WORLD%'", "'_b%'", "'%'"),
    "escaped": ("'!%%'", "'a!_%'", "'#%%'", "'%!!%'", "'a%'", "'a%%'"),
    "similar": ("'a%'", "'(a|b)%'", "'[a-c]+'", "'%a'", "'a.b'", "'_'", "'a{3}'", "'%(X|l)%'", "'\\%%'",
        "'$1%'", "'^a%'"),
    "pattern": ("'YYYY-MM-DD HH24:MI:SS.US'", "'DD Mon YY HH12:MI AM'", "'FMDay, DDD Q'", "'YYYY\"y\"MM'", "'HH12'",
        "'MS SS'"),
    "dates": ("'2024-02-29', 'YYYY-MM-DD'", "'05 Dec 2000', 'DD Mon YYYY'", "'2023-02-29', 'YYYY-MM-DD'"),
    "stamps": ("'2024-02-29 10:11:12', 'YYYY-MM-DD HH24:MI:SS'", "'2024-02-29 11:12 PM', 'YYYY-MM-DD HH12:MI AM'"),
}  # fmt: skip
_PLACE = re.compile(r"\{(=?)([^{}]+)\}")
_OUTPUTS = ("i", "n", "f", "s", "b", "d", "ts", "tz", "tm")


def _is_constant(text: str) -> bool:
    """A constant, which needs no parentheses; a negative one does."""
    return re.fullmatch(r"[0-9.e]+|'[^']*'", text) is not None


class ExpressionWriter:
    """Each form of each domain in turn as the outermost one, so that all of them come often enough."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._turns = self._forms()

    def next(self) -> str:
        return self._filled(next(self._turns), depth=self._rng.choice((0, 0, 1, 1, 2)))

    def _forms(self) -> Iterator[str]:
        while True:
            forms = [form for domain in _OUTPUTS for form in _FORMS[domain]]
            self._rng.shuffle(forms)
            yield from forms

    def _of(self, domain: str, depth: int) -> str:
        forms = _FORMS[domain]
        flat = [form for form in forms if "{" not in form or _PLACE.fullmatch(form.strip("'"))] or list(forms)
        chosen = self._rng.choice(forms if depth > 0 else flat)
        text = self._filled(chosen, depth - 1)
        return text if text.isidentifier() or _is_constant(text) else f"({text})"

    def _filled(self, form: str, depth: int) -> str:
        def put(place: re.Match[str]) -> str:
            if not place[1]:
                return self._of(place[2], depth)
            words = _WORDS.get(place[2]) or tuple(place[2].split("|"))
            return self._rng.choice(words)

        return _PLACE.sub(put, form)
