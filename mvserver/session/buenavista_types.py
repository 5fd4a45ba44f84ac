"""buenavista's seventeen types beside PostgreSQL's oids and Arrow's types."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from buenavista.core import BVType

_OID_OF: dict[BVType, int] = {
    BVType.NULL: 25,
    BVType.BIGINT: 20,
    BVType.BOOL: 16,
    BVType.BYTES: 17,
    BVType.DATE: 1082,
    BVType.FLOAT: 701,
    BVType.INTEGER: 23,
    BVType.INTERVAL: 1186,
    BVType.JSON: 114,
    BVType.DECIMAL: 1700,
    BVType.TEXT: 25,
    BVType.TIME: 1083,
    BVType.TIMESTAMP: 1114,
    BVType.UNKNOWN: 25,
    BVType.ARRAY: 1009,
    BVType.INTEGERARRAY: 1007,
    BVType.STRINGARRAY: 1009,
}

_BV_OF: dict[int, BVType] = {
    16: BVType.BOOL, 17: BVType.BYTES, 20: BVType.BIGINT, 21: BVType.INTEGER, 23: BVType.INTEGER,
    25: BVType.TEXT, 114: BVType.JSON, 700: BVType.FLOAT, 701: BVType.FLOAT, 1005: BVType.INTEGERARRAY,
    1007: BVType.INTEGERARRAY, 1009: BVType.STRINGARRAY, 1015: BVType.STRINGARRAY, 1016: BVType.INTEGERARRAY,
    1042: BVType.TEXT, 1043: BVType.TEXT, 1082: BVType.DATE, 1083: BVType.TIME, 1114: BVType.TIMESTAMP,
    1184: BVType.TIMESTAMP, 1186: BVType.INTERVAL, 1700: BVType.DECIMAL, 3802: BVType.JSON,
}  # fmt: skip

_ARROW_OF: dict[BVType, pa.DataType] = {
    BVType.BIGINT: pa.int64(),
    BVType.BOOL: pa.bool_(),
    BVType.BYTES: pa.binary(),
    BVType.DATE: pa.date32(),
    BVType.FLOAT: pa.float64(),
    BVType.INTEGER: pa.int32(),
    BVType.INTERVAL: pa.month_day_nano_interval(),
    BVType.DECIMAL: pa.decimal128(38, 9),
    BVType.TIME: pa.time64("us"),
    BVType.TIMESTAMP: pa.timestamp("us"),
    BVType.ARRAY: pa.list_(pa.string()),
    BVType.INTEGERARRAY: pa.list_(pa.int32()),
    BVType.STRINGARRAY: pa.list_(pa.string()),
}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _texts(value: Any) -> list[str | None]:
    return [None if item is None else _text(item) for item in value]


def _boolean(value: Any) -> bool:
    return value.lower() in ("t", "true", "on", "1") if isinstance(value, str) else bool(value)


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _date(value: Any) -> datetime.date:
    return datetime.date.fromisoformat(value) if isinstance(value, str) else value


def _time(value: Any) -> datetime.time:
    return datetime.time.fromisoformat(value) if isinstance(value, str) else value


def _timestamp(value: Any) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _interval(value: Any) -> Any:
    if isinstance(value, datetime.timedelta):
        return pa.MonthDayNano([0, value.days, (value.seconds * 1_000_000 + value.microseconds) * 1_000])
    return value


_CONVERT: dict[BVType, Callable[[Any], Any]] = {
    BVType.BIGINT: int,
    BVType.BOOL: _boolean,
    BVType.BYTES: _bytes,
    BVType.DATE: _date,
    BVType.FLOAT: float,
    BVType.INTEGER: int,
    BVType.INTERVAL: _interval,
    BVType.JSON: _json,
    BVType.DECIMAL: Decimal,
    BVType.TIME: _time,
    BVType.TIMESTAMP: _timestamp,
    BVType.ARRAY: _texts,
    BVType.INTEGERARRAY: list,
    BVType.STRINGARRAY: _texts,
}


def oid_of(kind: BVType) -> int:
    return _OID_OF[kind]


def bv_type_of(oid: int) -> BVType:
    return _BV_OF.get(oid, BVType.UNKNOWN)


def arrow_type_of(kind: BVType) -> pa.DataType:
    return _ARROW_OF.get(kind, pa.string())


def convert(value: Any, kind: BVType) -> Any:
    """Extensions give native values or, as SimpleQueryResult does, their text."""
    if value is None:
        return None
    converter: Callable[[Any], Any] = _CONVERT.get(kind, _text)
    return converter(value)
