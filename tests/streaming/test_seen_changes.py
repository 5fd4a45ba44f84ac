"""The changes that a reader sees through row policies: put together, they are the rows of the view that he may see."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import pytest

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.resume_tokens import Written
from mvserver.streaming.watching.history_reader import HistoryReader
from mvserver.visible_rows import VisibleRows
from spark_sinks.duckdb.history.history import Bounds
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
    monkeypatch.setattr("spark_sinks.duckdb.history.reading.changes_behind.__defaults__", (piece, None, None))
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
                assert Written.read(copy.token).mark == VisibleRows("v", text).mark
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


def told(watched: Watched, hidden: int) -> tuple[list[int], list[str]]:
    """The epochs and tokens that a reader has of three changes of his row, with so many others' changes between."""
    watched.fed.feed([{"k": "mine", "i": 0}])
    of_mine = reader(watched, VisibleRows("v", "k = 'mine'"))
    list(of_mine.snapshot())
    place = of_mine.place
    assert place is not None
    epochs, tokens = [place.shown_epoch], [of_mine.token]
    for number in range(3):
        for other in range(hidden):
            watched.fed.feed([{"k": f"k{other}", "i": number}])
        watched.fed.feed([{"k": "mine", "i": number}])
        while not of_mine.wait(0.0):
            pass
        for epoch in of_mine.take():
            epochs.append(epoch.epoch)
            tokens += [epoch.token(at) for at in range(epoch.rows.num_rows)]
            assert epoch.epoch == int(epoch.at.timestamp() * 1_000_000 + 0.5)
    of_mine.close()
    return epochs, tokens


@pytest.mark.parametrize("hidden", [0, 7])
def test_tokens_and_epochs_count_nothing(watched: Watched, hidden: int) -> None:
    epochs, tokens = told(watched, hidden)
    assert epochs[0] == 0
    assert len(epochs) == 4
    assert min(epochs[1:]) > 1_700_000_000_000_000
    assert epochs == sorted(set(epochs))
    for token in tokens:
        assert re.fullmatch("[0-9a-f]{16}-[0-9a-f]{36}-[0-9a-f]{12}", token)
    numbers = [watched.writer.histories.seal.read(token).seq for token in tokens]
    assert numbers == sorted(set(numbers))
    first, second = (reader(watched, VisibleRows("v", "k = 'mine'")) for _ in range(2))
    assert first.token != second.token  # of the same place: who asks twice does not learn whether anything came
    for each in (first, second):
        each.close()


def test_a_token_that_was_made_up_is_none(watched: Watched) -> None:
    """Neither by changing a digit of another one, nor with a number in the clear, is anything told of what there is."""
    _, tokens = told(watched, 2)
    visible = VisibleRows("v", "k = 'mine'")
    for at in range(17, 53):
        changed = tokens[-1][:at] + ("1" if tokens[-1][at] == "0" else "0") + tokens[-1][at + 1 :]
        with pytest.raises(SqlError, match="invalid resume token") as refused:
            reader(watched, visible, changed)
        assert refused.value.sqlstate == sqlstates.INVALID_PARAMETER_VALUE
    for number in ("0", "1", "5", "ffff"):
        with pytest.raises(SqlError, match="of other rows of materialized view") as refused:
            reader(watched, visible, f"{tokens[0][:16]}-{number}")
        assert refused.value.detail == "Its row policies, the role or its claims were others then."


def test_who_comes_too_late_is_not_told_what_there_is(watched: Watched) -> None:
    _, tokens = told(watched, 1)
    (history,) = (each for each in watched.writer.histories.open_ones.values() if each.readers == 0)
    history.bounds = Bounds(3600.0, rows=2)
    watched.fed.feed([{"k": "mine", "i": 4}])
    with pytest.raises(SqlError, match="behind this token are gone") as refused:
        reader(watched, VisibleRows("v", "k = 'mine'"), tokens[0])
    assert (refused.value.sqlstate, refused.value.detail) == (sqlstates.SNAPSHOT_TOO_OLD, None)
