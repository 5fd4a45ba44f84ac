"""A generation of a checkpoint: behind a batch that was left out, Spark's next one is not taken for the next."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from mvserver.streaming.pipeline import generation


class _Query:
    """Spark's side: two batches come while the generation looks whether it is over."""

    def __init__(self, callback: Callable[[Any, int], None], between: Callable[[int], None]) -> None:
        self._callback, self._between = callback, between
        self.stopped = False

    def option(self, name: str, value: str) -> _Query:
        return self

    def trigger(self, **how: str) -> _Query:
        return self

    def start(self) -> _Query:
        return self

    def awaitTermination(self, timeout_s: float) -> bool:
        for number in range(3):
            self._between(number)
            self._callback(None, number)
        return False

    def stop(self) -> None:
        self.stopped = True


class _Reader:
    def stream(self, session: Any, position: Any, *, records_per_trigger: int) -> Any:
        return nullcontext(type("Frame", (), {"writeStream": None}))


def test_nothing_is_taken_behind_a_batch_that_nobody_wanted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted, taken, queries = [True], [], []

    def between(number: int) -> None:
        wanted[0] = number != 1  # for a moment: an outbox that was full and was emptied again

    def for_each_batch(writer: Any, callback: Callable[[Any, int], None]) -> _Query:
        queries.append(_Query(callback, between))
        return queries[0]

    monkeypatch.setattr(generation, "for_each_batch", for_each_batch)
    monkeypatch.setattr(generation, "close_idle_callbacks", lambda session: None)
    monkeypatch.setattr(generation, "use_in_this_thread", lambda session: None)
    generation.run_generation(
        None, _Reader(), {}, tmp_path / "checkpoint-1", records_per_trigger=10,  # type: ignore[arg-type]
        on_batch=lambda frame, number: taken.append(number), ended=lambda: not wanted[0], running=lambda running: None,
    )  # fmt: skip
    assert taken == [0], "the position that batch 2 would be taken for is that of batch 1"
    assert queries[0].stopped
