"""The changes that a reader sees through row policies: put together, they are the rows of the view that he may see."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.resume_tokens import Token
from mvserver.streaming.watching.history_reader import HistoryReader
from mvserver.visible_rows import VisibleRows
from spark_sinks.duckdb.history.seen_changes import seen_kinds
from tests.streaming.test_histories import Copy, Watched, some_rows, watched

__all__ = ["watched"]

ODD = VisibleRows("v", "n % 2 = 1")
CONDITIONS = ("n % 2 = 1", "v.k IS NOT NULL", "s > 0", "false", "k = 'a' OR n > 3", "NULL")


@pytest.mark.parametrize(
    ("kinds", "seen", "expected"),
    [
        (["-U", "+U"], [True, True], ["-U", "+U"]),
        (["-U", "+U"], [True, False], ["-D", None]),
        (["-U", "+U"], [False, True], [None, "+I"]),
        (["-U", "+U"], [None, None], [None, None]),
        (["+I", "-D", "-U", "+U"], [True, True, False, True], ["+I", "-D", None, "+I"]),
        (["+I", "-U", "+U", "-U", "+U"], [True, True, False, False, True], ["+I", "-D", None, None, "+I"]),
    ],
)
def test_a_row_that_leaves_what_is_seen_is_gone(
    kinds: list[str], seen: list[bool | None], expected: list[str | None]
) -> None:
    assert seen_kinds(kinds, seen) == expected


def seen_rows(watched: Watched, condition: str) -> list[tuple[Any, ...]]:
    view = watched.targets[0].view_id
    with watched.database.cursor() as cursor:
        return cursor.execute(f'SELECT * FROM "_views"."{view}" AS v WHERE {condition}').fetchall()


def reader(watched: Watched, visible: VisibleRows | None, since: str | None = None) -> HistoryReader:
    return watched.views.open(watched.targets[0].view_id, since=since, snapshot=since is None, visible=visible)


@pytest.mark.parametrize("piece", [1, 2, 3, limits.HISTORY_PIECE_ROWS])
def test_copies_equal_what_is_seen(watched: Watched, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr("spark_sinks.duckdb.history.reading.changes_behind.__defaults__", (piece, None))
    rng = random.Random(piece)
    watched.fed.feed(some_rows(rng, 20))
    copies = {text: Copy() for text in CONDITIONS}
    readers: dict[str, HistoryReader] = {}
    for text, copy in copies.items():
        readers[text] = reader(watched, VisibleRows("v", text))
        copy.take_snapshot(readers[text])
    for number in range(30):
        watched.fed.feed(some_rows(rng, rng.randint(1, 12)))
        for text, copy in copies.items():
            if rng.random() < 0.3:
                readers[text].close()
                assert copy.token is not None
                assert Token.read(copy.token).mark == VisibleRows("v", text).mark
                readers[text] = reader(watched, VisibleRows("v", text), copy.token)
            if rng.random() < 0.6 or number == 29:
                copy.take(readers[text])
                assert copy.rows == Counter(seen_rows(watched, text)), text
    for each in readers.values():
        each.close()


def test_nothing_to_see_is_nothing_to_wait_for(watched: Watched) -> None:
    watched.fed.feed(some_rows(random.Random(1), 5))
    with_none = reader(watched, VisibleRows("v", "false"))
    assert [batch.num_rows for batch in with_none.snapshot() if batch.num_rows] == []
    watched.fed.feed(some_rows(random.Random(2), 5))
    assert not with_none.wait(0.0)
    with_none.interrupt()
    with pytest.raises(SqlError, match="canceling statement"):
        with_none.wait(None)
    with_none.close()


def test_a_token_is_of_the_rows_that_were_seen(watched: Watched) -> None:
    watched.fed.feed(some_rows(random.Random(3), 5))
    with_all, with_odd = reader(watched, None), reader(watched, ODD)
    for given, visible in ((with_all.token, ODD), (with_odd.token, None), (with_odd.token, VisibleRows("v", "true"))):
        with pytest.raises(SqlError, match="of other rows of materialized view") as refused:
            reader(watched, visible, given)
        assert refused.value.sqlstate == sqlstates.SNAPSHOT_TOO_OLD
    reader(watched, ODD, with_odd.token).close()
    reader(watched, None, with_all.token).close()
    with_all.close()
    with_odd.close()


def test_a_condition_that_fails_says_nothing_of_the_row(watched: Watched) -> None:
    watched.fed.feed(some_rows(random.Random(4), 8))
    failing = VisibleRows("v", "CAST(coalesce(k, 'hidden') AS INTEGER) > 0")
    with pytest.raises(SqlError, match="the condition of a row policy failed") as refused:
        list(reader(watched, failing).snapshot())
    assert "hidden" not in str(refused.value)
