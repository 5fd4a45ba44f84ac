"""rowtime() and rowkey(): what Spark gives for records with and without a key, by each kind of event time;
rowmetadata(): where the records of a directory come from."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mvserver.compiler.compile import compile_select
from mvserver.compiler.plans import ContinuousPlan, ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.sql.dialect import parse_select
from mvserver.sql.types import parse_type
from mvserver.streaming.batch.evaluate import row_frame
from mvserver.streaming.batch.plan_check import check_plan
from mvserver.streaming.batch.program import build_program
from mvserver.streaming.spark.types import spark_schema, spark_type
from mvserver.views.targets import build_target
from spark_sinks.base import METADATA
from spark_sinks.file.entity_files import DirectoryFiles
from spark_sinks.file.files import visible_files
from spark_sinks.file.journal import FileJournal
from spark_sinks.file.metadata import METADATA_TYPE
from spark_sinks.file.source import FileReader
from tests.streaming.states import target

RECORD_TIME = dt.datetime(2024, 5, 17, 12, 0, 0, 123_456, tzinfo=dt.UTC)
RECORDS = [
    (b"first", {"l": 1_700_000_000_000, "t": "2024-01-02 03:04:05.678"}),
    (None, {"l": None, "t": None}),
    (b"\xff!", {"l": -7, "t": "1969-12-31 23:59:58.999999"}),
]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("source", "times"),
    [
        ("", [1_715_947_200_123] * 3),
        (" WITH ('timestamp' = 'l')", [1_700_000_000_000, None, -7]),
        (" WITH ('timestamp' = 't')", [1_704_164_645_678, None, -1_001]),
    ],
)
def test_time_and_key_of_a_record(spark: Any, source: str, times: list[int | None]) -> None:
    program = build_program([target(f"SELECT rowtime() AS at, rowkey() AS key FROM events{source} WHERE true")])
    (view,) = program.views
    rows = [
        (None if key is None else bytearray(key), bytearray(json.dumps(value).encode()), "0:1", RECORD_TIME)
        for key, value in RECORDS
    ]
    frame = spark.createDataFrame(rows, "key binary, value binary, position string, record_time timestamp")
    table = row_frame(frame, program, None).toArrow()
    at, key = view.outputs
    assert table.column(at).to_pylist() == times
    assert table.column(key).to_pylist() == ["first", None, "\ufffd!"]


NAMES = ["plain.{0}", "a b%20+c.{0}"]
SECONDS = [1_600_000_000, 1_700_000_000]


def _over_files(sql: str, value_format: str) -> ContinuousPlan:
    columns = (ScanColumn("n", parse_type("INTEGER")),)
    files = RelationShape("r", "d.public.files", "stream", columns, value_format, metadata=parse_type(METADATA_TYPE))
    return compile_select(parse_select(sql), lambda parts, position: files, default_starting="earliest")


@pytest.mark.spark
@pytest.mark.parametrize("value_format", ["json", "parquet"])
def test_files_of_records(spark: Any, tmp_path: Path, value_format: str) -> None:
    directory, work = tmp_path / "files", tmp_path / "work"
    directory.mkdir()
    work.mkdir()
    names = [name.format(value_format) for name in NAMES]
    for number, name in enumerate(names):
        numbers = [number * 10, number * 10 + 1]
        if value_format == "parquet":
            pq.write_table(pa.table({"n": pa.array(numbers, pa.int32())}), directory / name)
        else:
            (directory / name).write_text("".join(f'{{"n": {n}}}\n' for n in numbers))
        os.utime(directory / name, (SECONDS[number], SECONDS[number]))
    FileJournal(work / "files.journal").append(visible_files(directory, directory.resolve()))
    plan = _over_files(
        "SELECT n, rowmetadata() AS m, rowmetadata()->file AS f FROM files WHERE rowmetadata()->timestamp > 0",
        value_format,
    )
    check_plan(spark, plan)
    schema = spark_schema(plan.scan.columns) if value_format == "parquet" else None
    reader = FileReader(DirectoryFiles(directory), work, schema)
    frame = reader.batch(spark, {"seq": 0}, {"seq": 2})
    assert frame.schema[METADATA].dataType == spark_type(parse_type(METADATA_TYPE))
    assert reader.batch(spark, {"seq": 2}, {"seq": 2}).schema[METADATA].dataType == frame.schema[METADATA].dataType
    program = build_program([build_target("q", "v", 1, plan)])
    (view,) = program.views
    table = row_frame(frame, program, None).toArrow()
    table = table.filter(table.column(view.flag))
    rows = zip(*(table.column(name).to_pylist() for name in view.outputs), strict=True)
    expected = [
        (number * 10 + at, {"file": name, "timestamp": SECONDS[number] * 1_000}, name)
        for number, name in enumerate(names)
        for at in (0, 1)
    ]
    assert sorted(rows, key=lambda row: row[0]) == expected
