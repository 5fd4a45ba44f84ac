"""The scan-only rate: the topic read by Spark's own connector, all declared columns decoded, the rows thrown away.

    python scan_only.py BOOTSTRAP TOPIC "COLUMN TYPE, ..." RECORDS-A-BATCH

A plain PySpark program: of the server's code it has only the way of getting the connector's jars. Prints one line of
JSON. The rate is taken from the second micro-batch on, when the JVM has warmed up, as the server's is after its first
row.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from spark_sinks.kafka.jars import CONNECTOR


def main(bootstrap: str, topic: str, columns: str, at_a_time: str) -> int:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 2))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    CONNECTOR.add_to(spark, None)
    checkpoint = tempfile.mkdtemp(prefix="scan-only-")
    try:
        raw = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", at_a_time)
            .option("kafka.max.poll.records", 20_000)
            .option("kafka.max.partition.fetch.bytes", 8_388_608)
            .option("kafka.fetch.max.bytes", 67_108_864)
            .option("kafka.receive.buffer.bytes", 1_048_576)
            .load()
        )
        parsed = f.from_json(
            f.col("value").cast("string"),
            f"{columns.replace('VARCHAR', 'STRING')}, _corrupt STRING",  # Spark's VARCHAR wants a length
            {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"},
        )
        query = (
            raw.select(parsed.alias("e"), "partition", "offset")
            .select("e.*", "partition", "offset")
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print(json.dumps(rate([json.loads(progress.json) for progress in query.recentProgress])))
    finally:
        spark.stop()
        shutil.rmtree(checkpoint, ignore_errors=True)
    return 0


def rate(progress: list[dict[str, Any]]) -> dict[str, float]:
    """From Spark's progress reports; with a single batch, its own duration is all there is."""
    batches = [report for report in progress if report["numInputRows"] > 0]
    if not batches:
        raise ValueError("nothing was read")
    measured = batches[1:] or batches
    began = datetime.fromisoformat(measured[0]["timestamp"].replace("Z", "+00:00"))
    last = measured[-1]
    ended = datetime.fromisoformat(last["timestamp"].replace("Z", "+00:00"))
    seconds = (ended - began).total_seconds() + last["durationMs"]["triggerExecution"] / 1000
    events = sum(report["numInputRows"] for report in measured)
    return {"events_per_s": events / seconds, "events": events, "seconds": seconds}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
