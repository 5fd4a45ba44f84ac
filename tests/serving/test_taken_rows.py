"""Rows that a merge has told are taken by a view kept finished as if their keys had gone and come again."""

from __future__ import annotations

import random
import time

import pyarrow as pa

from mvserver.serving.fast.finished_view import Budget, FinishedView, Row

NAMES, TYPES, KEYS = ("user", "url", "n", "note"), [pa.int64(), pa.string(), pa.int64(), pa.string()], [int, str]


def view(budget: Budget) -> FinishedView:
    made = FinishedView(NAMES, TYPES, KEYS, budget)
    made.index((1,))
    made.order(0)
    assert made.arrange()
    return made


def row(chance: random.Random) -> Row:
    note = chance.choice([None, "", "x" * chance.randrange(40), "ä" * chance.randrange(40)])
    number = chance.choice([None, chance.randrange(9), -chance.randrange(9), 2**60 - 1, 2**60, 2**62, -(2**61)])
    return chance.randrange(30), f"./{chance.randrange(9)}", number, note


def test_taking_rows_is_replacing_them() -> None:
    seed = time.time_ns()
    print(f"seed {seed}")
    chance = random.Random(seed)
    budgets = Budget(1 << 30), Budget(1 << 30)
    taking, replacing = map(view, budgets)
    for _ in range(60):
        rows = list({each[:2]: each for each in (row(chance) for _ in range(chance.randrange(60)))}.values())
        assert taking.take(rows)
        assert replacing.replace([each[:2] for each in rows], rows)
        assert taking.rows == replacing.rows
        assert taking.size == replacing.size
        assert taking.index((1,)) == replacing.index((1,))
        mine, others = taking.order(0), replacing.order(0)
        assert mine is not None
        assert others is not None
        assert mine[0] == others[0] == sorted(key[0] for key in taking.rows)
        assert set(mine[1]) == set(others[1]) == taking.rows.keys()
        assert all(key[1] is each[1] for key, each in taking.rows.items())  # one object, counted once
    taking.give_up()
    assert budgets[0].taken == 0


def test_two_rows_of_one_key_and_rows_without_room_are_not_taken() -> None:
    budget = Budget(2_000)
    kept = view(budget)
    assert kept.take([(1, "a", 1, None)])
    assert not kept.take([(1, "a", 2, None), (1, "a", 3, None)])
    assert not kept.take([(1, "a", 2, "x" * 4_000)])
    assert not kept.take([(number, "a", 2, None) for number in range(50)])
    kept.give_up()
    assert budget.taken == 0
