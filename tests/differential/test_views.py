"""Random queries as views and as Spark batch queries: equal in every type.

``MV_DIFFERENTIAL_SEED`` repeats a run, ``MV_DIFFERENTIAL_QUERIES`` makes it longer. Without a seed, the tier of every
change asks the same for a day, and something else on the next one; the night asks something new each time.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mvserver.compiler.capabilities import all_capabilities


@dataclass(frozen=True)
class Tier:
    queries: int
    of_program: int  # views of one program
    parts: tuple[int, ...]  # in how many batches a topic may come
    uses_min: int  # of each function


DAY = Tier(32, 8, (3,), 1)
NIGHT = Tier(1_000, 11, (3, 3, 4, 5), 2)
MORE_MAX = 10  # queries of a run's last program for functions that none has used
TOP_UPS_MAX, TOP_UP_QUERIES = 3, 5
ROWS = 160
ACCEPTED_SHARE_MIN = 0.8


def test_every_function_has_an_oracle() -> None:
    from tests.differential.oracles import ORACLES

    names = {entry.name for entry in all_capabilities() if entry.family != "sketches"}  # see test_streaming_sketches
    assert set(ORACLES) - names == set()
    assert names - set(ORACLES) == set()
    assert [name for name, uses in ORACLES.items() if not uses] == ["normalized key"]  # made by GROUP BY of a double


@pytest.mark.spark
def test_views_equal_batch_queries(spark: Any, tmp_path: Path) -> None:
    _run(spark, tmp_path, DAY, dt.date.today().toordinal())


@pytest.mark.spark
@pytest.mark.night
def test_many_views_equal_batch_queries(spark: Any, tmp_path: Path) -> None:
    _run(spark, tmp_path, NIGHT, random.SystemRandom().randrange(2**32))


def _run(spark: Any, folder: Path, tier: Tier, seed: int) -> None:
    from tests.differential.run import DifferentialRun

    seed = int(os.environ.get("MV_DIFFERENTIAL_SEED", str(seed)))
    queries = int(os.environ.get("MV_DIFFERENTIAL_QUERIES", str(tier.queries)))
    print(f"seed {seed} (MV_DIFFERENTIAL_SEED)")
    chance = random.Random(seed)
    run = DifferentialRun(spark, folder, chance, rows=ROWS, parts=tier.parts, uses_min=tier.uses_min)
    whole = queries >= tier.queries  # a shorter run, to look at a seed, cannot use every function
    while (left := queries - run.written) > 0:
        run.program(min(tier.of_program, left), MORE_MAX if whole and left <= tier.of_program else 0)
    for _ in range(TOP_UPS_MAX if whole else 0):
        if run.missing():
            run.program(TOP_UP_QUERIES)
    print(run.summary())
    assert not run.wrong, f"seed {seed}\n" + "\n\n".join(run.wrong)
    assert run.accepted >= ACCEPTED_SHARE_MIN * run.written, "\n".join(run.refused)
    print("functions used too seldom:", run.missing())
    assert not whole or run.missing() == []
    if tier is NIGHT:  # by day each of the few clean batches may meet an expression that fails
        assert run.trials["trial"] > 0
    assert run.trials["whole"] > 0
