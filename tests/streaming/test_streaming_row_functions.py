"""rowtime() and rowkey(): what Spark gives for records with and without a key, by each kind of event time."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from streaming_states import target

from mvserver.streaming.evaluate import row_frame
from mvserver.streaming.program import build_program

RECORD_TIME = dt.datetime(2024, 5, 17, 12, 0, 0, 123_456, tzinfo=dt.UTC)
RECORDS = [
    (b"first", {"l": 1_700_000_000_000, "t": "2024-01-02 03:04:05.678"}),
    (None, {"l": None, "t": None}),
    (b"\xff!", {"l": 7, "t": "1969-12-31 23:59:59"}),
]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("source", "times"),
    [
        ("", [1_715_947_200_123] * 3),
        (" WITH ('timestamp' = 'l')", [1_700_000_000_000, None, 7]),
        (" WITH ('timestamp' = 't')", [1_704_164_645_678, None, -1_000]),
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
