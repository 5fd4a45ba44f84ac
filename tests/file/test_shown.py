"""Rows of files with types, as PRINT ENTITY shows them. Rows are written down by hand."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from mvserver.errors import SqlError
from spark_sinks.file.shown import shown


def test_units_that_python_has_not(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    nanoseconds = pa.array([1_715_949_000_123_456_789], pa.timestamp("ns"))
    columns = {
        "moment": nanoseconds,
        "hour": pa.array([45_000_123_456_789], pa.time64("ns")),
        "large": pa.LargeListArray.from_arrays(pa.array([0, 1], pa.int64()), nanoseconds),
        "two": pa.FixedSizeListArray.from_arrays(pa.concat_arrays([nanoseconds, nanoseconds]), 2),
    }
    parquet.write_table(pa.table(columns), path)
    (row,) = [json.loads(line) for line in shown(path)]
    shown_moment = row["moment"]
    assert dt.datetime.fromisoformat(shown_moment) == dt.datetime(2024, 5, 17, 12, 30, 0, 123456)
    assert row["large"] == [shown_moment]
    assert row["two"] == [shown_moment, shown_moment]
    assert row["hour"] == "12:30:00.123456"


def test_a_time_that_no_python_has_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "late.parquet"
    parquet.write_table(pa.table({"moment": pa.array([10**18], pa.timestamp("us"))}), path)
    with pytest.raises(SqlError) as caught:
        list(shown(path))
    assert caught.value.sqlstate == "22008"
    assert caught.value.message == 'file "late.parquet" has a time beyond the year 9999, which is not shown'


def test_rows_of_a_long_stripe_come_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "long.orc"
    orc.write_table(pa.table({"n": pa.array(range(2_500))}), str(path))
    assert [json.loads(line)["n"] for line in shown(path)] == list(range(2_500))
