"""The passage of rows into commits: each record once, and each partition's in its order.

A row tells its partition and its place there. What has been counted is dropped, since Spark's tasks may send again.
All else follows in order, or the lane ends. Places may be left out: of records that a topic does not have any more, or
never had (compaction, marks of transactions). Spark's connector passes over those alone, and a connection that ends
without its last message ends the lane. So nothing is left out on the way.

Where a record is several rows, the last one has the number WHOLE. Rows behind the last of these wait for theirs, so
that no commit has a part of a record.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from mvserver.streaming.live.ended import LaneEnded
from mvserver.streaming.live.programs import WHOLE
from spark_sinks.duckdb.record_columns import PARTITION, PLACE, PROGRAM


class Passage:
    """``places`` are the next ones of each partition: a row before its partition's has been counted."""

    def __init__(self, places: Mapping[str, int]) -> None:
        self.places = dict(places)
        self._begun: dict[str, list[pa.RecordBatch]] = {}  # rows of a record of which more will come

    @property
    def is_within_a_record(self) -> bool:
        """Whether it waits for more rows of one."""
        return bool(self._begun)

    def admit(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Those rows that do not count yet; ``places`` move behind them. Raises LaneEnded for rows out of order, and
        for those of a partition that nobody knows."""
        if not rows.num_rows:
            return rows
        column = rows.column(PARTITION)
        names = [column[0].as_py()] if _is_one(column) else pc.unique(column).to_pylist()
        if len(names) == 1:
            return self._of_partition(names[0], rows)
        parts = [self._of_partition(name, rows.filter(pc.equal(column, name))) for name in names]
        return _joined(parts) if any(map(len, parts)) else parts[0]

    def _of_partition(self, name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        expected = self.places.get(name)
        if expected is None:
            raise LaneEnded("partitions were added to the topic")
        several = PROGRAM in rows.schema.names
        if several:
            rows = self._of_whole_records(name, rows)
            if not rows.num_rows:
                return rows
        places = rows.column(PLACE)
        if places[0].as_py() < expected:
            rows = rows.filter(pc.greater_equal(places, expected))
            if not rows.num_rows:
                return rows
            places = rows.column(PLACE)
        if not (_are_records(rows) if several else _is_rising(places)):
            raise LaneEnded(f"the records of partition {name} came out of order")
        self.places[name] = places[-1].as_py() + 1
        return rows

    def _of_whole_records(self, name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Those of records whose rows are all there, with what was begun before."""
        last = pc.indices_nonzero(pc.equal(rows.column(PROGRAM), WHOLE))
        end = last[-1].as_py() + 1 if len(last) else 0
        begun = self._begun.pop(name, [])
        left = rows.slice(end)
        if not end:
            self._begun[name] = [*begun, left]
            return left.slice(0, 0)
        if left.num_rows:
            self._begun[name] = [left]
        whole = rows.slice(0, end)
        return _joined([*begun, whole]) if begun else whole


def _are_records(rows: pa.RecordBatch) -> bool:
    """Whether the rows of each record follow each other, and records are in order."""
    places = rows.column(PLACE)
    is_last = pc.equal(rows.column(PROGRAM), WHOLE)
    if not _is_rising(places.filter(is_last)):
        return False
    changes = pc.not_equal(places[1:], places[:-1])
    return bool(pc.all(pc.equal(changes, is_last[:-1]), min_count=0).as_py())


def _is_rising(places: pa.Array) -> bool:
    return len(places) < 2 or bool(pc.all(pc.greater(places[1:], places[:-1])).as_py())


def _joined(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


def _is_one(column: pa.Array) -> bool:
    return bool(pc.all(pc.equal(column, column[0])).as_py())
