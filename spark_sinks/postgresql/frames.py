"""Records as Spark reads them: an Arrow table in memory, or files where that would be too large."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from spark_sinks.postgresql.limits import FRAME_MEMORY_BYTES, FRAMES_KEPT
from spark_sinks.postgresql.spool import RECORDS
from spark_sinks.rows_frame import ROWS_MAX, frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLACE = "place"  # of a record among those of its frame
_SCHEMA = (  # of a frame without records, of which Arrow does not tell it
    "key binary, value binary, position string, record_time timestamp, "
    f"metadata struct<lsn:string,transaction:bigint,timestamp:bigint>, {PLACE} bigint"
)


class Frames:
    """Of one reader. The last few in files are kept: those that a batch and the rounds beside it may still read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._number = 0
        self.remove()  # a process that was killed leaves files, under numbers that come again

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def frame(self, spark: SparkSession, found: Sequence[pa.RecordBatch]) -> DataFrame:
        """In the order of the records. What is large goes by way of files, and never as a whole through memory."""
        if not any(batch.num_rows for batch in found):
            return spark.createDataFrame([], _SCHEMA)
        if sum(batch.nbytes for batch in found) <= FRAME_MEMORY_BYTES:
            return frame_of(spark, _divided(pa.Table.from_batches(found, RECORDS)))
        mine = self._next_folder()
        place = 0
        for number, batch in enumerate(found):
            table = pa.Table.from_batches([batch], RECORDS)
            places = pa.array(range(place, place + len(table)), pa.int64())
            pq.write_table(table.append_column(PLACE, places), mine / f"{number:08d}.parquet", compression="zstd")
            place += len(table)
        return spark.read.parquet(str(mine))

    def _next_folder(self) -> Path:
        with self._lock:
            self._number += 1
            mine = self._folder / f"{self._number:012d}"
            mine.mkdir(parents=True)
            for old in sorted(self._folder.iterdir())[:-FRAMES_KEPT]:
                shutil.rmtree(old, ignore_errors=True)
            return mine


def _divided(table: pa.Table) -> pa.Table:
    """With the places of its records, in as many pieces as there are processors: each piece is a task's."""
    whole = table.append_column(PLACE, pa.array(range(len(table)), pa.int64())).combine_chunks()
    records = max(ROWS_MAX, -(-len(whole) // (os.cpu_count() or 1)))
    return pa.Table.from_batches(whole.to_batches(max_chunksize=records), whole.schema)
