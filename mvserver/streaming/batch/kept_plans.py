"""A plan of Spark that is kept from batch to batch.

Of a batch of some hundred rows nearly all is planning: Spark analyses, optimizes and compiles what it has done for the
batch before. Where the rows are in memory and one task's, a program keeps the plan and gives it other rows. That is
right where one run of a plan leaves nothing to the next: there is no shuffle, whose files Spark would read again, and
no expression has another value in each batch (what is drawn for a row is drawn when the row is evaluated).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from mvserver.streaming.batch.spark_calls import collect
from mvserver.streaming.spark.java_functions import kept_rows
from spark_sinks.rows_frame import RowsFrame

_ROWS_BYTES_MAX = 1024 * 1024  # as py4j takes them, in a text; larger ones go by way of a file


@dataclass(frozen=True)
class _Made:
    session: SparkSession
    columns: pa.Schema
    given: pa.Schema  # the same as Spark reads them
    source: Any  # the JVM's KeptRows
    frame: DataFrame


class KeptPlan:
    """Of one program. One thread at a time has it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: _Made | None = None

    def collected(
        self, frame: DataFrame, plan: Callable[[DataFrame], DataFrame], schemas: dict[str, pa.Schema], shape: str
    ) -> pa.Table | None:
        """``plan`` of these rows, collected as :func:`spark_calls.collect` does. None where the rows are no such rows,
        or another thread has the plan: then it is made anew, as for any frame."""
        if not isinstance(frame, RowsFrame) or not 0 < frame.rows.nbytes <= _ROWS_BYTES_MAX:
            return None
        if not self._lock.acquire(blocking=False):
            return None
        try:
            made = self._of(frame, plan)
            (batch,) = frame.rows.cast(made.given).combine_chunks().to_batches()
            made.source.give(batch.serialize().to_pybytes())
            return collect(made.frame, schemas, shape)
        except BaseException:
            self._made = None  # what has failed, or was cancelled, is not used again
            raise
        finally:
            self._lock.release()

    def _of(self, frame: RowsFrame, plan: Callable[[DataFrame], DataFrame]) -> _Made:
        made, session = self._made, frame.sparkSession
        if made is None or made.session is not session or made.columns != frame.rows.schema:
            source, rows, given = kept_rows(session, frame.rows.schema)
            planned = plan(ClassicDataFrame(rows, session))
            made = self._made = _Made(session, frame.rows.schema, given, source, planned)
        return made
