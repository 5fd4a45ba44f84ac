"""The quota of a shard's reads, by a clock that the test moves."""

from __future__ import annotations

import pytest

from spark_sinks.kinesis.budget import Budgets, ReadBudget


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_five_requests_a_second_however_many_ask() -> None:
    budget = ReadBudget(Clock())
    assert [budget.reserve() for _ in range(6)] == pytest.approx([100.0, 100.2, 100.4, 100.6, 100.8, 101.0])


def test_two_megabytes_a_second() -> None:
    clock = Clock()
    budget = ReadBudget(clock)
    budget.reserve()
    budget.answered(10 * 1024 * 1024)
    assert budget.reserve() == pytest.approx(105.0)


def test_refusals_double_the_pause_and_an_answer_ends_that() -> None:
    clock = Clock()
    budget = ReadBudget(clock)
    pauses = []
    for _ in range(8):
        clock.now = max(clock.now, budget.reserve())
        pauses.append(budget.refused() - clock.now)
    assert pauses[0] <= 0.25 * 1.25
    assert all(0.25 * 2**n * 0.75 <= pause <= 5.0 * 1.25 for n, pause in enumerate(pauses[:5]))
    assert pauses[-1] <= 5.0 * 1.25
    clock.now += 60
    budget.reserve()
    budget.answered(10)
    clock.now += 60
    assert budget.refused() - clock.now <= 0.25 * 1.25


def test_readers_of_a_shard_share_one() -> None:
    budgets = Budgets()
    assert budgets.of("here", "s", "shardId-000000000000") is budgets.of("here", "s", "shardId-000000000000")
    assert budgets.of("here", "s", "shardId-000000000001") is not budgets.of("here", "s", "shardId-000000000000")
