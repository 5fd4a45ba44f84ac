"""Random queries as views and as Spark batch queries: equal in every type.

``MV_DIFFERENTIAL_SEED`` repeats a run, ``MV_DIFFERENTIAL_QUERIES`` makes it longer. Without a seed, the tier of every
change asks the same for a day, and something else on the next one; the night asks something new each time.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from pathlib import Path
from typing import Any

import pytest

from mvserver.compiler.capabilities import all_capabilities

QUERIES = 40  # of the every-change tier, by which each function is used; the night uses each twice
NIGHT_QUERIES = 1_000
PROGRAM_QUERIES = 11  # views of one program
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
    _run(spark, tmp_path, int(os.environ.get("MV_DIFFERENTIAL_QUERIES", str(QUERIES))), dt.date.today().toordinal())


@pytest.mark.spark
@pytest.mark.night
def test_many_views_equal_batch_queries(spark: Any, tmp_path: Path) -> None:
    _run(
        spark,
        tmp_path,
        int(os.environ.get("MV_DIFFERENTIAL_QUERIES", str(NIGHT_QUERIES))),
        random.SystemRandom().randrange(2**32),
    )


def _run(spark: Any, folder: Path, queries: int, seed: int) -> None:
    from tests.differential.run import DifferentialRun

    seed = int(os.environ.get("MV_DIFFERENTIAL_SEED", str(seed)))
    print(f"seed {seed} (MV_DIFFERENTIAL_SEED)")
    run = DifferentialRun(spark, folder, random.Random(seed), rows=ROWS, uses_min=1 if queries < NIGHT_QUERIES else 2)
    while run.written < queries:
        run.program(min(PROGRAM_QUERIES, queries - run.written))
    whole = queries >= QUERIES  # a shorter run, to look at a seed, cannot use every function
    for _ in range(TOP_UPS_MAX if whole else 0):  # what a refused query was to use is drawn again
        if run.missing():
            run.program(TOP_UP_QUERIES)
    print(run.summary())
    assert not run.wrong, f"seed {seed}\n" + "\n\n".join(run.wrong)
    assert run.accepted >= ACCEPTED_SHARE_MIN * run.written, "\n".join(run.refused)
    print("functions used too seldom:", run.missing())
    assert not whole or run.missing() == []
    assert run.trials["trial"] > 0
    assert run.trials["whole"] > 0
