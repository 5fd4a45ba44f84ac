"""The outbox of a push query: what each batch does to its rows, with the kinds of the changes, and how it is read."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mvserver import limits
from mvserver.compiler.changelogs import replaces_rows
from mvserver.errors import SqlError
from mvserver.streaming.push.push_outbox import OutboxRows
from mvserver.streaming.push.push_states import pushed
from mvserver.views.targets import Target
from spark_sinks.duckdb.changes.outbox import Outbox
from tests.streaming import changelog_states
from tests.streaming.changelog_states import Changes
from tests.streaming.states import Fed, target, writer_in

Row = tuple[Any, ...]


def outbox_of(made: Target) -> Outbox:
    assert made.outbox is not None
    return made.outbox


class Client:
    """Takes what there is."""

    def __init__(self, writer: Any, made: Target) -> None:
        outputs = [output.name for output in made.plan.outputs]
        names = [*(["op"] if replaces_rows(made.plan) else []), *outputs]
        self.closed = threading.Event()
        self.rows = OutboxRows(outbox_of(made), names, writer, self.closed.set)

    def take(self) -> list[Row]:
        self.rows.committed()
        found: list[Row] = []
        while self.rows.wait(0.0):
            found += [tuple(row.values()) for row in self.rows.take().to_pylist()]
        return found


def folded(rows: Sequence[Row], into: Counter[Row]) -> Counter[Row]:
    """What is left when each change is carried out."""
    for op, *row in rows:
        into[tuple(row)] += 1 if op.startswith("+") else -1
    assert min(into.values(), default=0) >= 0
    return +into


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Any]:
    with writer_in(tmp_path) as (database, writer):

        def make(sql: str) -> tuple[Fed, Client]:
            made = pushed(target(sql))
            return Fed(database, writer, made), Client(writer, made)

        yield make


@pytest.fixture
def changelog(tmp_path: Path) -> Iterator[Any]:
    opened: list[Changes] = []

    def make(sql: str) -> tuple[Changes, Client]:
        made = pushed(changelog_states.target(sql))
        opened.append(Changes(tmp_path, made))
        return opened[-1], Client(opened[-1].writer, made)

    yield make
    for each in opened:
        each.close()


def test_groups_come_as_they_change(stream: Any) -> None:
    fed, client = stream("SELECT k, count(*) AS c, avg(i) AS a FROM events GROUP BY k")
    fed.feed([{"k": "a", "i": 1}, {"k": None, "i": 5}, {"k": "a", "i": 2}])
    first = client.take()
    assert sorted(first, key=repr) == [("+I", "a", 2, Decimal("1.500000")), ("+I", None, 1, Decimal("5.000000"))]
    fed.feed([{"k": "a", "i": 3}, {"k": "b", "i": None}], partial=True)
    assert client.take() == [
        ("-U", "a", 2, Decimal("1.500000")),
        ("+U", "a", 3, Decimal("2.000000")),
        ("+I", "b", 1, None),
    ]
    fed.feed([])
    assert client.take() == []


def test_an_aggregate_without_groups_has_a_row_before_any_record(stream: Any) -> None:
    fed, client = stream("SELECT count(*) AS c, max(i) AS m FROM events")
    assert client.take() == [("+I", 0, None)]
    fed.feed([{"i": 4}, {"i": 2}])
    assert client.take() == [("-U", 0, None), ("+U", 2, 4)]


def test_keys_need_not_be_selected_and_a_group_that_is_as_it_was_says_nothing(stream: Any) -> None:
    fed, client = stream("SELECT max(i) AS m FROM events GROUP BY k HAVING count(*) > 1")
    fed.feed([{"k": "a", "i": 7}])
    assert client.take() == []
    fed.feed([{"k": "a", "i": 1}, {"k": "b", "i": 7}, {"k": "b", "i": 7}])
    assert client.take() == [("+I", 7), ("+I", 7)]
    fed.feed([{"k": "a", "i": 2}])
    assert client.take() == []


def test_rows_of_a_changelog_come_with_what_they_replace(changelog: Any) -> None:
    changes, client = changelog("SELECT k, i FROM rows WHERE i > 3")
    changes.feed([{"id": 1, "k": "a", "i": 5}, {"id": 2, "k": "b", "i": 9}, {"id": 3, "k": "c", "i": 1}])
    assert client.take() == [("+I", "a", 5), ("+I", "b", 9)]
    changes.feed([{"id": 1, "k": "a", "i": 0}, {"id": 2, "k": "d", "i": 9}, {"id": 3, "gone": True}])
    assert client.take() == [("-D", "a", 5), ("-U", "b", 9), ("+U", "d", 9)]
    changes.feed([{"id": 2, "k": "d", "i": 9}])
    assert client.take() == []


@pytest.mark.parametrize("over", ["stream", "changelog"])
def test_the_changes_carried_out_are_the_view(over: str, request: pytest.FixtureRequest) -> None:
    seed = time.time_ns()
    print(f"seed {seed}")
    chance = random.Random(seed)
    relation = "events" if over == "stream" else "rows"
    sql = f"SELECT i % 2 AS odd, count(*) AS c, sum(l) AS s, min(i) AS m FROM {relation} GROUP BY k, i % 2"
    if over == "stream":
        sql = f"SELECT i, count(*) AS c, sum(l) AS s, min(l) AS m FROM {relation} GROUP BY k, i HAVING sum(l) > 3"
    fed, client = request.getfixturevalue(over)(sql)
    current: Counter[Row] = Counter()
    for _ in range(12):
        fed.feed(
            [
                {"id": chance.randint(1, 12), "k": chance.choice(["a", "b", None]), "i": chance.randint(0, 3),
                 "l": chance.randint(-3, 9), "gone": chance.random() < 0.3}
                for _ in range(chance.randint(1, 9))
            ]
        )  # fmt: skip
        if chance.random() < 0.7:
            current = folded(client.take(), current)
            assert sorted(current.elements(), key=repr) == sorted(fed.rows(), key=repr)
    current = folded(client.take(), current)
    assert sorted(current.elements(), key=repr) == sorted(fed.rows(), key=repr)


def test_what_is_not_taken_waits_within_a_bound(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PUSH_OUTBOX_ROWS_MAX", 5)
    monkeypatch.setattr(limits, "PUSH_PIECE_ROWS", 4)
    fed, client = stream("SELECT i, count(*) AS c FROM events GROUP BY i")
    fed.feed([{"i": i} for i in range(4)])
    client.rows.committed()
    assert not client.rows.is_congested
    fed.feed([{"i": i} for i in range(10, 15)])
    client.rows.committed()
    assert client.rows.is_congested
    assert [row["i"] for row in client.rows.take().to_pylist()] == [0, 1, 2, 3]
    assert not client.rows.is_congested
    assert [row[1] for row in client.take()] == [10, 11, 12, 13, 14]
    assert fed._writer.count_rows([f"{fed._targets[0].state.table}_outbox"]) == 1  # those that were taken have gone


def test_a_wait_ends_by_rows_by_an_interrupt_and_by_an_error_behind_the_rows(stream: Any) -> None:
    fed, client = stream("SELECT i, count(*) AS c FROM events GROUP BY i")
    assert not client.rows.wait(0.01)
    fed.feed([{"i": 1}])
    timer = threading.Timer(0.05, client.rows.committed)
    timer.start()
    assert client.rows.wait(10.0)
    client.rows.end(SqlError("53400", "too much"))
    client.rows.end(SqlError("XX000", "a later one"))
    assert client.rows.take().to_pylist() == [{"op": "+I", "i": 1, "c": 1}]
    with pytest.raises(SqlError, match="53400"):
        client.rows.take()
    client.rows.interrupt()
    with pytest.raises(SqlError, match="57014"):
        client.rows.wait(None)
    client.rows.close()
    client.rows.close()
    assert client.closed.is_set()
