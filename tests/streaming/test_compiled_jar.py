"""The jar of the server's Java classes is compiled once, and anew where it is not the one that is wanted."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mvserver.streaming.spark import compiled_jar

JAR = "functions.jar"


class Jvm:
    """Compiles a source to a class of its first word, whose code is the source, and counts that."""

    def __init__(self, java: str = "17.0.1") -> None:
        self.cooked: list[str] = []
        self.java = SimpleNamespace(lang=SimpleNamespace(System=SimpleNamespace(getProperty=lambda name: java)))
        self.org = SimpleNamespace(codehaus=SimpleNamespace(janino=SimpleNamespace(SimpleCompiler=self._compiler)))

    def _compiler(self) -> Any:
        made: dict[str, bytes] = {}

        def cook(source: str) -> None:
            self.cooked.append(source)
            made[f"mvserver.{source.split()[0]}"] = source.encode()

        return SimpleNamespace(
            cook=cook, getBytecodes=lambda: made, getClassLoader=lambda: None, setParentClassLoader=lambda loader: None
        )


def content(jar: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(jar) as found:
        return {name: found.read(name) for name in found.namelist()}


def test_it_is_compiled_once(tmp_path: Path) -> None:
    first, second, jar = Jvm(), Jvm(), tmp_path / JAR
    compiled_jar.provide(first, jar, ["One is", "Two uses One"])
    expected = {"mvserver/One.class": b"One is", "mvserver/Two.class": b"Two uses One"}
    assert content(jar) == expected
    compiled_jar.provide(second, jar, ["One is", "Two uses One"])
    assert (first.cooked, second.cooked) == (["One is", "Two uses One"], [])
    assert content(jar) == expected
    assert [each.name for each in tmp_path.iterdir()] == [JAR]


def test_other_sources_and_another_java_make_it_anew(tmp_path: Path) -> None:
    jar = tmp_path / JAR
    compiled_jar.provide(Jvm(), jar, ["One is"])
    changed, newer = Jvm(), Jvm("21.0.2")
    compiled_jar.provide(changed, jar, ["One was"])
    assert content(jar) == {"mvserver/One.class": b"One was"}
    compiled_jar.provide(newer, jar, ["One was"])
    assert (changed.cooked, newer.cooked) == (["One was"], ["One was"])


def test_another_spark_makes_it_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar, jvm = tmp_path / JAR, Jvm()
    compiled_jar.provide(jvm, jar, ["One is"])
    monkeypatch.setattr(compiled_jar, "pyspark_home", lambda: tmp_path)
    compiled_jar.provide(jvm, jar, ["One is"])
    assert jvm.cooked == ["One is", "One is"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: bytes(len(data)),
        lambda data: data.replace(b"One is", b"One if", 1),
        lambda data: b"",
        lambda data: data.replace(b"PK\x01\x02\x14\x03\x14", b"PK\x01\x02\x14\x03\x54"),
    ],
    ids=["cut", "zeros", "a changed class", "empty", "another version of zip"],
)
def test_a_damaged_one_is_made_anew(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    jar, jvm = tmp_path / JAR, Jvm()
    compiled_jar.provide(Jvm(), jar, ["One is"])
    jar.write_bytes(damage(jar.read_bytes()))
    compiled_jar.provide(jvm, jar, ["One is"])
    assert jvm.cooked == ["One is"]
    assert content(jar) == {"mvserver/One.class": b"One is"}
