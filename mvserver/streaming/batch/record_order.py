"""Record order in a collected batch: what Spark was asked for of it, made columns that DuckDB can sort by.

Rows come from Spark in no order that one could rely on. Each brings its segment (a partition, a file) and its place
in it; how segments follow each other is known to the reader alone.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from mvserver.streaming.batch.spark_calls import select_expressions
from spark_sinks.base import RecordOrder, SourceReader
from spark_sinks.duckdb.record_columns import PARTITION, PLACE, RANK, SEGMENT

SELECTED = (PARTITION, SEGMENT, PLACE)


def with_order(frame: DataFrame, order: RecordOrder) -> DataFrame:
    return select_expressions(
        frame,
        (
            "*",
            f"{order.partition} AS {PARTITION}",
            f"{order.segment} AS {SEGMENT}",
            f"{order.place} AS {PLACE}",
        ),
    )


def ranked(table: pa.Table, reader: SourceReader) -> pa.Table:
    """Adds the number of each record's segment."""
    segments = pc.dictionary_encode(table.column(SEGMENT)).combine_chunks()
    names = segments.dictionary.to_pylist()
    ranks = pa.array(reader.positions.segment_ranks(names), pa.int64())
    return table.append_column(RANK, ranks.take(segments.indices))
