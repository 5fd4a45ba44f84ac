"""Spark's query of a live run: the real-time trigger, and a writer in the JVM that hands rows to the server."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mvserver import sqlstates
from mvserver.errors import words_of
from mvserver.streaming.batch.spark_calls import use_in_this_thread
from mvserver.streaming.live.ended import LaneEnded, LiveRefused
from mvserver.streaming.live.row_server import RowServer
from mvserver.streaming.spark.errors import error_line, sql_error
from mvserver.streaming.spark.java_functions import live_rows

# An epoch ends with nothing that is needed here, and with a pause. Spark's own positions are never trusted.
_EPOCH = "30 days"


_REFUSALS = ("STREAMING_REAL_TIME_MODE", "is not compatible with real time mode")
_WORDS_S = 5  # how long a query may take to end whose task has gone


class LiveQuery:
    """Begun when it is made."""

    def __init__(
        self,
        session: SparkSession,
        rows: DataFrame,
        server: RowServer,
        checkpoint: Path,
    ) -> None:
        for old in checkpoint.parent.glob("checkpoint-*"):
            shutil.rmtree(old, ignore_errors=True)
        use_in_this_thread(session)
        writer = rows.writeStream.outputMode("update").option("checkpointLocation", str(checkpoint))
        writer = writer.trigger(realTime=_EPOCH)  # type: ignore[call-overload]  # which PySpark does not declare
        writer._jwrite.foreach(live_rows(session, rows._jdf.schema(), server.host, server.port, server.token))
        try:
            self._query = writer.start()
        except Exception as error:
            raise _ended(error) from error

    def failure(self, *, soon: bool = False) -> LaneEnded | None:
        """Why it has ended; None as long as it goes on. ``soon``: it is about to end."""
        if soon:
            with contextlib.suppress(PySparkException):
                self._query.awaitTermination(_WORDS_S)
        if self._query.isActive:
            return None
        error = self._query.exception()
        return LaneEnded("Spark's query ended by itself") if error is None else _ended(error)

    def stop(self) -> None:
        self._query.stop()


def _ended(error: Exception) -> LaneEnded:
    if any(words in words_of(error) for words in _REFUSALS):
        return LiveRefused(f"Spark does not run its queries live: {error_line(error)}")
    cause = sql_error(error)
    return LaneEnded(f"Spark's query failed: {cause.detail if cause.sqlstate == sqlstates.INTERNAL_ERROR else cause}")
