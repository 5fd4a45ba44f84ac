"""Lines of a file in bounded memory, and the copy that Spark reads where one of them is too long."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import os
import random
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from mvserver.errors import SqlError
from spark_sinks.file import lines as module
from spark_sinks.file.lines import bounded_copy, has_long_line, lines, may_have_long_lines
from spark_sinks.oversize import KEPT_BYTES, mark, unmarked

NEVER: Callable[[], bool] = lambda: False  # noqa: E731


def written(path: Path, content: bytes) -> Path:
    if path.suffix == ".gz":
        content = gzip.compress(content)
    elif path.suffix == ".bz2":
        content = bz2.compress(content)
    elif path.suffix == ".deflate":
        content = zlib.compress(content)
    elif path.suffix == ".zst":
        content = pa.compress(content, codec="zstd", asbytes=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1024])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\nbb\n", [b"a", b"bb"]),
        (b"a\r\nbb\rccc\n\nd", [b"a", b"bb", b"ccc", b"", b"d"]),
        (b"a\r", [b"a"]),
        (b"\r\n\r\n", [b"", b""]),
        (b"\n\r", [b"", b""]),
        (b"", []),
    ],
)
def test_lines_end_as_spark_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, content: bytes, expected: list[bytes]
) -> None:
    monkeypatch.setattr(module, "_CHUNK_BYTES", chunk)
    found = list(lines(written(tmp_path / "f.json", content), 100))
    assert found == [(line, len(line)) for line in expected]


@pytest.mark.parametrize("chunk", [1, 5, 10, 11, 64])
@pytest.mark.parametrize(
    ("content", "long"),
    [
        (b"x" * 10 + b"\n" + b"y" * 10, False),
        (b"x" * 11 + b"\nshort", True),
        (b"short\n" + b"x" * 11, True),
        (b"short\r" + b"x" * 11 + b"\rshort\n", True),
        (b"short\r\n" + b"x" * 10 + b"\r\n", False),
        (b"\n" * 40, False),
    ],
)
def test_a_long_line_is_found_wherever_chunks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, content: bytes, long: bool
) -> None:
    monkeypatch.setattr(module, "_CHUNK_BYTES", chunk)
    assert has_long_line(written(tmp_path / "f", content), 10, NEVER) is long


@pytest.mark.parametrize("suffix", [".json", ".gz", ".bz2", ".deflate", ".zst"])
def test_the_copy_has_all_other_lines_at_their_places(tmp_path: Path, suffix: str) -> None:
    long = b'{"k": "' + b"z" * 200_000 + b'"}'
    original = written(tmp_path / f"f{suffix}", b"\n".join([b"1", long, b"", b"3", long + b"!"]))
    os.utime(original, ns=(1_000_000_000, 2_000_000_000_123_456_789))
    copy = tmp_path / "bounded" / original.name
    assert bounded_copy(original, copy, 1000, NEVER)
    found = [line for line, _ in lines(copy, 1_000_000)]
    assert [found[0], found[2], found[3]] == [b"1", b"", b"3"]
    for line, whole in ((found[1], long), (found[4], long + b"!")):
        told = unmarked(line)
        assert told is not None
        assert told[0] == whole[:1000]
        assert told[1:] == (
            len(whole),
            f"the record is too large: it has {len(whole)} bytes, and at most 1000 are read",
        )
    assert copy.stat().st_mtime_ns == original.stat().st_mtime_ns


def test_a_file_without_long_lines_is_not_copied(tmp_path: Path) -> None:
    original = written(tmp_path / "f.gz", b"1\n2\n")
    assert not bounded_copy(original, tmp_path / "copy.gz", 1000, NEVER)
    assert not (tmp_path / "copy.gz").exists()
    assert not may_have_long_lines("f.json", 1000, 1000)
    assert may_have_long_lines("f.json", 1001, 1000)
    assert may_have_long_lines("f.gz", 10, 1000)


def test_a_very_long_line_takes_little_memory(tmp_path: Path) -> None:
    original = tmp_path / "f.json"
    with original.open("wb") as file:
        for _ in range(64):
            file.write(b"x" * 1024 * 1024)
        file.write(b"\nshort\n")
    tracemalloc.start()
    assert bounded_copy(original, tmp_path / "copy" / "f.json", 1024 * 1024, NEVER)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * 1024 * 1024
    assert [size for _, size in lines(tmp_path / "copy" / "f.json", 10)][1] == 5


def test_what_cannot_be_looked_into_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SqlError) as caught:
        bounded_copy(written(tmp_path / "f.snappy", b"?"), tmp_path / "c.snappy", 10, NEVER)
    assert caught.value.sqlstate == "0A000"


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".deflate", ".zst"])
@pytest.mark.parametrize("how", ["foreign", "cut", "broken"])
def test_a_compressed_file_that_is_not_whole_is_named_and_leaves_no_copy(tmp_path: Path, suffix: str, how: str) -> None:
    path = written(tmp_path / f"f{suffix}", random.Random(1).randbytes(200_000) + b"\n")
    content = path.read_bytes()
    broken = content[:100_000] + bytes(64) + content[100_064:]
    path.write_bytes({"foreign": b'{"k": 1}\n', "cut": content[:150_000], "broken": broken}[how])
    if (how, suffix) == ("broken", ".zst"):
        pytest.skip("what could not be compressed stands there as it is, without a checksum")
    with pytest.raises(SqlError) as caught:
        bounded_copy(path, tmp_path / "copies" / path.name, 10, NEVER)
    assert caught.value.sqlstate == "58030"
    assert caught.value.message.startswith(f'file "f{suffix}" is not whole: ')
    assert not list(tmp_path.glob("copies/*"))
    assert not list(tmp_path.glob("copies/.*"))


def test_a_full_disk_is_named_and_leaves_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def writer(path: Path, suffix: str) -> object:
        path.touch()
        return Full()

    monkeypatch.setattr(module, "_writer", writer)
    with pytest.raises(SqlError) as caught:
        bounded_copy(written(tmp_path / "f.json", b"x" * 100), tmp_path / "copies" / "f.json", 10, NEVER)
    assert caught.value.message == 'file "f.json" cannot be looked through: No space left on device'
    assert not list((tmp_path / "copies").iterdir())


def test_a_reader_that_is_closed_leaves_the_copy(tmp_path: Path) -> None:
    original = written(tmp_path / "f.json", b"x" * 100)
    assert not bounded_copy(original, tmp_path / "copy" / "f.json", 10, lambda: True)
    assert not (tmp_path / "copy").exists()


def test_a_mark_keeps_the_beginning() -> None:
    marked = mark(b"z" * 100_000, 100_000, 5)
    assert len(marked) < 65_536
    assert unmarked(marked) == (
        b"z" * KEPT_BYTES,
        100_000,
        "the record is too large: it has 100000 bytes, and at most 5 are read",
    )
    assert unmarked(b"plain") is None
    assert unmarked(None) is None
    with pytest.raises(UnicodeDecodeError):
        marked.decode()
