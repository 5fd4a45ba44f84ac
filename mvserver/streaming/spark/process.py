"""One life of Spark: a JVM, the session in it, and what is known of how it does.

Two threads look after it: one waits for the process and reaps it, one asks the JVM every second whether it is there.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from mvserver import limits
from mvserver.errors import words_of
from mvserver.spark_jvm import SparkJvm, exit_signal, exit_text
from mvserver.streaming.spark.class_archive import make_beside
from mvserver.streaming.spark.executors import executor_cores
from mvserver.streaming.spark.jvm_folder import remove_jvm_folder
from mvserver.streaming.spark.launch import Launched, launch
from mvserver.streaming.spark.oom_kills import oom_kills
from mvserver.streaming.spark.options import SparkOptions, class_settings
from mvserver.streaming.spark.pyspark_state import forget_jvm
from mvserver.streaming.spark.session import start_session, warm_up

_log = logging.getLogger(__name__)

SHUTTING_DOWN = "the server is shutting down"
_ASKED = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})  # by somebody, not by what Spark computes
_STOPPED = ("T", "t")  # states of a process in /proc


class SparkProcess:
    """``changed`` is called when there is news. ``awaited`` says whether queries wait for it, which warm it themselves.
    All attributes may be read by any thread."""

    def __init__(
        self,
        options: SparkOptions,
        changed: Callable[[], None],
        launch: Callable[[SparkOptions], Launched] = launch,
        awaited: Callable[[], bool] = lambda: False,
    ) -> None:
        self._options = options
        self._launch = launch
        self._awaited = awaited
        self._changed = changed
        self._process: subprocess.Popen[bytes] | None = None
        self._jvm: SparkJvm | None = None
        self._folder: Path | None = None
        self._oom_kills = oom_kills()
        self._asked_at: float | None = None  # a question that has no answer yet
        self._killed_for: str | None = None
        self._was_stopped = False
        self.answers = 0  # to questions, as long as it is well
        self.executor_cores = 0  # task slots on other machines
        self.session: SparkSession | None = None
        self.broken: str | None = None  # why it cannot be talked to although the process may be there
        self.ended = threading.Event()

    # --- life -------------------------------------------------------------------------------------------------------
    def start(self) -> SparkSession:
        """Raises JvmStartError, or SqlError where the session cannot be made."""
        launched = self._launch(self._options)
        folder = self._folder = launched.folder
        self._set_process(launched.jvm.process)
        self._jvm = launched.jvm.joined()
        threading.Thread(target=self._await_end, args=(self._jvm.process,), name="spark-end", daemon=True).start()
        extra = (("spark.local.dir", str(folder / "local")), *self._options.extra)
        session = start_session(replace(self._options, extra=extra), self._jvm.environment)
        if not self._awaited():
            warm_up(session)
        self.session = session
        self._look_at_executors(session)
        threading.Thread(target=self._ask, args=(session,), name="spark-ping", daemon=True).start()
        self._make_archive()
        return session

    def stop(self) -> None:
        """In order where it answers."""
        if self.session is None or self.silent_s >= limits.SPARK_SILENT_S:
            self.kill(SHUTTING_DOWN)
            return
        if not self.ended.is_set():
            try:
                self.session.stop()
            except Exception as error:  # noqa: BLE001 - it may just have ended; the process is ended below
                _log.info("Spark did not stop in order: %s", error)
        if self._jvm is not None:
            self._jvm.stop()

    def kill(self, reason: str) -> None:
        """At once. ``reason`` is what ends it."""
        if self.ended.is_set():
            return
        if self._killed_for is None:
            self._killed_for = reason
            self._was_stopped = self.is_stopped
        if self._process is not None:
            self._process.kill()

    def forget(self) -> None:
        """After its end: nothing of it is left in this process or on disk."""
        self.session = None
        forget_jvm()
        if self._jvm is not None:
            self._jvm.stop()
        if self._folder is not None:
            remove_jvm_folder(self._folder)

    def _make_archive(self) -> None:
        archives, options = self._options.archives, self._options
        if archives is not None:
            given = archives, class_settings(options), options.command, self.ended
            threading.Thread(target=make_beside, args=given, name="spark-classes", daemon=True).start()

    def _set_process(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self._killed_for is not None:  # meanwhile
            process.kill()

    # --- how it does ------------------------------------------------------------------------------------------------
    @property
    def silent_s(self) -> float:
        """For how long it has left a question without an answer."""
        asked = self._asked_at
        return 0.0 if asked is None else time.monotonic() - asked

    @property
    def is_stopped(self) -> bool:
        """Whether somebody has stopped the process, as with SIGSTOP."""
        if self._process is None:
            return False
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] in _STOPPED

    @property
    def end(self) -> str:
        """How it ended, for people: ``signal 9``."""
        if self._killed_for is not None:
            return self._killed_for
        code = None if self._process is None else self._process.returncode
        if code is None:
            return self.broken or "it cannot be told how"
        text = exit_text(code)
        return f"{text}, the system was out of memory" if self._is_oom(code) else text

    @property
    def crashed(self) -> bool | None:
        """Whether nobody but its own work can have ended it; None where that was not its work at all."""
        if self._killed_for is not None:
            return None if self._was_stopped else True
        code = None if self._process is None else self._process.returncode
        number = None if code is None else exit_signal(code)
        if number in _ASKED:
            return None
        return number != signal.SIGKILL or self._is_oom(code)

    def _is_oom(self, code: int | None) -> bool:
        return code is not None and exit_signal(code) == signal.SIGKILL and oom_kills() > self._oom_kills

    def _look_at_executors(self, session: SparkSession) -> None:
        if not self._options.is_remote:
            return
        try:
            self.executor_cores = executor_cores(session)
        except Py4JJavaError as error:  # the JVM answers: the last count stands
            _log.info("Spark's executors could not be counted: %s", words_of(error))

    # --- the threads ------------------------------------------------------------------------------------------------
    def _await_end(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()  # which reaps it
        self.ended.set()
        self._changed()

    def _ask(self, session: SparkSession) -> None:
        context = session.sparkContext._jsc
        while not self.ended.wait(limits.SPARK_PING_S):
            kills, self._asked_at = oom_kills(), time.monotonic()
            try:
                stopped = context.sc().isStopped()
                if not stopped:
                    self._look_at_executors(session)
            except Exception as error:  # noqa: BLE001 - it is what this thread is there to find out
                self.broken = f"its gateway is broken: {type(error).__name__}"
            else:
                self._asked_at = None
                self._oom_kills = kills  # those of before were not of this process
                if not stopped:
                    self.answers += 1
                    continue
                self.broken = "its context has stopped by itself"
            self._changed()
            return
