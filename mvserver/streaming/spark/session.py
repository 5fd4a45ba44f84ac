"""The one Spark session: how it is started, warmed up and stopped.

Settings that decide meaning (ANSI, time zone, JSON pruning) are fixed here and never a user's; settings that decide
speed carry the measurement that chose them.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from mvserver import sqlstates
from mvserver.compiler.lower_spark import REQUIRED_SETTINGS
from mvserver.errors import SqlError, words_of
from mvserver.streaming.spark import java_functions
from mvserver.streaming.spark.class_archive import OPTIONS
from mvserver.streaming.spark.java_references import keep_no_methods
from mvserver.streaming.spark.options import JAR_DIRECTORY, JAVA_OPTIONS, SparkOptions, local_slots, master_of
from mvserver.streaming.spark.results import be_patient

_log = logging.getLogger(__name__)

_SETTINGS = {
    # --- meaning
    **REQUIRED_SETTINGS,
    # Pruning would let the columns that a view uses decide which records are rejected.
    "spark.sql.optimizer.enableJsonExpressionOptimization": "false",
    "spark.sql.optimizer.enableCsvExpressionOptimization": "false",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    # --- speed: a trigger's fixed cost
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",  # no .crc files, no chmod forks
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.fileSource.log.compactInterval": "1000000",  # a generation is short; compaction is quadratic
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # Rows from the driver are read by tasks: as a part of the plan they would be evaluated by its optimizer, without
    # compiled code and one after the other (measured on a busy machine: 0.22 s instead of 0.39 s for 15,000 records).
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    "spark.locality.wait": "0",
    "spark.driver.maxResultSize": "512m",  # a batch of larger rows is tried again with fewer
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    OPTIONS: JAVA_OPTIONS,
}
START_HINT = "See the server's log; `mvserver check` says what is missing."
LIVE_S = 2.0  # so long after a live batch the next one is expected
_TASK_LOGGERS = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    # of the live lane, whose tasks end by being ended
    "org.apache.spark.sql.execution.datasources.v2.DataWritingSparkTask",
    "org.apache.spark.sql.execution.datasources.v2.AppendDataExec",
    "org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec",
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",
    "org.apache.spark.util.Utils",
)
_ERROR_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")  # PySpark's own


def _parallelism(options: SparkOptions) -> Mapping[str, str]:
    """Batches are divided as if the slots of live lanes were not there."""
    slots = local_slots(options.master)
    return {} if slots is None or not options.live_slots else {"spark.default.parallelism": str(slots)}


def start_session(options: SparkOptions, environment: Mapping[str, str] | None = None) -> SparkSession:
    """Makes the session in the JVM that ``environment`` names; without it PySpark starts one as a child. Raises
    SqlError 58000 where Spark cannot start."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    be_patient()
    keep_no_methods()
    options.work_directory.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder.appName("mvserver").master(master_of(options))
    settings = {
        **_SETTINGS,
        **_parallelism(options),
        **dict(options.stores),
        **({} if options.jar_directory is None else {JAR_DIRECTORY: str(options.jar_directory)}),
        "spark.driver.memory": options.driver_memory,
        "spark.driver.host": options.host,
        "spark.driver.bindAddress": options.bind_address,
        "spark.sql.streaming.pollingDelay": f"{options.polling_delay_ms}ms",
        "spark.sql.warehouse.dir": str(options.work_directory / "warehouse"),
        "spark.local.dir": str(options.work_directory / "local"),
        "spark.sql.shuffle.partitions": str(max(1, os.cpu_count() or 1)),
        **dict(options.extra),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        with _joining(environment or {}):
            session: SparkSession = builder.getOrCreate()
        java_functions.install(session, options.work_directory)
    except Exception as error:
        raise SqlError(
            sqlstates.SYSTEM_ERROR,
            "Spark could not be started",
            detail=f"{_cause(error, options)}.",
            hint=START_HINT,
        ) from error
    if not _log.isEnabledFor(logging.DEBUG):
        _leave_failures_to_us(session)
    return session


def _cause(error: Exception, options: SparkOptions) -> str:
    words = _words(error)
    if options.is_remote and "stopped SparkContext" in words:  # by itself: Spark's log alone says why
        return f"the cluster at {options.master} does not answer, or has ended the application"
    return words


def _words(error: Exception) -> str:
    """What Java says is behind the name of the call, on a line that begins with a colon."""
    lines = [line.strip() for line in words_of(error).splitlines() if line.strip()] or [type(error).__name__]
    return next((line[1:].strip() for line in lines if line.startswith(":")), lines[0])[:500].rstrip(".")


@contextmanager
def _joining(environment: Mapping[str, str]) -> Iterator[None]:
    """PySpark looks there for a JVM that is up already; nobody else is to find it."""
    os.environ.update(environment)
    try:
        yield
    finally:
        for name in environment:
            os.environ.pop(name, None)


def _leave_failures_to_us(session: SparkSession) -> None:
    """What fails a task is raised here, and logged in one line as the failure of a query or a pipeline. Spark logs it
    before that, with the Java stack, once for each try and each layer: some hundred lines for a division by zero."""
    jvm = session.sparkContext._jvm
    assert jvm is not None  # noqa: S101 - a session has one
    log4j = jvm.org.apache.logging.log4j
    for name in _TASK_LOGGERS:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)
    for name in _ERROR_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def warm_up(session: SparkSession) -> None:
    """Runs the shapes of a micro-batch a few times, so that the first real batch does not pay for cold code."""
    schema = "a bigint, b string, _corrupt string"
    options = "map('columnNameOfCorruptRecord', '_corrupt')"
    for rows in (100, 100, 20_000, 100):
        frame = session.range(rows).selectExpr("""cast(concat('{"a":', id, ',"b":"x"}') as binary) AS value""")
        parsed = frame.selectExpr(f"from_json(cast(value as string), '{schema}', {options}) AS j")
        parsed.selectExpr("j.a AS a", "j.b AS b", "j._corrupt IS NULL AS f").toArrow()


