"""Rows that Spark decodes in a second of processor time, per format: the same 8-column records, no source and no sink.

``python -m tests.bench.formats [records]`` prints a table. What counts is the processor time of the JVM, which is all
that decodes, so that other work on the machine does not. Formats take turns; the figure is the median of the turns.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mvserver.streaming.spark.record_functions import register
from spark_sinks.decode import decode
from spark_sinks.encode.avro_form import avro_form
from spark_sinks.encode.protobuf_form import protobuf_form
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
TURNS = 3
DISTINCT = 2_000
WRITTEN_ROUNDS = 10


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
    began = processor_s(spark)
    hashes = [f"max(hash({reference}))" for _, reference in made.columns]
    good = frame.selectExpr(f"count(CASE WHEN {made.good} THEN 1 END) AS good", *hashes).collect()[0][0]
    assert good == count, f"{format_}: {good} of {count} records"
    return count / (processor_s(spark) - began)


def processor_s(spark: Any) -> float:
    """Of the JVM, since its start."""
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def main(count: int) -> None:
    from tests.bench.protobuf_records import PROTOBUF_SCHEMA, protobuf_record

    numbers = range(DISTINCT)
    json_text: Callable[[int, bool], bytes] = lambda n, whole: json.dumps(row(n, whole=whole)).encode()  # noqa: E731
    cases = {
        "json": ("json", NO_SCHEMAS, [json_text(n, True) for n in numbers], True),
        "json with NULLs": ("json", NO_SCHEMAS, [json_text(n, False) for n in numbers], True),
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
    print("| format | rows a processor second | beside json |\n|---|---|---|")
    for name, rates in found.items():
        middle = statistics.median(rates)
        print(f"| {name} | {middle:,.0f} | {middle / base:.2f} |")


def written() -> None:
    """How fast the JSON of rows becomes records, in the one thread of a sink."""
    print("\n| written | rows a processor second |\n|---|---|")
    texts = [json.dumps(row(number, whole=False)).encode() for number in range(DISTINCT)]
    for name, make in (("avro", avro_form), ("protobuf", protobuf_form)):
        form = make("out", columns(*DECLARED), None)
        began = time.process_time()
        for _ in range(WRITTEN_ROUNDS):
            for text in texts:
                form.encode(text)
        print(f"| {name} | {WRITTEN_ROUNDS * DISTINCT / (time.process_time() - began):,.0f} |")


if __name__ == "__main__":
    written()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
