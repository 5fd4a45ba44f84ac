"""What runs on the event loop too long is interrupted, and only that."""

from __future__ import annotations

import threading
import time

import pytest

from mvserver import limits
from mvserver.session.reads.watchdog import Watchdog


def test_a_long_query_is_interrupted_until_it_stops() -> None:
    watchdog, stopped = Watchdog(), threading.Event()
    began = time.monotonic()
    with watchdog.watching(stopped.set) as held:
        assert stopped.wait(10)
        assert held.expired
    assert time.monotonic() - began >= limits.EVENT_LOOP_HELD_S_MAX


def test_a_short_one_is_not_nor_what_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EVENT_LOOP_HELD_S_MAX", 0.5)
    watchdog, interrupts = Watchdog(), []
    for number in range(200):
        with watchdog.watching(lambda number=number: interrupts.append(number)) as held:  # type: ignore[misc]
            pass
        assert not held.expired
    assert not interrupts


def test_it_wakes_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mvserver.session.reads.watchdog._TICKS_AWAKE", 2)
    watchdog = Watchdog()
    for _ in range(3):
        stopped = threading.Event()
        with watchdog.watching(stopped.set):
            assert stopped.wait(10)
        assert watchdog.asleep.wait(10)
