"""ORC files as Parquet of the declared types: without loss, or refused by name."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import types as spark

from mvserver.errors import SqlError
from spark_sinks.base import DeclaredColumn
from spark_sinks.decode.orc_format import ORC
from spark_sinks.file.orc import as_parquet


def through(folder: Path, table: pa.Table, **declared: spark.DataType) -> list[dict[str, Any]]:
    orc.write_table(table, folder / "a.orc", stripe_size=1024)
    schema = spark.StructType([spark.StructField(name, kind) for name, kind in declared.items()])
    as_parquet(folder / "a.orc", folder / "copy" / "a.orc", schema)
    rows: list[dict[str, Any]] = pq.read_table(folder / "copy" / "a.orc").to_pylist()
    assert [path.name for path in (folder / "copy").iterdir()] == ["a.orc"]
    return rows


def test_values_of_several_stripes_and_columns_by_name(tmp_path: Path) -> None:
    table = pa.table({"other": [0] * 5000, "N": pa.array(range(5000), pa.int16())})
    rows = through(tmp_path, table, n=spark.LongType(), absent=spark.StringType())
    assert rows == [{"n": number, "absent": None} for number in range(5000)]


def test_nested_values(tmp_path: Path) -> None:
    kind = spark.StructType([spark.StructField("x", spark.LongType()), spark.StructField("l", spark.ArrayType(
        spark.MapType(spark.StringType(), spark.DecimalType(12, 2))))])  # fmt: skip
    given = pa.struct([("x", pa.int32()), ("l", pa.list_(pa.map_(pa.string(), pa.decimal128(10, 2))))])
    values = [{"x": 1, "l": [[("k", Decimal("1.25"))], None]}, None, {"x": None, "l": []}]
    assert through(tmp_path, pa.table({"s": pa.array(values, given)}), s=kind) == [{"s": value} for value in values]


def test_times_before_1970_and_days_of_any_year(tmp_path: Path) -> None:
    moments = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1678, 1, 1, 0, 0, 0, 1), None]
    days = [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(9999, 12, 31)]
    table = pa.table({"at": pa.array(moments, pa.timestamp("us")), "day": pa.array(days)})
    rows = through(tmp_path, table, at=spark.TimestampNTZType(), day=spark.DateType())
    assert rows == [{"at": at, "day": day} for at, day in zip(moments, days, strict=True)]


@pytest.mark.parametrize("at", [dt.datetime(1582, 10, 10), dt.datetime(2262, 4, 12)])
def test_a_time_that_arrow_does_not_read_is_named(tmp_path: Path, at: dt.datetime) -> None:
    with pytest.raises(SqlError) as caught:
        through(tmp_path, pa.table({"at": pa.array([at], pa.timestamp("us"))}), at=spark.TimestampNTZType())
    assert (caught.value.sqlstate, caught.value.message) == (
        "42804",
        'file "a.orc" has a time that is not read from ORC',
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1], pa.int64()), spark.IntegerType()),
        (pa.array(["1"]), spark.LongType()),
        (pa.array([1]), spark.StringType()),
        (pa.array([1.5]), spark.FloatType()),
        (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), spark.DecimalType(5, 1)),
        (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), spark.DecimalType(4, 2)),
        (pa.array([dt.datetime(2026, 1, 1)]), spark.TimestampType()),
        (pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]), spark.TimestampNTZType()),
        (pa.array([[1]]), spark.ArrayType(spark.StringType())),
        (pa.array([{"x": 1}]), spark.StructType([spark.StructField("y", spark.LongType())])),
        (pa.array([1_000], pa.timestamp("ns")).cast(pa.timestamp("ns")), None),
    ],
)  # fmt: skip
def test_other_types_are_refused(tmp_path: Path, values: pa.Array, kind: spark.DataType | None) -> None:
    if kind is None:  # finer than a microsecond
        values, kind = pa.array([1], pa.timestamp("ns")), spark.TimestampNTZType()
    with pytest.raises(SqlError) as caught:
        through(tmp_path, pa.table({"c": values}), c=kind)
    assert caught.value.sqlstate == "42804"
    assert 'file "a.orc"' in caught.value.message


def test_a_name_that_is_there_twice(tmp_path: Path) -> None:
    with pytest.raises(SqlError) as caught:
        through(tmp_path, pa.table({"C": [1], "c": [2]}).rename_columns(["C", "Ca"]).rename_columns(["CC", "cc"]),
                Cc=spark.LongType())  # fmt: skip
    assert "several columns" in (caught.value.detail or "")


@pytest.mark.parametrize("kind", ["TIME", "TIME(6)", "ARRAY<TIME>", "MAP<VARCHAR, TIME>", 'STRUCT<"t" TIME>'])
def test_times_of_day_are_refused_at_any_depth(kind: str) -> None:
    assert ORC.check is not None
    with pytest.raises(SqlError) as caught:
        ORC.check([DeclaredColumn("c", kind)])
    assert caught.value.sqlstate == "0A000"
    ORC.check([DeclaredColumn("TIME", 'STRUCT<"TIME" TIMESTAMP>')])
