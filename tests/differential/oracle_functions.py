"""Functions computed row by row in Python, from PostgreSQL's and Flink's documentation alone.

The oracle's SQL calls them as Spark user-defined functions. A function returns None where an argument is None, and
where it fails: Spark computes user-defined functions for rows that a CASE or a filter leaves out too. A view that
gives a value, or an error, where its oracle gives NULL is found by the comparison.
"""

from __future__ import annotations

import base64
import calendar
import datetime as dt
import hashlib
import json
import math
import re
import struct
import sys
import unicodedata
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any
from zoneinfo import ZoneInfo

_WIDE = Context(prec=100)
FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {}


def row_function(returns: str, *, strict: bool = True, name: str = "") -> Callable[[Callable[..., Any]], Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def total(*arguments: Any) -> Any:
            if strict and any(argument is None for argument in arguments):
                return None
            try:
                return function(*arguments)
            except (ArithmeticError, LookupError, TypeError, ValueError):
                return None

        FUNCTIONS["o_" + (name or function.__name__.strip("_"))] = (total, returns)
        return function

    return register


def register_all(spark: Any) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers cannot import this folder
    for name, (function, returns) in FUNCTIONS.items():
        spark.udf.register(name, function, returns)


# --- numbers --------------------------------------------------------------------------------------------------------
@row_function("bigint")
def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@row_function("bigint")
def remainder(a: int, b: int) -> int:
    return a - quotient(a, b) * b


@row_function("decimal(38,10)", name="decimal_remainder")
def _decimal_remainder(a: Decimal, b: Decimal) -> Decimal:
    return _WIDE.remainder(a, b)


@row_function("decimal(38,6)")
def decimal_add(a: Decimal, b: Decimal) -> Decimal:
    return _WIDE.add(a, b)


@row_function("decimal(38,6)")
def decimal_subtract(a: Decimal, b: Decimal) -> Decimal:
    return _WIDE.subtract(a, b)


@row_function("decimal(38,6)")
def decimal_multiply(a: Decimal, b: Decimal) -> Decimal:
    return _WIDE.multiply(a, b)


@row_function("decimal(38,13)")
def decimal_divide(a: Decimal, b: Decimal, scale: int) -> Decimal:
    return _WIDE.divide(a, b).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)


def _to_scale(rounding: str) -> Callable[[Decimal, int], Decimal]:
    return lambda a, digits: a.quantize(Decimal(1).scaleb(-digits), rounding, _WIDE)


row_function("decimal(38,6)", name="decimal_round")(_to_scale(ROUND_HALF_UP))
row_function("decimal(38,6)", name="decimal_trunc")(_to_scale(ROUND_DOWN))
row_function("decimal(38,6)", name="decimal_ceil")(lambda a: a.quantize(Decimal(1), ROUND_CEILING, _WIDE))
row_function("decimal(38,6)", name="decimal_floor")(lambda a: a.quantize(Decimal(1), ROUND_FLOOR, _WIDE))
row_function("double", name="double_ceil")(lambda a: float(math.ceil(a)) if math.isfinite(a) else a)
row_function("double", name="double_floor")(lambda a: float(math.floor(a)) if math.isfinite(a) else a)
row_function("double", name="double_trunc")(lambda a: float(math.trunc(a)) if math.isfinite(a) else a)
row_function("double", name="double_round")(lambda a: float(round(a)) if math.isfinite(a) else a)
row_function("double", name="double_round_to")(
    lambda a, digits: float(_to_scale(ROUND_HALF_UP)(Decimal(repr(a)), digits)) if math.isfinite(a) else a
)
row_function("double", name="sign")(lambda a: a if math.isnan(a) else float((a > 0) - (a < 0)))


@row_function("decimal(38,16)")
def average(total: Decimal, count: int, scale: int) -> Decimal:
    """AVG of exact numbers: half away from zero."""
    return _WIDE.divide(total, Decimal(count)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)


@row_function("int", name="wrapped_shift_left")
def _shift_left(a: int, n: int) -> int:
    value: int = struct.unpack("<i", struct.pack("<I", (a << n) & 0xFFFFFFFF))[0]
    return value


