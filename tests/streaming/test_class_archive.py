"""Archives of Spark's classes: for whom one is used, when one is made, and that a wrong one does no harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mvserver.spark_java import jvm_command
from mvserver.streaming.spark import class_archive
from mvserver.streaming.spark.class_archive import OPTIONS, ClassArchives, make_beside
from mvserver.streaming.spark.options import SparkOptions, class_settings, jvm_settings
from tests.services import class_archives

SETTINGS = {OPTIONS: "-Xss8m", "spark.driver.memory": "2g"}


def _command(settings: Mapping[str, str]) -> Sequence[str]:
    return ["java", settings[OPTIONS]]


@pytest.fixture
def archives(tmp_path: Path) -> ClassArchives:
    return ClassArchives(tmp_path / "archives")


def _writing(monkeypatch: pytest.MonkeyPatch, text: str | None = "classes") -> list[list[str]]:
    """In the place of the process that makes one; what it was asked for."""
    asked: list[list[str]] = []

    def run(command: Sequence[str], work: Path, given_up: Any) -> bool:
        asked.append(list(command))
        target = command[1].partition('"-XX:ArchiveClassesAtExit=')[2].partition('"')[0]
        if text is not None:
            Path(target).write_text(text)
        return not given_up()

    monkeypatch.setattr(class_archive, "_run", run)
    return asked


def test_a_start_uses_the_archive_that_was_made_for_its_like(
    archives: ClassArchives, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert archives.used(SETTINGS) == SETTINGS
    assert archives.lacks(SETTINGS)
    asked = _writing(monkeypatch)
    assert archives.make(SETTINGS, _command, lambda: False)
    (made,) = archives.folder.glob("*.jsa")
    assert made.read_text() == "classes"
    assert not archives.lacks(SETTINGS)
    assert f'-Xss8m "-XX:SharedArchiveFile={made}"' in archives.used(SETTINGS)[OPTIONS]
    assert "-XX:+VerifySharedSpaces" in archives.used(SETTINGS)[OPTIONS]
    assert not archives.make(SETTINGS, _command, lambda: False)  # it is there
    assert len(asked) == 1
    jar = tmp_path / "connector.jar"
    jar.write_text("one")
    others = [{**SETTINGS, OPTIONS: "-Xss9m"}, {**SETTINGS, "spark.driver.extraClassPath": str(jar)}]
    assert all(archives.lacks(each) and archives.used(each) == each for each in others)
    assert archives.make(others[1], _command, lambda: False)
    jar.write_text("another")
    assert archives.lacks(others[1])
    settings = jvm_settings(SparkOptions(archives=archives), tmp_path)
    assert settings == jvm_settings(SparkOptions(), tmp_path)  # none is for the server's own options


def test_one_that_is_given_up_leaves_nothing(archives: ClassArchives, monkeypatch: pytest.MonkeyPatch) -> None:
    _writing(monkeypatch)
    assert not archives.make(SETTINGS, _command, lambda: True)
    assert [each.name for each in archives.folder.iterdir()] == ["making"]
    assert archives.lacks(SETTINGS)


def test_a_jvm_that_writes_none_is_asked_again_a_week_later(
    archives: ClassArchives, monkeypatch: pytest.MonkeyPatch
) -> None:
    _writing(monkeypatch, None)
    assert not archives.make(SETTINGS, _command, lambda: False)
    assert not archives.lacks(SETTINGS)
    assert archives.used(SETTINGS) == SETTINGS
    (failed,) = archives.folder.glob("*.none")
    long_ago = time.time() - 8 * 24 * 3600
    os.utime(failed, (long_ago, long_ago))
    assert archives.lacks(SETTINGS)


def test_one_process_makes_it_and_few_are_kept(archives: ClassArchives, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _writing(monkeypatch)
    archives.folder.mkdir()
    with class_archive._alone(archives.folder / "making") as alone:
        assert alone
        assert not archives.make(SETTINGS, _command, lambda: False)
    assert not asked
    for age, number in enumerate("12345"):
        old = archives.folder / f"{number}.jsa"
        old.touch()
        os.utime(old, (1_000 - age, 1_000 - age))
    assert archives.make(SETTINGS, _command, lambda: False)
    assert {each.stem for each in archives.folder.glob("*.jsa")} > {"1", "2"}
    assert len(list(archives.folder.glob("*.jsa"))) == 3


def test_a_spark_that_ends_soon_makes_none(archives: ClassArchives, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _writing(monkeypatch)
    ended = threading.Event()
    ended.set()
    make_beside(archives, SETTINGS, _command, ended)
    assert not asked
    monkeypatch.setattr(class_archive, "QUIET_S", 0.0)
    monkeypatch.setattr(class_archive, "free_memory", lambda: 1 << 30)
    make_beside(archives, SETTINGS, _command, threading.Event())
    assert not asked
    monkeypatch.setattr(class_archive, "free_memory", lambda: 8 << 30)
    make_beside(archives, SETTINGS, _command, threading.Event())
    assert len(asked) == 1


def test_the_maker_ends_with_who_asked_for_it(archives: ClassArchives) -> None:
    looks: list[bool] = []

    def given_up() -> bool:
        looks.append(True)
        return len(looks) > 2

    began = time.monotonic()
    assert not archives.make(class_settings(SparkOptions()), jvm_command, given_up)
    assert time.monotonic() - began < class_archive.MAKE_S / 2
    assert [each.name for each in archives.folder.iterdir()] == ["making"]


_COUNTING = """
import json, sys
from pathlib import Path
from mvserver.spark_jvm import start_jvm
from mvserver.streaming.spark.options import SparkOptions
from mvserver.streaming.spark.session import start_session
jvm = start_jvm(json.loads(sys.argv[1]))
session = start_session(SparkOptions("local[1]", work_directory=Path(sys.argv[2])), jvm.environment)
print(session.range(3).count())
session.stop()
jvm.stop()
"""


@pytest.mark.spark
@pytest.mark.parametrize("damaged", [False, True])
def test_spark_takes_its_classes_from_the_archive_and_a_damaged_one_is_left_aside(
    tmp_path: Path, *, damaged: bool
) -> None:
    shared = ClassArchives(Path(class_archives.prepared()))
    options = SparkOptions("local[1]", "512m", archives=shared, class_path=class_archives.jars)
    settings = class_settings(options)
    assert shared.used(settings) != settings
    if damaged:
        mine = ClassArchives(tmp_path / "archives")
        mine.folder.mkdir()
        (mine.folder / shared._path(settings).name).write_bytes(_with_flipped_bits(shared._path(settings)))
        options = SparkOptions("local[1]", "512m", archives=mine, class_path=class_archives.jars)
    log = tmp_path / "classes.log"
    given = jvm_settings(options, tmp_path)
    command = jvm_command({**given, OPTIONS: f"{given[OPTIONS]} -Xlog:class+load:file={log}"})
    # In a process of its own: the tests around have a session in this one.
    told = subprocess.run(
        [sys.executable, "-c", _COUNTING, json.dumps(command), str(tmp_path / "spark")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert told.stdout.split() == ["3"], told.stderr
    mapped = sum("org.apache.spark" in line and "(top)" in line for line in log.read_text().splitlines())
    assert mapped == 0 if damaged else mapped > 1_000


def _with_flipped_bits(path: Path) -> bytes:
    found = bytearray(path.read_bytes())
    middle = len(found) // 2
    found[middle : middle + 64] = bytes(each ^ 255 for each in found[middle : middle + 64])
    return bytes(found)
