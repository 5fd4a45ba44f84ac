"""When a batch is read: in time for the end of the commit before it, never held up for nothing."""

from __future__ import annotations

import threading

import pytest

from mvserver.streaming.pipeline.pace import Pace


class Simulation:
    """The two threads of a pipeline under a clock of its own; a wait passes the time until the next event."""

    def __init__(self, evaluation_s: float, commit_s: float) -> None:
        self.now = 0.0
        self.evaluation_s, self.commit_s = evaluation_s, commit_s
        self.pace = Pace(lambda: self.now)
        self.pace._changed.wait = self._wait  # type: ignore[method-assign,assignment]
        self.committing_until: float | None = None
        self.waiting: list[float] = []  # when the batches in the queue were read
        self.committed: list[tuple[float, float]] = []  # (read at, visible at)
        self._read_at = 0.0

    def _wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.pass_to(self.now + max(timeout, 1e-6))  # a clock goes on
        return True

    def pass_to(self, moment: float) -> None:
        """The commit thread goes on until then."""
        while self.committing_until is not None and self.committing_until <= moment:
            self.now = self.committing_until
            self.pace.ended()
            self.committed.append((self._read_at, self.now))
            self.committing_until = None
            self._begin()
        self.now = moment

    def _begin(self) -> None:
        if self.committing_until is None and self.waiting:
            self._read_at = self.waiting.pop(0)
            self.pace.began()
            self.committing_until = self.now + self.commit_s

    def batch(self, *, paced: bool = True) -> None:
        read = self.now
        self.pass_to(self.now + self.evaluation_s)
        self.pace.evaluated()
        while self.waiting:  # the queue holds one
            assert self.committing_until is not None
            self.pass_to(self.committing_until)
        self.waiting.append(read)
        self.pace.queued()
        self._begin()
        if paced:
            self.pace.await_turn(lambda: False)
        else:
            self.pace.release()


def test_a_batch_is_read_in_time_for_the_end_of_the_commit_before() -> None:
    run = Simulation(evaluation_s=0.2, commit_s=0.6)
    for _ in range(20):
        run.batch()
    ages = [visible - read for read, visible in run.committed[-10:]]
    periods = [b[1] - a[1] for a, b in zip(run.committed[-10:], run.committed[-9:], strict=False)]
    assert ages == [pytest.approx(0.2 + 0.6, abs=1e-4)] * 10
    assert periods == [pytest.approx(0.6, abs=1e-4)] * 9  # the commit thread never waits


def test_without_it_each_batch_waits_for_the_commits_before() -> None:
    run = Simulation(evaluation_s=0.2, commit_s=0.6)
    for _ in range(20):
        run.batch(paced=False)
    assert [visible - read for read, visible in run.committed[-5:]] == [pytest.approx(3 * 0.6, abs=1e-4)] * 5


def test_where_evaluation_takes_longer_nothing_is_held_up() -> None:
    run = Simulation(evaluation_s=0.5, commit_s=0.1)
    for _ in range(20):
        before = run.now
        run.batch()
        assert run.now - before == pytest.approx(0.5, abs=1e-4)


def test_it_follows_commits_that_become_shorter() -> None:
    run = Simulation(evaluation_s=0.2, commit_s=5.0)
    for _ in range(10):
        run.batch()
    run.commit_s = 0.3
    for _ in range(15):
        run.batch()
    assert run.committed[-1][1] - run.committed[-1][0] == pytest.approx(0.5, abs=1e-4)


def _behind_a_long_commit() -> Pace:
    pace = Pace()
    pace.release()
    pace.evaluated()
    pace._commits.append(3_600.0)
    pace.queued()
    pace.began()
    return pace


def test_a_commit_that_ends_early_releases_the_next_batch() -> None:
    pace = _behind_a_long_commit()
    turn = threading.Thread(target=pace.await_turn, args=(lambda: False,))
    turn.start()
    pace.ended()
    turn.join(30)
    assert not turn.is_alive()


def test_a_turn_is_given_up_when_the_pipeline_stops() -> None:
    pace = _behind_a_long_commit()
    stopping = threading.Event()
    turn = threading.Thread(target=pace.await_turn, args=(stopping.is_set,))
    turn.start()
    stopping.set()
    pace.wake()
    turn.join(30)
    assert not turn.is_alive()
