"""Values of a row's JSON, as queries make it, in Python's types."""

from __future__ import annotations

import base64
import datetime as dt
import struct
from collections.abc import Callable
from decimal import Context, Decimal, Inexact
from typing import Any

from pyspark.sql import types as spark

Convert = Callable[[Any], Any]

_EXACT = Context(prec=38, traps=[Inexact])
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def plain(kind: spark.DataType) -> Convert:
    """Of a type without parts that is no decimal. Moments are microseconds since 1970."""
    if isinstance(kind, (spark.FloatType, spark.DoubleType)):
        return float
    if isinstance(kind, spark.BinaryType):
        return base64.b64decode
    if isinstance(kind, spark.DateType):
        return dt.date.fromisoformat
    if isinstance(kind, spark.TimeType):
        return dt.time.fromisoformat
    if isinstance(kind, spark.TimestampType):
        return _micros
    if isinstance(kind, spark.TimestampNTZType):
        return lambda value: _micros(f"{value}Z")
    return lambda value: value


def single(value: Any) -> Any:
    """A FLOAT as the double that is equal to it. Its shortest text, read as a double, may be greater than the greatest
    FLOAT. What JSON has no number for is a text still."""
    return value if isinstance(value, str) else struct.unpack("<f", struct.pack("<f", value))[0]


def decimal(kind: spark.DecimalType) -> Convert:
    """With the digits of the type. Raises decimal.Inexact where that would lose some."""
    scale = Decimal(1).scaleb(-kind.scale)
    return lambda value: Decimal(value).quantize(scale, context=_EXACT)


def _micros(text: str) -> int:
    return (dt.datetime.fromisoformat(text) - _EPOCH) // dt.timedelta(microseconds=1)
