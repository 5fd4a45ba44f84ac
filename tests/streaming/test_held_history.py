"""Where readers begin whose source keeps its history for them alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mvserver.compiler.plans import ErrorHandling
from mvserver.streaming.pipeline.held_history import EndedReaders
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.subscribers import Subscriber

WITHIN_S = 30.0


def subscriber(name: str) -> Subscriber:
    target: Any = SimpleNamespace(query_id=name)
    return Subscriber(target, 1, {"start": "earliest"}, ErrorHandling.TERMINATE)


class Source:
    """Settles at ascending places; ``meanwhile`` happens while it does."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], None] = lambda: None
        self.settled = 0
        self.checked: list[Any] = []
        self.held = self
        self.health = SimpleNamespace(check_history=self.checked.append)

    def is_settled(self, position: Any) -> bool:
        return "lsn" in position

    def settle(self, position: Any, assign: Callable[[Any], None]) -> None:
        self.settled += 1
        self.meanwhile()
        assign({"lsn": self.settled})


def test_views_that_wait_begin_together_and_one_that_comes_meanwhile_after_them() -> None:
    source: Any = Source()
    state = RunningState(source, SimpleNamespace(), records_max=10)  # type: ignore[arg-type]
    first, second, late = subscriber("a"), subscriber("b"), subscriber("c")
    state.add(first)
    state.add(second)
    source.meanwhile = lambda: state.add(late)
    state.verify_new()
    assert (first.position, second.position, first.unverified) == ({"lsn": 1}, {"lsn": 1}, False)
    assert (late.position, late.unverified) == ({"start": "earliest"}, True)
    assert not state.joins(late, {"lsn": 1})
    source.meanwhile = lambda: None
    state.verify_new()
    assert (late.position, late.claimed, late.unverified) == ({"lsn": 2}, {"lsn": 2}, False)
    assert source.checked == [{"lsn": 1}, {"lsn": 1}, {"lsn": 2}]


class Keeps:
    """A source that answers when it is let."""

    def __init__(self) -> None:
        self.held = self
        self.answers = threading.Event()
        self.forgotten = False

    def forget(self) -> None:
        assert self.answers.wait(WITHIN_S)
        self.forgotten = True


def test_a_source_that_does_not_answer_holds_up_nobody(tmp_path: Path) -> None:
    ended, silent, other = EndedReaders(), Keeps(), Keeps()
    other.answers.set()
    (tmp_path / "silent").mkdir()
    ended.end("silent", silent, tmp_path / "silent")  # type: ignore[arg-type]
    began = time.monotonic()
    ended.wait_own(0.1)
    assert ended.is_ending("silent")
    thread = threading.Thread(target=lambda: (ended.end("other", other, tmp_path), ended.wait_own(WITHIN_S)))  # type: ignore[arg-type, func-returns-value]
    thread.start()
    thread.join(WITHIN_S)
    assert other.forgotten
    assert time.monotonic() - began < WITHIN_S
    silent.answers.set()
    ended.wait_ended("silent")
    assert silent.forgotten
    assert not (tmp_path / "silent").exists()
    assert not ended.is_ending("silent")


def test_the_files_of_a_reader_go_behind_what_its_source_keeps(tmp_path: Path) -> None:
    ended, source = EndedReaders(), Keeps()
    (tmp_path / "work").mkdir()
    ended.end("reader", source, tmp_path / "work")  # type: ignore[arg-type]
    assert (tmp_path / "work").exists()
    source.answers.set()
    ended.wait_all(WITHIN_S)
    assert not (tmp_path / "work").exists()
    ended.end("plain", SimpleNamespace(held=None), tmp_path / "work")  # type: ignore[arg-type]
    assert not ended.is_ending("plain")
