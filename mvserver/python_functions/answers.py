"""What a function answers, as a value of its declared type. Nothing is turned into another type behind its back."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

_RANGES = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}
_FLOAT_MAX = 3.4028235677973362e38  # the greatest double that is rounded to the greatest FLOAT
_ARROW: Mapping[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(),
    "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "VARCHAR": pa.string(), "VARBINARY": pa.binary(),
    "DATE": pa.date32(), "TIME": pa.time64("ns"), "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us"),  # of UTC; the zone is put to it where there are files of zones
}  # fmt: skip
_WANTED = {
    "BOOLEAN": "bool", "TINYINT": "int", "SMALLINT": "int", "INTEGER": "int", "BIGINT": "int", "FLOAT": "float",
    "DOUBLE": "float", "DECIMAL": "Decimal or int", "VARCHAR": "str", "VARBINARY": "bytes", "DATE": "datetime.date",
    "TIME": "datetime.time without a zone", "TIMESTAMP": "datetime.datetime without a zone",
    "TIMESTAMP_LTZ": "datetime.datetime with a zone", "ARRAY": "list",
}  # fmt: skip
_DIGITS = Context(prec=200)

Check = Callable[[Any], Any]


class AnswerError(Exception):
    """``sqlstate`` and words for an answer that its type cannot be."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message


def arrow_type(result: Mapping[str, Any]) -> pa.DataType:
    if result["kind"] == "ARRAY":
        return pa.list_(arrow_type(result["element"]))
    if result["kind"] == "DECIMAL":
        return pa.decimal128(result["precision"], result["scale"])
    return _ARROW[result["kind"]]


def checker(result: Mapping[str, Any], characters_max: int) -> Check:
    """What makes of an answer that is not None the value that is kept; raises AnswerError."""
    kind = result["kind"]
    if kind == "ARRAY":
        return _array(checker(result["element"], characters_max), characters_max)
    if kind in _RANGES:
        return _integer(kind, _RANGES[kind])
    if kind == "DECIMAL":
        return _decimal(result["precision"], result["scale"])
    if kind in ("VARCHAR", "VARBINARY"):
        return _text(characters_max) if kind == "VARCHAR" else _binary(characters_max)
    return {"BOOLEAN": _boolean, "FLOAT": _float, "DOUBLE": _double, "DATE": _date, "TIME": _time,
            "TIMESTAMP": _timestamp, "TIMESTAMP_LTZ": _instant}[kind]  # fmt: skip


def _wrong(value: Any, kind: str) -> AnswerError:
    return AnswerError("22000", f"it answered with {type(value).__name__} where {_WANTED[kind]} is wanted")


def _out_of_range(kind: str) -> AnswerError:
    return AnswerError("22003", f"its answer is out of range for type {kind}")


def _boolean(value: Any) -> Any:
    if type(value) is not bool:
        raise _wrong(value, "BOOLEAN")
    return value


def _integer(kind: str, bits: int) -> Check:
    low, high = -(1 << bits), (1 << bits) - 1

    def check(value: Any) -> Any:
        if type(value) is not int:
            raise _wrong(value, kind)
        if not low <= value <= high:
            raise _out_of_range(kind)
        return value

    return check


def _double(value: Any) -> Any:
    if type(value) is float:
        return value
    if type(value) is not int:
        raise _wrong(value, "DOUBLE")
    try:
        return float(value)
    except OverflowError:
        raise _out_of_range("DOUBLE") from None


def _float(value: Any) -> Any:
    found = _double(value)
    if math.isfinite(found) and abs(found) > _FLOAT_MAX:
        raise _out_of_range("FLOAT")
    return found


def _decimal(precision: int, scale: int) -> Check:
    step, most = Decimal(1).scaleb(-scale), Decimal(10) ** (precision - scale)

    def check(value: Any) -> Any:
        if type(value) is int:
            if abs(value) >= most:
                raise _out_of_range(f"DECIMAL({precision}, {scale})")
            value = Decimal(value)
        if type(value) is not Decimal:
            raise _wrong(value, "DECIMAL")
        try:
            found = value.quantize(step, rounding=ROUND_HALF_UP, context=_DIGITS)
        except InvalidOperation:
            raise _out_of_range(f"DECIMAL({precision}, {scale})") from None
        if not found.is_finite() or found.copy_abs() >= most:  # abs() rounds to 28 digits
            raise _out_of_range(f"DECIMAL({precision}, {scale})")
        return found

    return check


def _text(characters_max: int) -> Check:
    def check(value: Any) -> Any:
        if type(value) is not str:
            raise _wrong(value, "VARCHAR")
        _check_length(len(value), characters_max)
        if "\0" in value:
            raise AnswerError("22021", "its answer has the character 0x00")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise AnswerError("22021", "its answer has half of a surrogate pair") from None
        return value

    return check


def _binary(bytes_max: int) -> Check:
    def check(value: Any) -> Any:
        if type(value) is not bytes:
            raise _wrong(value, "VARBINARY")
        _check_length(len(value), bytes_max)
        return value

    return check


def _check_length(length: int, most: int) -> None:
    if length > most:
        raise AnswerError("54000", f"its answer is longer than {most} characters or bytes")


def _date(value: Any) -> Any:
    if type(value) is not dt.date:
        raise _wrong(value, "DATE")
    return value


def _time(value: Any) -> Any:
    if type(value) is not dt.time or value.tzinfo is not None:
        raise _wrong(value, "TIME")
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000_000 + value.microsecond * 1000


def _timestamp(value: Any) -> Any:
    if type(value) is not dt.datetime or value.tzinfo is not None:
        raise _wrong(value, "TIMESTAMP")
    return value


def _instant(value: Any) -> Any:
    if type(value) is not dt.datetime or value.utcoffset() is None:
        raise _wrong(value, "TIMESTAMP_LTZ")
    try:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    except OverflowError:
        raise AnswerError("22008", "its answer is out of range for type TIMESTAMP_LTZ") from None


def _array(element: Check, length_max: int) -> Check:
    def check(value: Any) -> Any:
        if type(value) is not list:
            raise _wrong(value, "ARRAY")
        _check_length(len(value), length_max)
        found = [None if each is None else element(each) for each in value]
        _check_length(sum(len(each) for each in found if isinstance(each, (str, bytes))), length_max)
        return found

    return check
