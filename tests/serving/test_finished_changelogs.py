"""Finished rows of views over changelogs: rows that are replaced and deleted go from them, too."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mvserver import limits
from mvserver.front import Field
from mvserver.serving.api import Comparison, KeyRead, PullPlan
from mvserver.serving.fast.finished_loader import Loader
from mvserver.serving.fast.finished_rows import KeptViews
from tests.serving.kept import MEMORY, until
from tests.serving.world import rows_of
from tests.streaming.changelog_states import Changes, target

_WHOLE, _FROM = (Comparison(0, "=", parameter=1),), (Comparison(0, ">=", parameter=1),)


@pytest.mark.parametrize(
    ("sql", "key", "kind", "lowest"),
    [
        ("SELECT id, k FROM rows WHERE i > 1", "id", pa.string(), -1),
        ("SELECT k, sum(l) AS total FROM rows GROUP BY k", "k", pa.decimal128(38, 0), ""),
        ("SELECT k, max(l) AS top FROM rows GROUP BY k", "k", pa.int64(), ""),
    ],
)
def test_rows_that_change_and_go_are_those_of_the_view(
    tmp_path: Path, sql: str, key: str, kind: Any, lowest: Any
) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    view = target(sql, 1)
    changes = Changes(tmp_path, view)
    kept = KeptViews(lambda: Loader(changes._database, changes.writer.layouts, ()), MEMORY)
    changes.writer.watch = kept
    shown = tuple(output.name for output in view.plan.outputs)
    (value,) = set(shown) - {key}
    types = tuple(pa.string() if name == "k" else pa.int64() if name == "id" else kind for name in (key, value))
    fields = (Field(key, 25), Field(value, 25))

    def plan(comparisons: tuple[Comparison, ...]) -> PullPlan:
        read = KeyRead(view.view_id, (key,), (key, value), comparisons)
        return PullPlan("", fields, (), (view.view_id,), arrow_types=types, key_read=read)

    whole, all_from = plan(_WHOLE), plan(_FROM)
    changes.feed([{"id": 0, "k": "a", "i": 5, "l": 1}])
    for _ in range(limits.FINISHED_ROWS_ASKED_MIN):
        kept.find(whole, (0,))
    until(lambda: kept.find(all_from, (lowest,)) is not None)
    for _ in range(15):
        changes.feed(
            [
                {"id": chance.randrange(12), "gone": True}
                if chance.random() < 0.4
                else {"id": chance.randrange(12), "k": chance.choice("abcd"), "i": chance.randrange(6),
                      "l": chance.randrange(9)}
                for _ in range(chance.randrange(1, 6))
            ]
        )  # fmt: skip
        until(lambda: kept.knows(all_from))
        expected = changes.select(f'SELECT "{key}", "{value}" FROM "_views"."{view.view_id}"')
        found = kept.find(all_from, (lowest,))
        assert found is not None
        assert rows_of(found) == expected
        for one in (*range(12), "a", "b", "c", "d"):
            result = kept.find(whole, (one,))
            if type(one) is type(lowest):
                assert result is not None
                assert rows_of(result) == [row for row in expected if row[0] == one]
            else:
                assert result is None
    assert kept.status()[0].rows == len(expected)
    kept.close()
    changes.close()
