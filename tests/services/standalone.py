"""A real Spark cluster: the standalone master and one worker of PySpark's own Spark, on loopback."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mvserver.spark_jvm import pyspark_home
from tests.faults.live import free_port
from tests.services.postgres import children

_START_S = 120.0
_CORES = 6  # that live tasks mostly wait on
_EXECUTOR = b"CoarseGrainedExecutorBackend"


class StandaloneSpark:
    """``master`` is what ``spark_master`` takes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = ""

    def start(self) -> StandaloneSpark:
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._launch("Master", "--port", str(port))
        self._wait("Master", "I have been elected leader")
        self._launch("Worker", "--cores", str(_CORES), "--memory", "2g", "--work-dir", str(self._folder), self.master)
        self._wait("Worker", "Successfully registered with master")
        return self

    def kill_executors(self) -> int:
        """With SIGKILL; how many there were. The worker starts others."""
        found = [pid for pid in children(self._processes[-1].pid) if _EXECUTOR in _command(pid)]
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        return len(found)

    def close(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            process.wait(60)

    def _launch(self, role: str, *arguments: str) -> None:
        name = f"org.apache.spark.deploy.{role.lower()}.{role}"
        command = [str(pyspark_home() / "bin" / "spark-class"), name, "--host", "127.0.0.1", "--webui-port", "0"]
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
        }
        with (self._folder / f"{role}.log").open("wb") as log:
            process = subprocess.Popen([*command, *arguments], env=environment, stdout=log, stderr=log)
        self._processes.append(process)

    def _wait(self, role: str, words: str) -> None:
        deadline, log = time.monotonic() + _START_S, self._folder / f"{role}.log"
        while words not in (told := log.read_text(errors="replace")):
            if self._processes[-1].poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"Spark's {role} does not start: {told[-2000:]}")
            time.sleep(0.05)


@pytest.fixture(scope="module")
def standalone_spark() -> Iterator[StandaloneSpark]:
    folder = Path(tempfile.mkdtemp(prefix="mvserver-spark-"))
    cluster = StandaloneSpark(folder)
    try:
        yield cluster.start()
    finally:
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
