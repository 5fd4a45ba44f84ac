"""Rows a second that Spark decodes, per format: the same 8-column records, one process, no source and no sink.

``python -m tests.bench.formats [records]`` prints a table. Formats take turns, so that a busy machine is as busy for
each; the figure is the median of the turns.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mvserver.streaming.spark.java_functions import register
from spark_sinks.decode import decode
from spark_sinks.schema_registry.base import NO_SCHEMAS, KnownSchemas
from tests.services.spark import as_the_server_starts_it
from tests.streaming.avro_records import columns, known, of_fields, record

DECLARED = (
    "id BIGINT", "url VARCHAR", "device VARCHAR", "user_id VARCHAR", "price DOUBLE", "quantity INTEGER",
    "paid BOOLEAN", "note VARCHAR",
)  # fmt: skip
AVRO_SCHEMA = of_fields(
    ("id", "long"), ("url", "string"), ("device", "string"), ("user_id", "string"), ("price", "double"),
    ("quantity", "int"), ("paid", "boolean"), ("note", ["null", "string"]),
)  # fmt: skip
TURNS = 5
DISTINCT = 2_000


def row(number: int, *, whole: bool) -> dict[str, Any]:
    """Where it is not whole, every second one has no note."""
    return {
        "id": number, "url": f"./page/{number % 50}", "device": "mobile", "user_id": f"User_{number % 500}",
        "price": number / 7, "quantity": number % 9, "paid": number % 2 == 0,
        "note": "none" if whole or number % 2 else None,
    }  # fmt: skip


def rate(spark: Any, frame: Any, count: int, format_: str, schemas: KnownSchemas, *, trial: bool) -> float:
    made = decode(format_, columns(*DECLARED), "value", "r_", trial=trial, schemas=schemas)
    register(spark, made.functions)
    for stage in made.stages:
        frame = frame.selectExpr("*", *stage)
    began = time.perf_counter()
    hashes = [f"max(hash({reference}))" for _, reference in made.columns]
    good = frame.selectExpr(f"count(CASE WHEN {made.good} THEN 1 END) AS good", *hashes).collect()[0][0]
    assert good == count, f"{format_}: {good} of {count} records"
    return count / (time.perf_counter() - began)


def main(count: int) -> None:
    from tests.bench.protobuf_records import PROTOBUF_SCHEMA, protobuf_record

    numbers = range(DISTINCT)
    json_text: Callable[[int, bool], bytes] = lambda n, whole: json.dumps(row(n, whole=whole)).encode()  # noqa: E731
    cases = {
        "json": ("json", NO_SCHEMAS, [json_text(n, True) for n in numbers], True),
        "json with NULLs": ("json", NO_SCHEMAS, [json_text(n, False) for n in numbers], False),
        "json_schema": ("json_schema", NO_SCHEMAS, [b"\0\0\0\0\1" + json_text(n, True) for n in numbers], True),
        "avro": ("avro", known(AVRO_SCHEMA), [record(AVRO_SCHEMA, row(n, whole=False)) for n in numbers], False),
        "protobuf": ("protobuf", PROTOBUF_SCHEMA, [protobuf_record(row(n, whole=False)) for n in numbers], False),
    }
    with tempfile.TemporaryDirectory() as folder:
        spark = as_the_server_starts_it(Path(folder))
        frames = {}
        for name, (_, _, values, _) in cases.items():
            few = spark.createDataFrame([(v,) for v in values], "value binary")
            frames[name] = few.crossJoin(spark.range(count // DISTINCT)).select("value").repartition(2).cache()
            frames[name].count()
        found: dict[str, list[float]] = {name: [] for name in cases}
        for turn in range(TURNS + 1):
            for name, (format_, schemas, _, trial) in cases.items():
                measured = rate(spark, frames[name], count, format_, schemas, trial=trial)
                if turn:  # the first one warms up
                    found[name].append(measured)
        spark.stop()
    base = statistics.median(found["json"])
    print("| format | rows/s | beside json |\n|---|---|---|")
    for name, rates in found.items():
        middle = statistics.median(rates)
        print(f"| {name} | {middle:,.0f} | {middle / base:.2f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