class SparkGate:
    """Admission of work to Spark: first come, first served, at most ``width`` jobs at a time.

    Spark's own scheduler starves some of many concurrent streams; a queue gives all the same pace. Rounds of filling
    are long beside live batches: while there are any, one place is left to these.
    """

    def __init__(self, width: int = 2, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._live = 0  # that run or wait
        self._last_live: float | None = None  # when the last one ended
        self._rounds = 0  # that run or wait for their place
        self._condition = threading.Condition()
        self._width = width
        self._running = 0
        self._next_ticket = 0
        self._serving = 0

    def has_live_work(self) -> bool:
        """Whether live batches, of whatever pipeline, are under way or were a moment ago."""
        with self._condition:
            return self._is_live()

    def has_seen_live(self) -> None:
        """A live lane has evaluated rows: rounds leave it room, although it asks for no place."""
        with self._condition:
            self._last_live = self._clock()

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """A live batch, or what somebody waits for."""
        with self._condition:
            self._live += 1
        try:
            with self._place():
                yield
        finally:
            with self._condition:
                self._live -= 1
                self._last_live = self._clock()
                self._condition.notify_all()

    @contextmanager
    def admitted_round(self) -> Iterator[None]:
        """A round of filling."""
        with self._condition:
            while self._rounds >= (max(1, self._width - 1) if self._is_live() else self._width):
                self._condition.wait(LIVE_S)  # it may be live work that does not go on
            self._rounds += 1
        try:
            with self._place():
                yield
        finally:
            with self._condition:
                self._rounds -= 1
                self._condition.notify_all()

    def _is_live(self) -> bool:
        return self._live > 0 or (self._last_live is not None and self._clock() - self._last_live < LIVE_S)

    @contextmanager
    def _place(self) -> Iterator[None]:
        with self._condition:
            ticket = self._next_ticket
            self._next_ticket += 1
            self._condition.wait_for(lambda: ticket == self._serving and self._running < self._width)
            self._serving += 1
            self._running += 1
            self._condition.notify_all()
        try:
            yield
        finally:
            with self._condition:
                self._running -= 1
                self._condition.notify_all()
