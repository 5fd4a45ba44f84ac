"""Columns as JSON: what json.loads reads of them is what they were, digit by digit."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from mvserver.front import Field
from mvserver.http.json_values import Numbers, RowWriter, values
from mvserver.types import oids


def written(oid: int, column: Any, numbers: Numbers = Numbers.SAFE, zone: str = "UTC") -> str:
    cells = values(Field("c", oid), column, zone, numbers)
    assert len(cells) == len(column)
    return (b"[" + b",".join(cells) + b"]").decode()


BIG = 2**53
INTEGERS = [0, -7, 999_999_999_999_999, BIG - 1, BIG, -BIG, 2**63 - 1, None]


@pytest.mark.parametrize("times", [1, 20], ids=["few", "many"])
def test_integers_beyond_a_double_are_strings(times: int) -> None:
    column = pa.array(INTEGERS * times, pa.int64())
    shown = [str(n) if n is not None and abs(n) > BIG - 1 else n for n in INTEGERS]
    assert json.loads(written(oids.INT8, column)) == shown * times
    assert json.loads(written(oids.INT8, column, Numbers.EXACT)) == INTEGERS * times
    assert (
        json.loads(written(oids.INT8, column, Numbers.STRING))
        == [None if n is None else str(n) for n in INTEGERS] * times
    )


def test_numerics_that_a_double_holds_are_numbers() -> None:
    column = pa.array([Decimal("1.50"), Decimal("-0.000123456789012345"), Decimal("12345678901234.567890"), None])
    assert written(oids.NUMERIC, column.cast(pa.decimal128(38, 18))) == (
        '[1.500000000000000000,-0.000123456789012345,"12345678901234.567890000000000000",null]'
    )
    assert json.loads(written(oids.NUMERIC, pa.array(["NaN", "12"])), parse_float=Decimal) == ["NaN", 12]
    assert json.loads(written(oids.NUMERIC, pa.array(["1" * 400]))) == ["1" * 400]


def test_every_double_survives() -> None:
    found = [0.1, 1e300, -5e-324, 123456789.25, 1e16]
    assert json.loads(written(oids.FLOAT8, pa.array(found))) == found
    assert json.loads(written(oids.FLOAT8, pa.array([float("nan"), float("inf"), float("-inf")]))) == [
        "NaN", "Infinity", "-Infinity",
    ]  # fmt: skip


def test_texts_are_escaped() -> None:
    found = ['a"b\\c', "line\nbreak\ttab\x01", "é😀\u2028", "", None]
    assert json.loads(written(oids.TEXT, pa.array(found))) == found
    assert "\n" not in written(oids.TEXT, pa.array(found))


@pytest.mark.parametrize("oid", [oids.TEXT, oids.JSON, oids.ARRAY_OF[oids.TEXT]])
def test_a_row_is_one_line_for_whoever_splits_at_all_line_ends_of_unicode(oid: int) -> None:
    found = 'a\x85b\u2028c\u2029d" \\ é\u2020'
    column = pa.array([json.dumps(found, ensure_ascii=False)] if oid == oids.JSON else [found])
    column = pa.array([[found]]) if oid == oids.ARRAY_OF[oids.TEXT] else column
    shown = written(oid, column)
    assert shown.splitlines() == [shown]
    assert json.loads(shown) == ([[found]] if oid == oids.ARRAY_OF[oids.TEXT] else [found])


def test_times_are_iso() -> None:
    at = dt.datetime(2024, 2, 29, 23, 5, 6, 500_000)
    assert json.loads(written(oids.TIMESTAMP, pa.array([at, None]))) == ["2024-02-29T23:05:06.5", None]
    instants = pa.array([at], pa.timestamp("us", "UTC"))
    assert json.loads(written(oids.TIMESTAMPTZ, instants)) == ["2024-02-29T23:05:06.5+00:00"]
    assert json.loads(written(oids.TIMESTAMPTZ, instants, zone="Asia/Kolkata")) == ["2024-03-01T04:35:06.5+05:30"]
    assert json.loads(written(oids.DATE, pa.array([at.date()]))) == ["2024-02-29"]


def test_nested_values_are_nested() -> None:
    lists = pa.array([[1, None, BIG], [], None], pa.list_(pa.int64()))
    assert json.loads(written(oids.ARRAY_OF[oids.INT8], lists)) == [[1, None, str(BIG)], [], None]
    deep = pa.array([[["a,b", None], []], None], pa.list_(pa.list_(pa.string())))
    assert json.loads(written(oids.ARRAY_OF[oids.TEXT], deep)) == [[["a,b", None], []], None]
    structs = pa.array([{"x": 1, "y": "é"}, None], pa.struct([("x", pa.int32()), ("y", pa.string())]))
    assert json.loads(written(oids.JSON, structs)) == [{"x": 1, "y": "é"}, None]


def test_documents_stay_as_they_are_but_on_one_line() -> None:
    texts = pa.array(['{"a": [1.50,\n 2]}', "not json", "NaN", None])
    assert written(oids.JSON, texts) == '[{"a": [1.50,  2]},"not json","NaN",null]'


def test_other_types_are_texts() -> None:
    assert json.loads(written(oids.BOOL, pa.array([True, False, None]))) == [True, False, None]
    assert json.loads(written(oids.BYTEA, pa.array([b"\x00\xff"]))) == ["\\x00ff"]


def test_rows_are_objects_or_arrays() -> None:
    fields = (Field("a%b", oids.INT4), Field('q"', oids.TEXT))
    batch = pa.record_batch([pa.array([1, 2], pa.int32()), pa.array(["x", None])], names=["0", "1"])
    objects = RowWriter(fields, "UTC", Numbers.SAFE, as_arrays=False).rows(batch)
    assert [json.loads(row) for row in objects] == [{"a%b": 1, 'q"': "x"}, {"a%b": 2, 'q"': None}]
    assert RowWriter(fields, "UTC", Numbers.SAFE, as_arrays=True).rows(batch) == [b'[1,"x"]', b"[2,null]"]