for _name, _double in {
    "power": math.pow, "cbrt": math.cbrt, "exp": math.exp, "ln": math.log, "log10": math.log10, "log2": math.log2,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "degrees": math.degrees, "radians": math.radians,
    "atan2": math.atan2, "sin": math.sin, "cos": math.cos, "tan": math.tan, "atan": math.atan, "asin": math.asin,
    "acos": math.acos, "sqrt": math.sqrt, "log": lambda base, a: math.log(a) / math.log(base),
    "cot": lambda a: math.cos(a) / math.sin(a),
}.items():  # fmt: skip
    row_function("double", name=_name)(_double)
row_function("bigint", name="factorial")(math.factorial)


@row_function("int")
def width_bucket(value: float, low: float, high: float, count: int) -> int:
    if value < low:
        return 0
    return count + 1 if value >= high else math.floor((value - low) / (high - low) * count) + 1


# --- text -----------------------------------------------------------------------------------------------------------
@row_function("string", strict=False)
def concat(*parts: str | None) -> str:
    return "".join(part for part in parts if part is not None)


@row_function("string", strict=False)
def concat_ws(separator: str | None, *parts: str | None) -> str | None:
    return None if separator is None else separator.join(part for part in parts if part is not None)


@row_function("string")
def substring(text: str, start: int, count: int | None = None) -> str:
    end = len(text) if count is None else start + count - 1
    return text[max(start - 1, 0) : max(end, 0)]


row_function("string", name="left")(lambda text, n: text[:n] if n >= 0 else text[: max(len(text) + n, 0)])
row_function("string", name="right")(
    lambda text, n: (text[-n:] if n < len(text) else text) if n > 0 else text[-n:] if n < 0 else ""
)
row_function("string", name="upper")(str.upper)
row_function("string", name="lower")(str.lower)
row_function("int", name="length")(len)
row_function("int", name="octets")(lambda text: len(text.encode()))
row_function("string", name="reverse")(lambda text: text[::-1])
row_function("string", name="repeat")(lambda text, n: text * max(n, 0))
row_function("string", name="replace")(lambda text, old, new: text.replace(old, new) if old else text)
row_function("int", name="position")(lambda part, text: text.find(part) + 1)
row_function("int", name="locate_from")(lambda part, text, start: text.find(part, start - 1) + 1 if start > 0 else 0)
row_function("boolean", name="starts_with")(lambda text, part: text.startswith(part))
row_function("boolean", name="ends_with")(lambda text, part: text.endswith(part))
row_function("string", name="btrim")(lambda text, chars: text.strip(chars) if chars else text)
row_function("string", name="ltrim")(lambda text, chars: text.lstrip(chars) if chars else text)
row_function("string", name="rtrim")(lambda text, chars: text.rstrip(chars) if chars else text)
row_function("int", name="ascii")(lambda text: ord(text[0]) if text else 0)
row_function("string", name="chr")(chr)
row_function("string", name="quote_literal")(
    lambda text: (" E" if "\\" in text else "").strip() + "'" + text.replace("'", "''").replace("\\", "\\\\") + "'"
)
row_function("string", name="hexadecimal")(lambda n: format(n & (2**32 - 1), "x"))
row_function("string", name="hexadecimal_64")(lambda n: format(n & (2**64 - 1), "x"))
row_function("string", name="binary_digits")(lambda n: format(n & (2**64 - 1), "b"))
row_function("string", name="hex_text")(lambda text: text.encode().hex().upper())


@row_function("string")
def initcap(text: str) -> str:
    out, inside = [], False
    for char in text:
        out.append(char.lower() if inside else char.upper())
        inside = char.isalnum()
    return "".join(out)


