"""The files that queries write: lines, and rows of Parquet and ORC files, read back by pyarrow."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import types as spark

from mvserver.errors import SqlError
from spark_sinks.decode.columns import DecodeColumn
from spark_sinks.file.forms import form_of

READ: dict[str, Callable[[io.BytesIO], pa.Table]] = {"parquet": pq.read_table, "orc": orc.read_table}


def column(kind: spark.DataType, name: str = "c") -> DecodeColumn:
    return DecodeColumn(name, kind, kind.simpleString())


CASES: dict[str, tuple[spark.DataType, list[Any], list[Any]]] = {
    "long": (spark.LongType(), [2**63 - 1, None, -(2**63)], [2**63 - 1, None, -(2**63)]),
    "double": (spark.DoubleType(), [0.1, "NaN", "-Infinity"], [0.1, "nan", float("-inf")]),
    "digits": (
        spark.DecimalType(38, 2),
        ["123456789012345678901234567890123456.78"],
        [Decimal("123456789012345678901234567890123456.78")],
    ),
    "bytes": (spark.BinaryType(), ["AP8="], [b"\x00\xff"]),
    "moment": (
        spark.TimestampType(),
        ["2026-01-02 03:04:05.000006Z", "1969-12-31 23:59:59.999999+00:00"],
        [
            dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
        ],
    ),
    "local": (spark.TimestampNTZType(), ["1700-01-01 00:00:00.000000"], [dt.datetime(1700, 1, 1)]),
    "day": (spark.DateType(), ["2024-02-29", "0001-01-01"], [dt.date(2024, 2, 29), dt.date(1, 1, 1)]),
    "struct": (
        spark.StructType([spark.StructField("a", spark.IntegerType()), spark.StructField("b", spark.DateType())]),
        [{"a": 1, "b": "2026-01-02"}, {"a": None, "b": None}, None],
        [{"a": 1, "b": dt.date(2026, 1, 2)}, {"a": None, "b": None}, None],
    ),
    "map": (
        spark.MapType(spark.LongType(), spark.ArrayType(spark.StringType())),
        [{"7": ["x", None], "8": None}, {}],
        [[(7, ["x", None]), (8, None)], []],
    ),
}


@pytest.mark.parametrize("form", READ)
@pytest.mark.parametrize("case", CASES)
def test_values_are_read_back(form: str, case: str) -> None:
    kind, given, wanted = CASES[case]
    made = form_of(form, [column(kind)])
    content = b"".join(made.content([_row(value, kind) for value in given]))
    found = READ[form](io.BytesIO(content)).column("c").to_pylist()
    assert [str(value) if value != value else value for value in found] == wanted


def _row(value: Any, kind: spark.DataType) -> bytes:
    """Decimals are numbers in the JSON of rows."""
    return f'{{"c": {value if isinstance(kind, spark.DecimalType) else json.dumps(value)}}}'.encode()


def test_files_of_lines() -> None:
    for form in ("json", "csv", "text"):
        assert b"".join(form_of(form, [column(spark.StringType())]).content([b"a", b" b"])) == b"a\n b\n"


@pytest.mark.parametrize("form", ["csv", "text"])
@pytest.mark.parametrize("value", [b"a\nb", b"a\r", b"", b"  "])
def test_what_is_not_one_line_is_refused(form: str, value: bytes) -> None:
    with pytest.raises(SqlError) as error:
        list(form_of(form, [column(spark.StringType())]).content([b"fine", value]))
    assert error.value.sqlstate == "22000"


def test_a_day_that_python_does_not_have_is_an_error_that_names_its_column() -> None:
    with pytest.raises(SqlError) as error:
        list(form_of("parquet", [column(spark.DateType(), "day")]).content([b'{"day": "+10000-01-01"}']))
    assert error.value.sqlstate == "22000"
    assert error.value.message == 'a value of column "day" cannot be written'


def test_maps_with_other_keys_are_refused() -> None:
    with pytest.raises(SqlError) as error:
        form_of("orc", [column(spark.ArrayType(spark.MapType(spark.DateType(), spark.LongType())))])
    assert error.value.sqlstate == "0A000"
