"""A log as a source: what a query reads of rows that other queries of the server made.

Spark has no stream over it. A pipeline reads it in bounded batches, as soon as the commit that appended rows says so.
Positions are ``{"seq": n}``: the rows before number n are read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.base import Position, RecordOrder, SourceHealth
from spark_sinks.decode import parquet_column
from spark_sinks.duckdb.changes.logs import Log, bounds_query, read_query, rows_text
from spark_sinks.duckdb.record_columns import DELETED
from spark_sinks.duckdb.statements import Statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

LOOK_S = 1.0


class LogPositions:
    """:class:`spark_sinks.base.Positions` of any log."""

    counts_records = True

    def distance(self, start: Position, end: Position) -> int:
        return max(0, int(end["seq"]) - int(start["seq"]))

    def reached(self, position: Position, target: Position) -> bool:
        return int(position["seq"]) >= int(target["seq"])

    def limit(self, start: Position, end: Position, records: int) -> Position:
        return {"seq": min(int(start["seq"]) + records, int(end["seq"]))}

    def divisible(self, start: Position, end: Position, least: int) -> bool:
        return self.distance(start, end) > least

    def advance(self, start: Position, end: Position) -> Position:
        return {"seq": int(end["seq"])}

    def initial(self, positions: Sequence[Position]) -> Position:
        return {"seq": min(int(position["seq"]) for position in positions)}

    def partitions(self, position: Position) -> Mapping[str, int]:
        return {"0": int(position["seq"])}

    def segment_ranks(self, segments: Sequence[str]) -> Sequence[int]:
        return [0 for _ in segments]


class LogHealth:
    """A :class:`spark_sinks.base.Health`. ``bounds`` are the numbers of the first row that is kept and of the end."""

    def __init__(self, bounds: Callable[[], tuple[int, int]], complete: Callable[[], bool]) -> None:
        self._bounds = bounds
        self._complete = complete

    def look(self, position: Position) -> SourceHealth:
        return SourceHealth("ok", latest={"seq": self._bounds()[1]} if self._complete() else None)

    def explain_failure(self, error: BaseException, position: Position) -> Exception:
        if isinstance(error, SqlError):
            return error
        first = next((line for line in words_of(error).splitlines() if line.strip()), type(error).__name__)
        return SqlError(sqlstates.IO_ERROR, "reading an intermediate result failed", detail=first[:500])

    def remaining(self, start: Position) -> tuple[Position, str | None]:
        return start, None  # what is left of a log is not asked: it is made anew with what it is made from

    def check_history(self, start: Position) -> None:
        first, _ = self._bounds()
        if int(start["seq"]) < first:
            raise SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                f"rows from {start['seq']} of an intermediate result are gone",
                detail=f"It begins at {first}: what all its readers have read is removed.",
                hint="REFRESH MATERIALIZED VIEW rebuilds a view from its sources.",
            )


class LogReader:
    """A :class:`spark_sinks.base.SourceReader`, and its own rows as they come. ``complete`` says whether all that the
    log is made from has been read once up to its end: until then nobody can say where the log ends. ``look`` is called
    at intervals while a pipeline asks for rows."""

    positions = LogPositions()
    held = schemas = live = None

    def __init__(
        self,
        log: Log,
        schema: StructType,
        cursor: Callable[[], duckdb.DuckDBPyConnection],
        *,
        complete: Callable[[], bool] = lambda: True,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self.log = log
        self._schema = schema
        self._cursor = cursor()
        self._cursor.execute("SET TimeZone = 'UTC'")
        self._statements = Statements(self._cursor)
        self._look = look
        self._looked_at = time.monotonic()
        self._lock = threading.Lock()  # of the cursor
        self._appended = threading.Event()
        self._batch_end: Position = {"seq": 0}
        self.health = LogHealth(self._bounds, complete)

    # --- rows as they come ------------------------------------------------------------------------------------------
    @property
    def rounds(self) -> LogReader:
        return self

    @property
    def logged(self) -> LogReader:
        return self

    def notify(self) -> None:
        """Rows may have been committed."""
        self._appended.set()

    def wait(self, timeout_s: float) -> None:
        """Until rows may have been committed."""
        self._appended.wait(timeout_s)
        self._appended.clear()

    def next_batch(self, start: Position, records: int) -> Position:
        """The end of what is there now, at most so many records; ``start`` where there is nothing."""
        if time.monotonic() - self._looked_at >= LOOK_S:
            self._look()
            self._looked_at = time.monotonic()
        self._batch_end = self.positions.limit(start, self.end(), records)
        return self._batch_end

    def bounded(self, start: Position, end: Position, records: int) -> Position:
        return self.positions.limit(start, end, records)

    def batch_end(self, checkpoint: str, batch_id: int, start: Position) -> Position:
        return self._batch_end

    def batch(self, spark: SparkSession, start: Position, end: Position) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812 - the name everyone gives it

        names = [parquet_column(field.name).strip("`") for field in self._schema.fields]
        table = self._read(read_query(self.log, [f'"{name}"' for name in names]), start, end)
        # Arrow's timestamps without a zone come as instants: in UTC, the session's zone, both are the same moment.
        columns = [
            F.col(parquet_column(field.name)).cast(field.dataType).alias(name)
            for field, name in zip(self._schema.fields, names, strict=True)
        ]
        changes = [DELETED] if self.log.changes else []
        empty = F.lit(None).cast("binary")
        return spark.createDataFrame(table).select(
            empty.alias("key"), empty.alias("value"), F.col("position"), F.col("record_time"), *changes, *columns
        )

    def evaluated(self, query: Callable[[str], str], start: Position, end: Position) -> pa.Table | None:
        """What a query over rows of the log, which it is given as text, makes of these; None where one of them fails
        its expressions."""
        try:
            return self._read(query(rows_text(self.log)), start, end)
        except (duckdb.DataError, duckdb.InvalidInputException):
            return None

    def _read(self, query: str, start: Position, end: Position) -> pa.Table:
        self.health.check_history(start)
        with self._lock:
            read = self._statements.execute(query, [int(start["seq"]), int(end["seq"])])
            return read.to_arrow_table()

    def stream(
        self, spark: SparkSession, start: Position, *, records_per_trigger: int
    ) -> AbstractContextManager[DataFrame]:
        raise SqlError(sqlstates.INTERNAL_ERROR, "a log has no Spark stream", detail=f"Log {self.log.table}.")

    def give_up(self) -> None:
        """A batch is made without a long wait."""

    def close(self) -> None:
        with self._lock:
            self._cursor.close()

    # --- positions --------------------------------------------------------------------------------------------------
    def _bounds(self) -> tuple[int, int]:
        with self._lock:
            rows = self._statements.execute(bounds_query(self.log)).fetchall()
        return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)

    def end(self) -> Position:
        """The end of what is there now."""
        return {"seq": self._bounds()[1]}

    def adopt(self, position: Position, *, fresh: bool) -> Position:
        return position

    def confirm(self, position: Position) -> None:
        """A log has no other identity than its name."""

    @property
    def record_order(self) -> RecordOrder:
        return RecordOrder("'0'", "cast(position as bigint)")

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        return [position for position, _ in records]