def _fill(text: str, n: int, fill: str) -> str:
    missing = max(n, 0) - len(text)
    return "" if missing <= 0 or not fill else (fill * (missing // len(fill) + 1))[:missing]


row_function("string", name="lpad")(lambda text, n, fill: _fill(text, n, fill) + text[: max(n, 0)])
row_function("string", name="rpad")(lambda text, n, fill: text[: max(n, 0)] + _fill(text, n, fill))


@row_function("string")
def split_part(text: str, separator: str, n: int) -> str:
    parts = text.split(separator) if separator else [text]
    index = n - 1 if n > 0 else len(parts) + n
    return parts[index] if 0 <= index < len(parts) else ""


@row_function("string")
def split_index(text: str, separator: str, n: int) -> str | None:
    parts = text.split(separator) if text else []  # Flink: an empty text has no parts
    return parts[n] if 0 <= n < len(parts) else None


@row_function("string")
def translate(text: str, old: str, new: str) -> str:
    table: dict[str, str] = {}
    for i, char in enumerate(old):
        table.setdefault(char, new[i] if i < len(new) else "")
    return "".join(table.get(char, char) for char in text)


@row_function("string")
def overlay(text: str, new: str, start: int, count: int | None = None) -> str:
    length = len(new) if count is None else count
    return text[: start - 1] + new + text[start - 1 + length :]


# --- patterns -------------------------------------------------------------------------------------------------------
@row_function("boolean")
def like(text: str, pattern: str, escape: str, insensitive: bool) -> bool:
    out, at = [], 0
    while at < len(pattern):
        char = pattern[at]
        if char == escape:
            at += 1
            out.append(re.escape(pattern[at]))
        else:
            out.append({"%": ".*", "_": "."}.get(char, re.escape(char)))
        at += 1
    return re.fullmatch("".join(out), text, re.DOTALL | (re.IGNORECASE if insensitive else 0)) is not None


def _flags(flags: str) -> int:
    return re.DOTALL | (re.IGNORECASE if "i" in flags else 0)


row_function("boolean", name="matches")(lambda text, p, flags: re.search(p, text, _flags(flags)) is not None)
row_function("boolean", name="matches_whole")(lambda text, p: re.fullmatch(p, text, re.DOTALL) is not None)
row_function("string", name="regexp_replace")(
    lambda text, p, new, flags: re.sub(p, new, text, count=0 if "g" in flags else 1, flags=_flags(flags))
)
row_function("int", name="regexp_count")(lambda text, p: sum(1 for _ in re.finditer(p, text)))
row_function("int", name="regexp_instr")(lambda text, p: m.start() + 1 if (m := re.search(p, text)) else 0)
row_function("string", name="regexp_group")(lambda text, p, n: m.group(n) if (m := re.search(p, text)) else None)


# --- texts in other forms, from the words of docs/sql/functions.md and the original's pages -------------------------
@row_function("string")
def center(text: str, n: int, fill: str) -> str:
    before = max(n - len(text), 0) // 2
    half = (fill * n)[:before] + text
    return half + (fill * n)[: max(n - len(half), 0)]


@row_function("string")
def mask_email(text: str) -> str:
    at = text.rfind("@")
    return text[:1] + "*****" if at < 0 else text[: min(at, 1)] + "*****" + text[at:]


@row_function("string")
def strip_accents(text: str) -> str:
    plain = unicodedata.normalize("NFD", text.translate({0x141: "L", 0x142: "l"}))
    return "".join(char for char in plain if not "\u0300" <= char <= "\u036f")


row_function("string", name="abbreviate")(lambda text, n: text if len(text) <= n else text[: n - 3] + "...")
row_function("string", name="anonymize")(lambda text: "*" * len(text))
row_function("string", name="swapcase")(str.swapcase)
row_function("string", name="initials")(lambda text: "".join(word[0] for word in text.split()))
row_function("string", name="keep_first")(lambda text, n: text[:n] + "*****")
row_function("string", name="keep_last")(lambda text, n: "*****" + (text[-n:] if n else ""))
row_function("string", name="text_from")(lambda text, i: text[max(i, -len(text)) :])
row_function("string", name="text_between")(lambda text, i, j: text[max(i, -len(text)) : max(j, -len(text))])

# --- bytes ----------------------------------------------------------------------------------------------------------
for _digest in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512"):
    row_function("string", name=f"{_digest}_hex")(
        lambda data, kind=_digest: hashlib.new(
            kind, data.encode() if isinstance(data, str) else bytes(data)
        ).hexdigest()
    )
    row_function("binary", name=f"{_digest}_bytes")(lambda data, kind=_digest: hashlib.new(kind, bytes(data)).digest())
row_function("string", name="hex_of")(lambda data: bytes(data).hex())
row_function("string", name="base64_of")(lambda data: base64.b64encode(bytes(data)).decode())
row_function("string", name="base64_text")(lambda text: base64.b64encode(text.encode()).decode())
row_function("binary", name="utf8")(lambda text: text.encode())


# --- dates and times ------------------------------------------------------------------------------------------------
def _months_later(value: Any, months: int) -> Any:
    index = value.year * 12 + value.month - 1 + months
    year, month = divmod(index, 12)
    return value.replace(year=year, month=month + 1, day=min(value.day, calendar.monthrange(year, month + 1)[1]))


@row_function("timestamp_ntz")
def later(value: dt.datetime, months: int, days: int, microseconds: int) -> dt.datetime:
    moved: dt.datetime = _months_later(value, months)
    return moved + dt.timedelta(days=days, microseconds=microseconds)


row_function("date", name="days_later")(lambda value, days: value + dt.timedelta(days=days))
row_function("int", name="days_between")(lambda a, b: (a - b).days)
row_function("date", name="make_date")(dt.date)
row_function("date", name="last_day")(lambda d: d.replace(day=calendar.monthrange(d.year, d.month)[1]))
row_function("timestamp_ntz", name="make_timestamp")(
    lambda y, mo, d, h, mi, s: dt.datetime(y, mo, d, h, mi) + dt.timedelta(microseconds=round(s * 1_000_000))
)
row_function("bigint", name="micros_between")(lambda a, b: (a - b) // dt.timedelta(microseconds=1))


def _epoch(value: dt.datetime) -> Decimal:
    return Decimal((value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)).scaleb(-6)


@row_function("decimal(30,6)")
def field(name: str, value: dt.datetime) -> Decimal:
    second = Decimal(value.second * 1_000_000 + value.microsecond).scaleb(-6)
    iso = value.isocalendar()
    found: dict[str, Any] = {
        "year": value.year, "month": value.month, "day": value.day, "hour": value.hour, "minute": value.minute,
        "second": second, "milliseconds": second * 1000, "microseconds": second * 1_000_000, "epoch": _epoch(value),
        "quarter": (value.month + 2) // 3, "week": iso[1], "isoyear": iso[0], "isodow": iso[2], "dow": iso[2] % 7,
        "doy": value.timetuple().tm_yday, "decade": value.year // 10, "century": (value.year + 99) // 100,
        "millennium": (value.year + 999) // 1000,
    }  # fmt: skip
    return Decimal(found[name])


@row_function("timestamp_ntz")
def date_trunc(unit: str, value: dt.datetime) -> dt.datetime:
    midnight = value.replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight.replace(day=1)
    year = first.replace(month=1)
    found = {
        "milliseconds": value.replace(microsecond=value.microsecond // 1000 * 1000), "microseconds": value,
        "second": value.replace(microsecond=0), "minute": value.replace(second=0, microsecond=0),
        "hour": value.replace(minute=0, second=0, microsecond=0), "day": midnight,
        "week": midnight - dt.timedelta(days=value.weekday()), "month": first,
        "quarter": first.replace(month=(value.month - 1) // 3 * 3 + 1), "year": year,
        "decade": year.replace(year=value.year // 10 * 10),
        "century": year.replace(year=(value.year - 1) // 100 * 100 + 1),
    }  # fmt: skip
    return found[unit]


@row_function("timestamp_ntz")
def date_bin(seconds: int, value: dt.datetime, origin: dt.datetime) -> dt.datetime:
    stride = dt.timedelta(seconds=seconds)
    return origin + (value - origin) // stride * stride


@row_function("string")
def formatted(value: dt.datetime, pattern: str) -> str:
    """``pattern`` is Python's, with %3f for milliseconds."""
    return value.strftime(pattern.replace("%Y", f"{value.year:04}").replace("%3f", f"{value.microsecond // 1000:03}"))


row_function("timestamp_ntz", name="parsed")(lambda text, pattern: dt.datetime.strptime(text, pattern))
row_function("timestamp_ntz", name="from_epoch")(
    lambda n, unit: dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=round(n * unit))
)
row_function("bigint", name="whole_epoch")(lambda value: math.floor(_epoch(value)))


@row_function("bigint")
def timestampdiff(unit: str, start: dt.datetime, end: dt.datetime) -> int:
    if unit == "month":  # first a day that is not full is left out, then a month that is not full
        last = end.date()
        if start.date() < last and end.time() < start.time():
            last -= dt.timedelta(1)
        elif last < start.date() and start.time() < end.time():
            last += dt.timedelta(1)
        months = (last.year - start.year) * 12 + last.month - start.month
        if months > 0 and last.day < start.day:
            return months - 1
        return months + 1 if months < 0 and last.day > start.day else months
    size = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}[unit] * 1_000_000
    return quotient((end - start) // dt.timedelta(microseconds=1), size)


@row_function("timestamp_ntz")
def zone_to_utc(zone: str, local: dt.datetime) -> dt.datetime:
    """The second of two instants at which the zone's clocks show this; behind a gap, by the clocks before it."""
    first, second = (
        local.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(dt.UTC).replace(tzinfo=None) for fold in (0, 1)
    )
    return max(first, second)


@row_function("timestamp_ntz")
def utc_to_zone(zone: str, instant: dt.datetime) -> dt.datetime:
    return instant.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


# --- JSON -----------------------------------------------------------------------------------------------------------
_MISSING = object()


def _at(text: str, path: str) -> Any:
    """``path``: keys and indexes, separated by dots."""
    value = json.loads(text)
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step, _MISSING)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return value


def _shown(value: Any) -> str | None:
    if value is None or value is _MISSING:
        return None
    return value if isinstance(value, str) else _compact(value)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


row_function("string", name="json_text")(lambda text, path: _shown(_at(text, path)))
row_function("string", name="json_scalar")(
    lambda text, path: None if isinstance(v := _at(text, path), (dict, list)) else _shown(v)
)
row_function("string", name="json_nested")(
    lambda text, path: _compact(v) if isinstance(v := _at(text, path), (dict, list)) else None
)
row_function("string", name="json_elements")(
    lambda text, path: "|".join(map(_compact, v)) if isinstance(v := _at(text, path), list) else ""
)
row_function("string", name="json_any")(lambda text, path: None if (v := _at(text, path)) is _MISSING else _compact(v))


@row_function("boolean")
def json_exists(text: str, path: str) -> bool:
    try:
        return _at(text, path) is not _MISSING
    except ValueError:
        return False  # FALSE ON ERROR is the default of SQL and of Flink


row_function("int", name="json_length")(lambda text: len(v) if isinstance(v := json.loads(text), list) else None)

# --- arrays and maps ------------------------------------------------------------------------------------------------
row_function("int", name="array_size")(len)
row_function("int", name="array_length")(lambda items: len(items) or None)
row_function("int", name="element", strict=True)(lambda items, i: items[i - 1] if 1 <= i <= len(items) else None)
row_function("string", name="text_element")(lambda items, i: items[i - 1] if 1 <= i <= len(items) else None)
row_function("int", name="array_position")(lambda items, value: items.index(value) + 1 if value in items else None)
row_function("array<int>", name="array_append", strict=False)(lambda items, value: [*(items or []), value])
row_function("array<int>", name="array_prepend", strict=False)(lambda value, items: [value, *(items or [])])
row_function("array<int>", name="array_cat", strict=False)(
    lambda a, b: None if a is None and b is None else [*(a or []), *(b or [])]
)
row_function("array<int>", name="array_remove")(lambda items, value: [i for i in items if i != value])
row_function("array<int>", name="flatten", strict=False)(lambda first, second: [*(first or []), *(second or [])])
row_function("array<int>", name="array_repeat", strict=False)(lambda value, count: [value] * count)
row_function("int", name="zip_size")(lambda first, second: min(len(first), len(second)))
row_function("int", name="zip_all_size")(lambda first, second: max(len(first), len(second)))
row_function("string", name="zip_second")(lambda first, second: second[1] if min(len(first), len(second)) > 1 else None)
row_function("string", name="zip_all_second")(lambda first, second: second[1] if len(second) > 1 else None)
row_function("array<int>", name="array_distinct")(lambda items: list(dict.fromkeys(items)))
row_function("string", name="array_text", strict=False)(
    lambda items, separator, null: (
        None
        if items is None
        else separator.join(null if i is None else str(i) for i in items if i is not None or null is not None)
    )
)
row_function("array<string>", name="text_parts")(lambda text, separator: text.split(separator) if text else [])
row_function("int", name="map_value")(lambda entries, key: entries.get(key))
row_function("int", name="nearest_integer")(
    lambda a: int(a.quantize(Decimal(1), ROUND_HALF_UP if isinstance(a, Decimal) else ROUND_HALF_EVEN))
)
row_function("int", name="nearest_even")(round)
row_function("string", name="shortest")(lambda a: repr(a).removesuffix(".0"))
row_function("array<string>", name="map_key_list")(lambda entries: list(entries))
row_function("array<int>", name="map_value_list")(lambda entries: list(entries.values()))
