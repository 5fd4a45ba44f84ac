"""Output to a directory: each batch once, over ends at every step, second writers, and files that are taken away."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mvserver.errors import SqlError
from spark_sinks.base import SinkRecords
from spark_sinks.file.files import visible_files
from spark_sinks.file.sink import FileSink

QUERY = "0b7c6a52-1d0f-4c62-9a51-5a3a1a2b3c4d"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "out"
    made.mkdir()
    return made


def opened(directory: Path, query: str = QUERY) -> FileSink:
    sink = FileSink("s", directory, directory.parent, query)
    sink.open()
    return sink


def write(sink: FileSink, *numbers: int, at: int) -> None:
    values = [json.dumps({"n": number}).encode() for number in numbers]
    sink.write(SinkRecords([None] * len(values), values, [None] * len(values)), {"at": at})


def numbers_in(directory: Path) -> list[int]:
    names = [file.name for file in visible_files(directory, directory.parent)]
    return [json.loads(line)["n"] for name in sorted(names) for line in (directory / name).read_text().splitlines()]


def test_a_batch_is_a_file_and_the_position_is_read_back(directory: Path) -> None:
    sink = opened(directory)
    assert sink.committed_position() is None
    write(sink, 1, 2, at=1)
    write(sink, at=2)
    write(sink, 3, at=3)
    sink.close()
    assert numbers_in(directory) == [1, 2, 3]
    assert sorted(file.name for file in visible_files(directory, directory.parent)) == [
        f"{QUERY}-000000000001.json",
        f"{QUERY}-000000000002.json",
    ]
    assert opened(directory).committed_position(expected=True) == {"at": 3}


def test_queries_do_not_see_each_other(directory: Path) -> None:
    first, second = opened(directory), opened(directory, "another")
    write(first, 1, at=1)
    write(second, 2, at=5)
    assert (first.committed_position(), second.committed_position()) == ({"at": 1}, {"at": 5})
    assert sorted(numbers_in(directory)) == [1, 2]


@contextmanager
def ending_at(step: int) -> Iterator[None]:
    """The process ends before its n-th effect on the file system, as by ``kill -9``."""
    left = [step]

    def counted(effect: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            if left[0] == 0:
                os._exit(9)
            left[0] -= 1
            return effect(*arguments, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", counted(os.fsync))
        for name in ("open", "rename", "unlink"):
            patch.setattr(Path, name, counted(getattr(Path, name)))
        yield


def test_killed_at_each_step_nothing_is_lost_or_doubled(directory: Path) -> None:
    step, kills = 0, 0
    wanted: list[int] = []
    while True:
        done = opened(directory).committed_position()
        at = 0 if done is None else done["at"]
        assert numbers_in(directory) == wanted[:at]
        wanted = wanted or list(range(1, 1000))
        child = os.fork()
        if child == 0:  # two batches, and an end at some step of them
            with ending_at(step):
                sink = opened(directory)
                write(sink, at + 1, at=at + 1)
                write(sink, at + 2, at=at + 2)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            break
        kills += 1
        step += 1
    assert kills > 20
    assert numbers_in(directory) == wanted[: opened(directory).committed_position()["at"]]  # type: ignore[index]


def test_a_writer_that_was_replaced_writes_nothing(directory: Path) -> None:
    first = opened(directory)
    write(first, 1, at=1)
    second = opened(directory)
    with pytest.raises(SqlError) as caught:
        write(first, 2, at=2)
    assert caught.value.sqlstate == "55006"
    write(second, 2, at=2)
    assert numbers_in(directory) == [1, 2]


def test_a_file_that_was_taken_away_is_not_made_again(directory: Path) -> None:
    sink = opened(directory)
    write(sink, 1, at=1)
    (directory / f"{QUERY}-000000000001.json").unlink()
    sink = opened(directory)
    write(sink, 2, at=2)
    assert numbers_in(directory) == [2]
    assert [file.name for file in visible_files(directory, directory.parent)] == [f"{QUERY}-000000000002.json"]


def test_an_error_of_the_disk_changes_nothing(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = opened(directory)
    write(sink, 1, at=1)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(SqlError) as caught:
            write(sink, 2, at=2)
    assert caught.value.sqlstate == "53100"
    again = opened(directory)
    assert again.committed_position() == {"at": 1}
    write(again, 2, at=2)
    assert numbers_in(directory) == [1, 2]


def test_a_directory_that_was_made_anew_has_lost_the_position(directory: Path) -> None:
    sink = opened(directory)
    write(sink, 1, at=1)
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
    with pytest.raises(SqlError) as caught:
        write(sink, 2, at=2)
    assert caught.value.sqlstate == "42704"
    directory.mkdir()
    again = opened(directory)
    assert again.committed_position() is None
    with pytest.raises(SqlError) as caught:
        again.committed_position(expected=True)
    assert caught.value.sqlstate == "55000"


def test_a_note_that_is_damaged_is_named(directory: Path) -> None:
    (directory / f".mvserver-{QUERY}.position").write_text("{")
    with pytest.raises(SqlError) as caught:
        opened(directory)
    assert caught.value.sqlstate == "XX001"


def test_a_record_without_a_value_is_refused(directory: Path) -> None:
    with pytest.raises(SqlError) as caught:
        opened(directory).write(SinkRecords([b"k"], [None], [None]), {"at": 1})
    assert caught.value.sqlstate == "0A000"


def test_a_directory_that_leads_out_is_not_written_to(directory: Path, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    link = tmp_path / "link"
    link.symlink_to(outside)
    with pytest.raises(SqlError) as caught:
        opened(link)
    assert caught.value.sqlstate == "42501"
    assert list(outside.iterdir()) == []
