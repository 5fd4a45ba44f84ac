"""What was compiled of our Java is kept for the next start of Spark, and made again where it is not what it was."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from mvserver.streaming.spark.kept_classes import kept_jar

CLASSES = {"mvserver.One": b"one", "mvserver.One$Inner": b"inner"}


class Compiler:
    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> dict[str, bytes]:
        self.asked += 1
        return CLASSES


@pytest.fixture
def compiler() -> Compiler:
    return Compiler()


def content(jar: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(jar)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_it_is_compiled_once(tmp_path: Path, compiler: Compiler) -> None:
    folder = tmp_path / "not" / "there"
    made = kept_jar(folder, ["17", "class One {}"], compiler)
    assert content(made) == {"mvserver/One.class": b"one", "mvserver/One$Inner.class": b"inner"}
    assert kept_jar(folder, ["17", "class One {}"], compiler) == made
    assert compiler.asked == 1
    assert len(list(folder.iterdir())) == 1  # nothing is left of writing it


def test_it_is_compiled_again_by_another_java_and_of_other_sources(tmp_path: Path, compiler: Compiler) -> None:
    for made_of in (["17", "class One {}"], ["21", "class One {}"], ["17", "class Two {}"], ["17class One {}"]):
        kept_jar(tmp_path, made_of, compiler)
    assert compiler.asked == 4


@pytest.mark.parametrize("at", [0, 40, -1])
def test_a_damaged_one_is_made_again(tmp_path: Path, compiler: Compiler, at: int) -> None:
    made = kept_jar(tmp_path, ["x"], compiler)
    (file,) = tmp_path.iterdir()
    damaged = bytearray(file.read_bytes())
    damaged[at] ^= 255
    for wrong in (bytes(damaged), b"", file.read_bytes()[:-1]):
        file.write_bytes(wrong)
        asked = compiler.asked
        assert content(kept_jar(tmp_path, ["x"], compiler)) == content(made)
        assert compiler.asked == asked + 1
        assert kept_jar(tmp_path, ["x"], compiler)
        assert compiler.asked == asked + 1


def test_three_are_kept(tmp_path: Path, compiler: Compiler) -> None:
    for number in range(5):
        before = set(tmp_path.iterdir())
        kept_jar(tmp_path, [str(number)], compiler)
        (file,) = set(tmp_path.iterdir()) - before
        os.utime(file, (1_000 + number, 1_000 + number))
    kept_jar(tmp_path, ["4"], compiler)
    assert compiler.asked == 5
    assert len(list(tmp_path.iterdir())) == 3
    kept_jar(tmp_path, ["0"], compiler)
    assert compiler.asked == 6


def test_without_a_folder_and_where_it_cannot_be_written_it_is_compiled_each_time(
    tmp_path: Path, compiler: Compiler
) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    for folder in (None, file):
        for _ in range(2):
            assert content(kept_jar(folder, ["x"], compiler))
    assert compiler.asked == 4
    assert file.read_text() == "no folder"
