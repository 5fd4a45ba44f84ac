"""Time-outs and cancels stop work, whatever it is, and never what comes after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.session.clock import StatementClock
from mvserver.session.deadlines import Deadlines


@pytest.fixture
def deadlines() -> Iterator[Deadlines]:
    made = Deadlines()
    yield made
    made.close()


def test_deadlines_come_in_order_of_time_and_cancelled_ones_do_not(deadlines: Deadlines) -> None:
    seen: list[str] = []
    done = threading.Event()
    deadlines.after(0.6, done.set)
    deadlines.after(0.5, lambda: seen.append("second"))
    deadlines.after(0.4, lambda: seen.append("cancelled")).cancel()
    deadlines.after(0.0, lambda: seen.append("first"))
    assert done.wait(10)
    assert seen == ["first", "second"]


def test_a_failing_callback_does_not_stop_the_others(deadlines: Deadlines) -> None:
    done = threading.Event()
    deadlines.after(0.0, lambda: 1 / 0)
    deadlines.after(0.01, done.set)
    assert done.wait(5)


def test_cancelled_deadlines_do_not_pile_up(deadlines: Deadlines) -> None:
    for _ in range(20_000):
        deadlines.after(3600, lambda: None).cancel()
    assert len(deadlines._heap) <= 1_100


def test_timeout_interrupts_until_the_work_stops(deadlines: Deadlines) -> None:
    clock = StatementClock(deadlines, timeout_s=0.05)
    heard = threading.Semaphore(0)
    started = time.monotonic()

    def deaf_to_two() -> None:
        with clock.working(heard.release):
            for _ in range(3):
                assert heard.acquire(timeout=5)
            raise RuntimeError("INTERRUPT")

    with pytest.raises(SqlError) as caught:
        deaf_to_two()
    assert caught.value.sqlstate == sqlstates.QUERY_CANCELED
    assert caught.value.message == "canceling statement due to statement timeout"
    assert time.monotonic() - started < 2


def test_cancel_between_pieces_of_work_is_seen_at_the_next(deadlines: Deadlines) -> None:
    clock = StatementClock(deadlines, None)
    with clock.working():
        pass
    clock.cancel()
    with pytest.raises(SqlError, match="canceling statement due to user request"), clock.working():
        pytest.fail("work began after a cancel")


def test_work_that_ends_in_time_is_not_disturbed(deadlines: Deadlines) -> None:
    clock = StatementClock(deadlines, timeout_s=0.05)
    interrupted = threading.Event()
    with clock.working(interrupted.set):
        pass
    later = threading.Event()
    deadlines.after(0.1, later.set)
    assert later.wait(5)
    assert not interrupted.is_set()


def test_only_time_at_work_counts(deadlines: Deadlines) -> None:
    clock = StatementClock(deadlines, timeout_s=10.0)
    with clock.working():
        time.sleep(0.02)
    left = clock.remaining_s
    time.sleep(0.05)
    assert clock.remaining_s == left
    assert left is not None
    assert 9 < left < 9.99


def test_other_errors_stay_what_they_are(deadlines: Deadlines) -> None:
    clock = StatementClock(deadlines, timeout_s=10.0)
    with pytest.raises(ZeroDivisionError), clock.working():
        _ = 1 / 0
