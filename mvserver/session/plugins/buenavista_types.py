"""buenavista's seventeen types beside PostgreSQL's oids and Arrow's types."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from buenavista.core import BVType

from mvserver.types import oids

_OID_OF: dict[BVType, int] = {
    BVType.NULL: oids.TEXT,
    BVType.BIGINT: oids.INT8,
    BVType.BOOL: oids.BOOL,
    BVType.BYTES: oids.BYTEA,
    BVType.DATE: oids.DATE,
    BVType.FLOAT: oids.FLOAT8,
    BVType.INTEGER: oids.INT4,
    BVType.INTERVAL: oids.INTERVAL,
    BVType.JSON: oids.JSON,
    BVType.DECIMAL: oids.NUMERIC,
    BVType.TEXT: oids.TEXT,
    BVType.TIME: oids.TIME,
    BVType.TIMESTAMP: oids.TIMESTAMP,
    BVType.UNKNOWN: oids.TEXT,
    BVType.ARRAY: oids.ARRAY_OF[oids.TEXT],
    BVType.INTEGERARRAY: oids.ARRAY_OF[oids.INT4],
    BVType.STRINGARRAY: oids.ARRAY_OF[oids.TEXT],
}

_BV_OF: dict[int, BVType] = {
    oids.BOOL: BVType.BOOL,
    oids.BYTEA: BVType.BYTES,
    oids.INT8: BVType.BIGINT,
    oids.INT2: BVType.INTEGER,
    oids.INT4: BVType.INTEGER,
    oids.TEXT: BVType.TEXT,
    oids.JSON: BVType.JSON,
    oids.FLOAT4: BVType.FLOAT,
    oids.FLOAT8: BVType.FLOAT,
    oids.ARRAY_OF[oids.INT2]: BVType.INTEGERARRAY,
    oids.ARRAY_OF[oids.INT4]: BVType.INTEGERARRAY,
    oids.ARRAY_OF[oids.TEXT]: BVType.STRINGARRAY,
    oids.ARRAY_OF[oids.VARCHAR]: BVType.STRINGARRAY,
    oids.ARRAY_OF[oids.INT8]: BVType.INTEGERARRAY,
    oids.BPCHAR: BVType.TEXT,
    oids.VARCHAR: BVType.TEXT,
    oids.DATE: BVType.DATE,
    oids.TIME: BVType.TIME,
    oids.TIMESTAMP: BVType.TIMESTAMP,
    oids.TIMESTAMPTZ: BVType.TIMESTAMP,
    oids.INTERVAL: BVType.INTERVAL,
    oids.NUMERIC: BVType.DECIMAL,
    oids.JSONB: BVType.JSON,
}

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
