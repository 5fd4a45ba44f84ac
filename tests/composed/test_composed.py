"""Composed pull queries answer as a real PostgreSQL does: those that once did not, and random ones.

``MV_COMPOSED=20000`` asks so many random ones, ``MV_COMPOSED_SEED=7`` those of a seed.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.composed.choices import Choices, fewer
from tests.composed.judge import ALLOWED
from tests.composed.queries import make
from tests.composed.servers import Pair, compare_many

_FOUND = Path(__file__).with_name("found.sql").read_text(encoding="utf-8").splitlines()
_DAY_SEED, _DAY_STATEMENTS, _NIGHT_STATEMENTS = 21, 300, 5000
_REFUSED_SHARE_MAX = 0.03
"""Of random statements; more would say that something is refused that was not."""


@pytest.mark.postgres
def test_what_was_once_answered_otherwise(pair: Pair) -> None:
    statements = [line for line in _FOUND if line and not line.startswith("--")]
    assert [str(found) for found in map(pair.written, statements) if found.what not in ALLOWED] == []


@pytest.mark.postgres
def test_some_composed_statements(pair: Pair) -> None:
    found = compare_many(pair, _DAY_SEED, _DAY_STATEMENTS)
    assert found.texts == []
    assert found.verdicts["refused"] <= _REFUSED_SHARE_MAX * _DAY_STATEMENTS


@pytest.mark.postgres
@pytest.mark.night
def test_many_composed_statements(pair: Pair) -> None:
    seed = int(os.environ.get("MV_COMPOSED_SEED", random.randrange(10**9)))
    print(f"seed {seed}")
    count = int(os.environ.get("MV_COMPOSED", _NIGHT_STATEMENTS))
    found = compare_many(pair, seed, count)
    print(found.verdicts, found.classes)
    assert found.texts == []
    assert found.verdicts["refused"] <= _REFUSED_SHARE_MAX * count


def test_choices_make_the_same_statement_again() -> None:
    choices = Choices(seed=5)
    query, values = make(choices, parameters=True)
    assert make(Choices(made=choices.made), parameters=True) == (query, values)


def test_fewer_choices_are_found() -> None:
    assert fewer([3, 1, 7, 0, 2], lambda made: 7 in made, trials=100) == [7]
