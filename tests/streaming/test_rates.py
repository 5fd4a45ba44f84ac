"""Rates of queries, which their committing threads add to while sessions read them."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace

import pytest

from mvserver.streaming.pipeline.subscribers import RATE_WINDOW_S, Rate


def test_a_rate_is_that_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("mvserver.streaming.pipeline.subscribers.time", SimpleNamespace(monotonic=lambda: clock.now))
    rate = Rate()
    rate.add(300)
    clock.now += RATE_WINDOW_S / 2
    rate.add(200)
    assert rate.per_second() == 500 / RATE_WINDOW_S
    clock.now += RATE_WINDOW_S / 2 + 1
    assert rate.per_second() == 200 / RATE_WINDOW_S
    clock.now += RATE_WINDOW_S
    assert rate.per_second() == 0.0


def test_a_rate_is_read_while_it_is_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python refuses to go on with what has changed under its hands."""
    monkeypatch.setattr("mvserver.streaming.pipeline.subscribers.RATE_WINDOW_S", 0.01)  # it forgets all the while
    rate, stopped = Rate(), threading.Event()

    def add() -> None:
        while not stopped.is_set():
            rate.add(1)

    threads = [threading.Thread(target=add) for _ in range(2)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            assert rate.per_second() >= 0.0
    finally:
        sys.setswitchinterval(before)
        stopped.set()
        for thread in threads:
            thread.join()
