"""The process of Spark's JVM: started from a command, joined by PySpark, ended and reaped by whoever started it.

PySpark would start it itself, but it keeps no hold of the process while that comes up, and waits without a bound.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mvserver import limits

_LOOK_S = 0.05
_LAUNCHER_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # of the JVM that makes the command, in a fifth of a second
)
_STOP_S = 5.0  # how long a JVM may take to end after its input was closed


class JvmStartError(Exception):
    """The JVM did not start. ``signal`` is what ended it, where a signal did: also where it took too long."""

    def __init__(self, message: str, signal_number: int | None = None) -> None:
        super().__init__(message)
        self.signal = signal_number


@dataclass(frozen=True)
class SparkJvm:
    """A JVM that PySpark may join by ``port`` and ``secret``. It ends by itself when this process does."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str

    @property
    def environment(self) -> Mapping[str, str]:
        """What PySpark must find in the environment to join."""
        return {"PYSPARK_GATEWAY_PORT": str(self.port), "PYSPARK_GATEWAY_SECRET": self.secret}

    def stop(self) -> None:
        """Ends and reaps it; at once where it does not end by itself."""
        if self.process.stdin is not None:
            self.process.stdin.close()  # what the JVM waits for
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def pyspark_home() -> Path:
    """The Spark that came with PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JvmStartError("pyspark is not installed")
    return Path(spec.origin).parent


def submit_command(settings: Mapping[str, str]) -> list[str]:
    """Spark's own program for a JVM that waits to be joined, on the Java that it finds."""
    home = Path(os.environ.get("SPARK_HOME") or pyspark_home())
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    return [str(home / "bin" / "spark-submit"), *options, *arguments]


class LaunchedJvm:
    """A JVM that comes up. Nobody has waited for it yet."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Raises JvmStartError where the program cannot be run."""
        self._folder = Path(tempfile.mkdtemp(prefix="mvserver-jvm-"))
        self._told = self._folder / "connection"
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                env={
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_LAUNCHER_OPTS": _LAUNCHER_OPTIONS,
                    **(os.environ if environment is None else environment),
                    "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._told),
                    "SPARK_CONNECT_MODE": "0",
                },
                start_new_session=True,  # Ctrl-C is the server's to handle
            )
        except OSError as error:
            self._remove_folder()
            raise JvmStartError(f"the JVM could not be started: {error}") from error

    def joined(self, timeout_s: float = limits.SPARK_JVM_START_S) -> SparkJvm:
        """Waits until it can be joined. Raises JvmStartError, and then it has ended."""
        deadline = time.monotonic() + timeout_s
        try:
            while not self._told.exists():  # it appears whole, by a rename
                code = self.process.poll()
                if code is not None:
                    raise JvmStartError(f"the JVM ended with {exit_text(code)}", exit_signal(code))
                if time.monotonic() > deadline:
                    self.kill()
                    raise JvmStartError(f"the JVM was not up within {timeout_s:g} s", signal.SIGKILL)
                time.sleep(_LOOK_S)
            port, secret = _connection(self._told.read_bytes())
        except OSError as error:
            self.kill()
            raise JvmStartError(f"the JVM could not be joined: {error}") from error
        finally:
            self._remove_folder()
        return SparkJvm(self.process, port, secret)

    def kill(self) -> None:
        """Ends and reaps it."""
        self.process.kill()
        self.process.wait()
        self._remove_folder()

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def start_jvm(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    timeout_s: float = limits.SPARK_JVM_START_S,
    started: Callable[[subprocess.Popen[bytes]], None] = lambda process: None,
) -> SparkJvm:
    """Starts it and waits until it can be joined. ``started`` is told of the process at once. Raises JvmStartError."""
    launched = LaunchedJvm(command, environment)
    started(launched.process)
    return launched.joined(timeout_s)


def exit_signal(code: int) -> int | None:
    """The signal that ended a process with this code, also where the JVM or a shell turned it into a code."""
    if code < 0:
        return -code
    return code - 128 if 128 < code <= 128 + signal.NSIG else None


def exit_text(code: int) -> str:
    """``signal 9`` or ``code 1``."""
    number = exit_signal(code)
    return f"code {code}" if number is None else f"signal {number}"


def _connection(told: bytes) -> tuple[int, str]:
    """Two values as Java writes them: an int, then a length and that many bytes."""
    port, length = struct.unpack_from(">ii", told)
    return port, told[8 : 8 + length].decode()
