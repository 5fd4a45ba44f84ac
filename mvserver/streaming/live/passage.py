"""The passage of rows into commits: each record once, and each partition's in its order.

A row tells its partition and its place there. What has been counted is dropped, since Spark's tasks may send again.
All else follows in order, or the lane ends. Places may be left out: of records that a topic does not have any more, or
never had (compaction, marks of transactions). Spark's connector passes over those alone, and a connection that ends
without its last message ends the lane. So nothing is left out on the way.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from mvserver.streaming.live.ended import LaneEnded
from spark_sinks.duckdb.record_columns import PARTITION, PLACE


class Passage:
    """``places`` are the next ones of each partition: a row before its partition's has been counted."""

    def __init__(self, places: Mapping[str, int]) -> None:
        self.places = dict(places)

    def admit(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Those rows that do not count yet; ``places`` move behind them. Each record is one row. Raises LaneEnded for
        rows out of order, and for those of a partition that nobody knows."""
        if not rows.num_rows:
            return rows
        column = rows.column(PARTITION)
        names = [column[0].as_py()] if _is_one(column) else pc.unique(column).to_pylist()
        if len(names) == 1:
            return self._of_partition(names[0], rows)
        parts = [self._of_partition(name, rows.filter(pc.equal(column, name))) for name in names]
        return pa.Table.from_batches(parts).combine_chunks().to_batches()[0] if any(map(len, parts)) else parts[0]

    def _of_partition(self, name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        expected = self.places.get(name)
        if expected is None:
            raise LaneEnded("partitions were added to the topic")
        places = rows.column(PLACE)
        if places[0].as_py() < expected:
            rows = rows.filter(pc.greater_equal(places, expected))
            if not rows.num_rows:
                return rows
            places = rows.column(PLACE)
        if len(places) > 1 and not pc.all(pc.greater(places[1:], places[:-1])).as_py():
            raise LaneEnded(f"the records of partition {name} came out of order")
        self.places[name] = places[-1].as_py() + 1
        return rows


def _is_one(column: pa.Array) -> bool:
    return bool(pc.all(pc.equal(column, column[0])).as_py())
