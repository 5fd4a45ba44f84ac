"""Where the rows of a state are: merges change them in place, whatever they tell of them, and put new ones behind.

A row that DuckDB deletes and inserts leaves a hole, which every merge reads until the write-ahead log is folded in.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from spark_sinks.duckdb.changes.changes import Unwatched
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state.state import create_statements
from tests.streaming import changelog_states
from tests.streaming.states import Fed, target, writer_in

TOLD = pytest.mark.parametrize("told", [None, "k0, k1, n"], ids=["silent", "told"])
BATCHES, RECORDS = 12, 60


class _Asking(Unwatched):
    """Somebody who keeps the rows of all states, and is told ``columns`` of them."""

    def __init__(self, columns: str | None) -> None:
        self._columns = columns

    def wants_rows(self, table: str) -> str | None:
        return self._columns


@TOLD
def test_rows_of_several_keys_stay_in_their_places(tmp_path: Path, told: str | None) -> None:
    seed = random.randrange(10**9)
    print("seed", seed)
    chance, expected = random.Random(seed), Counter[tuple[str, int]]()
    view = target("SELECT k, i, count(*) AS n FROM events GROUP BY k, i")
    with writer_in(tmp_path) as (database, writer):
        fed = Fed(database, writer, view)
        writer.watch = _Asking(told)
        places: dict[tuple[str, int], int] = {}
        for _ in range(BATCHES):
            rows = [(f"k{chance.randrange(20)}", chance.randrange(9)) for _ in range(RECORDS)]
            expected.update(rows)
            fed.feed([{"k": k, "i": i} for k, i in rows])
            with database.cursor() as cursor:
                found = cursor.execute(f"SELECT k0, k1, rowid FROM {qualified(view.state.table)}").fetchall()
            assert len(found) == len(expected)
            now = {(k, i): place for k, i, place in found}
            assert {key: now[key] for key in places} == places
            places = now
        assert sorted(places.values()) == list(range(len(expected)))
        assert fed.rows() == sorted((k, i, n) for (k, i), n in expected.items())


def test_a_null_among_several_keys_is_refused_by_the_table_of_whole_keys(tmp_path: Path) -> None:
    """Each merge would put it in anew."""
    view = target("SELECT k, i, count(*) AS n FROM events GROUP BY k, i")
    with writer_in(tmp_path) as (database, writer):
        Fed(database, writer, view)
        with pytest.raises(duckdb.ConstraintException), writer.transaction():
            writer.execute(f"INSERT INTO {qualified(view.state.table)} VALUES ('a', NULL, 1)")


@pytest.mark.parametrize(
    ("sql", "indexed"),
    [
        ("SELECT k, count(*) AS n FROM events GROUP BY k", True),
        ("SELECT k, i, count(*) AS n FROM events GROUP BY k, i", False),
        ("SELECT count(*) AS n FROM events", True),
    ],
    ids=["one key", "two keys", "no key"],
)
def test_a_state_of_several_keys_has_no_index(sql: str, indexed: bool) -> None:
    table = create_statements(target(sql).state)[0]
    assert ("PRIMARY KEY" in table) is indexed


def test_groups_of_a_changelog_that_are_replaced_have_one(tmp_path: Path) -> None:
    """What is computed anew from contributions is put in by INSERT OR REPLACE."""
    view = changelog_states.target("SELECT k, i, max(l) AS m FROM rows GROUP BY k, i")
    assert "PRIMARY KEY (k0, k1)" in create_statements(view.state)[0]
    changes = changelog_states.Changes(tmp_path, view)
    try:
        changes.feed([{"id": 1, "k": "a", "i": 1, "l": 5}, {"id": 2, "k": "a", "i": 1, "l": 7}])
        changes.feed([{"id": 2, "k": "a", "i": 1, "l": 3}])
        assert changes.rows() == [("a", 1, 5)]
    finally:
        changes.close()
