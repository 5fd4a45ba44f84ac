"""The process that makes an archive of Spark's classes: a Spark that does what a server's does first, and ends.

``python -m mvserver.streaming.spark.class_archive_maker``; what to do comes as a line of JSON on standard input. When
that is closed, whoever asked for it is gone, and so are this process and its JVM at once.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from mvserver.spark_jvm import start_jvm
from mvserver.streaming.spark.class_archive import MAKE_S
from mvserver.streaming.spark.options import SparkOptions
from mvserver.streaming.spark.session import start_session, warm_up

_GONE = 3  # exit status


class _Jvm:
    """That of this process, which may have to be killed at any moment."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._gone = False

    def started(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self._gone:
            process.kill()

    def end_with_input(self, given: io.FileIO) -> None:
        given.readall()
        self._gone = True
        if self._process is not None:
            self._process.kill()
        os._exit(_GONE)


def main() -> None:
    given = io.FileIO(sys.stdin.fileno(), closefd=False)  # a buffer has a lock, which hinders the end
    order = json.loads(given.readline())
    os.nice(19)
    jvm = _Jvm()
    threading.Thread(target=jvm.end_with_input, args=(given,), daemon=True).start()
    work = Path(order["work"])
    work.mkdir(parents=True, exist_ok=True)
    started = start_jvm(order["command"], timeout_s=MAKE_S, started=jvm.started)
    session = start_session(SparkOptions("local[1]", work_directory=work), started.environment)
    warm_up(session)
    _micro_batch(session, work)
    session.stop()
    assert started.process.stdin is not None  # noqa: S101 - a pipe
    started.process.stdin.close()  # which ends the JVM: it writes the archive
    started.process.wait(MAKE_S)


def _micro_batch(session: SparkSession, work: Path) -> None:
    """The classes of streaming queries, too."""
    lines = work / "lines"
    lines.mkdir()
    (lines / "one").write_text("a line\n")
    frame = session.readStream.format("text").load(str(lines))
    query = frame.writeStream.foreachBatch(lambda batch, _: batch.toArrow()).trigger(availableNow=True)
    query.option("checkpointLocation", str(work / "checkpoint")).start().awaitTermination()


if __name__ == "__main__":
    main()
