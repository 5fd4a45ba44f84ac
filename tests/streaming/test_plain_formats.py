"""Primitive and delimited values: what queries write is what other programs read, and what is read back."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import random
import struct
from decimal import Decimal
from typing import Any

import pytest

from mvserver.errors import SqlError
from mvserver.streaming.spark.types import decode_column
from spark_sinks.decode import decode, format_of
from tests.streaming.decoding import decoded

_CHANCE = random.Random(20261123)
_EDGES = [0.0, -0.0, 1.0, -1.5, 0.1, 5e-324, -5e-324, 2.2250738585072014e-308, 2.225073858507201e-308,
          1.7976931348623157e308, math.inf, -math.inf, math.pi]  # fmt: skip


def encoded(format_: str, columns: dict[str, str], row: dict[str, Any], delimiter: str = ",") -> bytes:
    make = format_of(format_).encoder
    assert make is not None
    encode = make([decode_column(name, type_, False) for name, type_ in columns.items()], delimiter)
    return encode(json.dumps(row).encode())


@pytest.mark.spark
def test_doubles_bit_by_bit(spark: Any) -> None:
    """Against struct, which Kafka's serializer agrees with."""
    values = _EDGES + [struct.unpack(">d", _CHANCE.randbytes(8))[0] for _ in range(300)]
    values = [value for value in values if not math.isnan(value)]
    rows = decoded(spark, [struct.pack(">d", value) for value in values], {"v": "DOUBLE"}, "primitive")
    assert [struct.pack(">d", value) for _, value in rows] == [struct.pack(">d", value) for value in values]
    nan, short, null = decoded(spark, [struct.pack(">d", math.nan), b"\0" * 7, None], {"v": "DOUBLE"}, "primitive")
    assert nan[0] is None
    assert math.isnan(nan[1])
    assert (short[0], null[0]) == ("the value is not a primitive of type DOUBLE", "the value is null")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("SMALLINT", [0, 1, -1, 2**15 - 1, -(2**15)]),
        ("INTEGER", [0, 77, -(2**31)]),
        ("BIGINT", [0, 2**63 - 1, -(2**63)]),
        ("DOUBLE", [0.1, -2.5e-300, 3.0]),
        ("VARCHAR", ["", "tea", "Zürich ✓"]),
        ("BOOLEAN", [True, False]),
    ],
)
def test_primitives_are_read_back(spark: Any, type_: str, values: list[Any]) -> None:
    records = [encoded("primitive", {"v": type_}, {"v": value}) for value in values]
    assert decoded(spark, records, {"v": type_}, "primitive") == [(None, value) for value in values]


@pytest.mark.spark
def test_floats_bit_by_bit(spark: Any) -> None:
    edges = [0x0, 0x80000000, 0x1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x3F800000, 0x3DCCCCCD]
    bits = edges + [_CHANCE.getrandbits(32) for _ in range(300)]
    records = [struct.pack(">I", each) for each in bits if (each & 0x7F800000) != 0x7F800000 or not each & 0x7FFFFF]
    rows = decoded(spark, records, {"v": "FLOAT"}, "primitive")
    assert [struct.pack(">f", value) for _, value in rows] == records
    assert [encoded("primitive", {"v": "FLOAT"}, {"v": value}) for _, value in rows if math.isfinite(value)] == [
        record for record in records if math.isfinite(struct.unpack(">f", record)[0])
    ]
    (nan, short) = decoded(spark, [struct.pack(">f", math.nan), b"\0" * 8], {"v": "FLOAT"}, "primitive")
    assert math.isnan(nan[1])
    assert short[0] == "the value is not a primitive of type FLOAT"


@pytest.mark.spark
def test_bytes_are_as_they_are(spark: Any) -> None:
    values = [b"", b"\0", b"\xff\xfe", bytes(range(256)), "Zürich".encode()]
    assert [(reason, bytes(value)) for reason, value in decoded(spark, values, {"v": "VARBINARY"}, "primitive")] == [
        (None, value) for value in values
    ]
    texts = [base64.b64encode(value).decode() for value in values]
    assert [encoded("primitive", {"v": "VARBINARY"}, {"v": text}) for text in texts] == values
    (odd, null) = decoded(spark, [b"\2", None], {"v": "BOOLEAN"}, "primitive")
    assert (odd[0], null[0]) == ("the value is not a primitive of type BOOLEAN", "the value is null")


def test_what_is_no_number_of_json_and_what_is_null() -> None:
    assert encoded("primitive", {"v": "DOUBLE"}, {"v": "-Infinity"}) == struct.pack(">d", -math.inf)
    assert math.isnan(struct.unpack(">d", encoded("primitive", {"v": "DOUBLE"}, {"v": "NaN"}))[0])
    with pytest.raises(SqlError) as caught:
        encoded("primitive", {"v": "BIGINT"}, {"v": None})
    assert caught.value.sqlstate == "22004"


COLUMNS = {"a": "VARCHAR", "b": "BIGINT", "c": "DECIMAL(38, 4)", "d": "BOOLEAN", "e": "DOUBLE", "f": "VARCHAR"}
ROWS: list[dict[str, Any]] = [
    {"a": "plain", "b": 1, "c": 1.5, "d": True, "e": 0.25, "f": "x"},
    {"a": 'quo"ted', "b": -5, "c": None, "d": False, "e": None, "f": ""},
    {"a": "com,ma|pipe\ttab;semi", "b": None, "c": 2, "d": None, "e": 1e300, "f": None},
    {"a": "line\nbreak\r\nand \\ more", "b": 2**63 - 1, "c": 0, "d": True, "e": -1, "f": " spaces "},
    {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None},
]


@pytest.mark.parametrize("delimiter", [",", "|", "\t", ";", " "])
def test_other_programs_read_delimited_lines(delimiter: str) -> None:
    for row in ROWS:
        line = encoded("delimited", COLUMNS, row, delimiter).decode()
        (fields,) = csv.reader(io.StringIO(line, newline=""), delimiter=delimiter)
        texts = {True: "true", False: "false", None: ""}
        for given, wanted in zip(fields, row.values(), strict=True):
            assert given == wanted or given == texts.get(wanted, "") or Decimal(given) == Decimal(str(wanted))


@pytest.mark.spark
@pytest.mark.parametrize("delimiter", [",", "|", "\t", " "])
def test_delimited_lines_are_read_back(spark: Any, delimiter: str) -> None:
    records = [encoded("delimited", COLUMNS, row, delimiter) for row in ROWS]
    columns = [decode_column(name, type_, False) for name, type_ in COLUMNS.items()]
    program = decode("delimited", columns, "value", "d_", delimiter=delimiter)
    frame = spark.createDataFrame([(n, bytearray(record)) for n, record in enumerate(records)], "n INT, value BINARY")
    for stage in program.stages:
        frame = frame.selectExpr("*", *stage)
    found = (
        frame.orderBy("n")
        .selectExpr(f"{program.reason} AS reason", *(f"{reference} AS {name}" for name, reference in program.columns))
        .collect()
    )
    assert [row.asDict() for row in found] == [{"reason": None, **row} for row in ROWS]


@pytest.mark.spark
def test_csv_lines_are_read_back(spark: Any) -> None:
    records = [encoded("csv", COLUMNS, row) for row in ROWS]
    assert decoded(spark, records, COLUMNS, "csv") == [(None, *row.values()) for row in ROWS]
