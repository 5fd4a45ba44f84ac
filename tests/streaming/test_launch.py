"""The launch of Spark's JVM before anybody asks for it. The JVM is a small program that waits for its input to end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from mvserver.errors import SqlError
from mvserver.spark_jvm import JvmStartError
from mvserver.streaming.spark.jvm_folder import is_in_use
from mvserver.streaming.spark.launch import LaunchedAhead, launch
from mvserver.streaming.spark.options import OPTIONS, SparkOptions
from tests.serving.kept import until

_WAITING = [sys.executable, "-c", "import sys; sys.stdin.read()"]


def options(work: Path, command: Callable[[Mapping[str, str]], Sequence[str]]) -> SparkOptions:
    return SparkOptions(work_directory=work, command=command)


def folders(work: Path) -> list[Path]:
    return sorted(work.glob("jvm-*"))


def waiting(given: Mapping[str, str]) -> Sequence[str]:
    """With its options in the command, by which its folder is known to be in use."""
    return [*_WAITING, given[OPTIONS]]


def test_the_first_jvm_is_there_before_it_is_asked_for(tmp_path: Path) -> None:
    chosen = options(tmp_path, waiting)
    with LaunchedAhead(chosen) as ahead:
        (folder,) = folders(tmp_path)
        first = ahead(chosen)
        assert first.folder == folder
        assert first.jvm.process.poll() is None
        until(lambda: is_in_use(folder))  # the system shows a command a moment after its program has begun
        second = ahead(chosen)  # Spark's next life
        assert second.jvm.process.pid != first.jvm.process.pid
        assert folders(tmp_path) == sorted([first.folder, second.folder])
    assert first.jvm.process.poll() is None  # it is its owner's
    for each in (first, second):
        each.jvm.kill()


def test_one_that_nobody_has_asked_for_ends_and_leaves_nothing(tmp_path: Path) -> None:
    begun = []

    def command(given: Mapping[str, str]) -> Sequence[str]:
        begun.append(given)
        return waiting(given)

    with LaunchedAhead(options(tmp_path, command)) as ahead:
        assert ahead._first is not None
        process = ahead._first.jvm.process
    assert process.returncode == -9
    assert folders(tmp_path) == []
    assert len(begun) == 1


def test_one_that_has_ended_meanwhile_is_launched_again(tmp_path: Path) -> None:
    chosen = options(tmp_path, waiting)
    with LaunchedAhead(chosen) as ahead:
        assert ahead._first is not None
        ended = ahead._first
        ended.jvm.process.kill()
        ended.jvm.process.wait()
        launched = ahead(chosen)
        assert launched.jvm.process.poll() is None
        assert folders(tmp_path) == [launched.folder]
        launched.jvm.kill()


def test_what_hinders_the_launch_is_told_to_who_asks(tmp_path: Path) -> None:
    def no_java(_: Mapping[str, str]) -> Sequence[str]:
        raise SqlError("58000", "Spark cannot start: it needs Java 17 or newer")

    with (
        LaunchedAhead(options(tmp_path, no_java)) as ahead,
        pytest.raises(SqlError, match="it needs Java 17 or newer"),
    ):
        ahead(options(tmp_path, no_java))
    nothing = options(tmp_path, lambda _: [str(tmp_path / "nothing")])
    with pytest.raises(JvmStartError, match="could not be started"):
        launch(nothing)
    assert folders(tmp_path) == []


def test_a_disk_without_room_for_its_folder_does_not_hold_up_the_server(tmp_path: Path) -> None:
    """The start ended with a trace, although views could have been read."""
    work = tmp_path / "spark"
    work.write_text("")  # a file in the way stands for whatever the system says
    with LaunchedAhead(options(work, waiting)) as ahead:
        with pytest.raises(FileExistsError):
            ahead(options(work, waiting))
        work.unlink()
        launched = ahead(options(work, waiting))
    assert launched.jvm.process.poll() is None
    launched.jvm.kill()
