"""Joins of joined rows in DuckDB, through the logs between them."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.streaming.chains import Chain, Record
from tests.streaming.states import writer_in

LATER = 10_000_000  # milliseconds: behind all that the tests give


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Chain]]:
    with writer_in(tmp_path_factory.mktemp("chains")) as (_, writer):
        yield lambda sql, partitions=1: Chain(writer, sql, partitions)


STREAMS = {
    "a": [Record(1, "x", 1, 1_000), Record(2, "y", 2, 2_000), Record(3, "z", 3, 3_000), Record(4, None, 4, 4_000)],
    "b": [Record(11, "x", 1, 1_500), Record(12, "y", 1, 2_500), Record(13, "x", 9, 30_000)],
    "c": [Record(21, "x", 5, 2_000), Record(22, "x", 6, 3_000), Record(23, "z", 7, 3_000)],
    "d": [Record(31, "x", 5, 1_800), Record(32, "y", 5, 2_000)],
    "p": [Record(41, "x", 1, 0), Record(42, "y", 2, 500), Record(43, "x", 2, 1_200)],
    "q": [Record(51, "m", 1, 0), Record(52, "n", 2, 0), Record(53, "o", 3, 100)],
}  # fmt: skip
PAIRS = "a JOIN b WITHIN 5 SECONDS ON a.k = b.k"
FORMS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "stream, changelog, changelog": (
        "SELECT a.id, p.id AS p, q.k FROM a JOIN p ON a.k = p.k JOIN q ON a.g = q.g",
        [(1, 41, "m"), (2, 42, "n")],
    ),
    "LEFT stream, changelog, changelog": (
        "SELECT a.id, p.id AS p, q.k FROM a LEFT JOIN p ON a.k = p.k LEFT JOIN q ON a.g = q.g",
        [(1, 41, "m"), (2, 42, "n"), (3, None, "o"), (4, None, None)],
    ),
    "the second by a column of the first": (
        "SELECT a.id, p.id AS p, q.k FROM a LEFT JOIN p ON a.k = p.k LEFT JOIN q ON p.g = q.g",
        [(1, 41, "m"), (2, 42, "n"), (3, None, None), (4, None, None)],
    ),
    "stream, stream, changelog": (
        f"SELECT a.id, b.id AS b, p.id AS p FROM {PAIRS} JOIN p ON a.k = p.k",
        [(1, 11, 43), (2, 12, 42)],
    ),
    "LEFT stream, stream, changelog": (
        "SELECT a.id, b.id AS b, p.id AS p FROM a LEFT JOIN b WITHIN 5 SECONDS ON a.k = b.k LEFT JOIN p ON a.k = p.k",
        [(1, 11, 43), (2, 12, 42), (3, None, None), (4, None, None)],
    ),
    "three streams": (
        f"SELECT a.id, b.id AS b, c.id AS c FROM {PAIRS} JOIN c WITHIN 5 SECONDS ON a.k = c.k",
        [(1, 11, 21), (1, 11, 22)],
    ),
    "LEFT three streams": (
        "SELECT a.id, b.id AS b, c.id AS c FROM a LEFT JOIN b WITHIN 5 SECONDS ON a.k = b.k "
        "LEFT JOIN c WITHIN 5 SECONDS ON a.k = c.k",
        [(1, 11, 21), (1, 11, 22), (2, 12, None), (3, None, 23), (4, None, None)],
    ),
    "FULL three streams": (
        "SELECT a.id, b.id AS b, c.id AS c FROM a FULL JOIN b WITHIN 5 SECONDS ON a.k = b.k "
        "FULL JOIN c WITHIN 5 SECONDS ON a.k = c.k",
        [(1, 11, 21), (1, 11, 22), (2, 12, None), (3, None, 23), (4, None, None), (None, 13, None)],
    ),
    "a condition in the second ON": (
        "SELECT a.id, b.id AS b, c.id AS c FROM a LEFT JOIN b WITHIN 5 SECONDS ON a.k = b.k "
        "LEFT JOIN c WITHIN 5 SECONDS ON a.k = c.k AND c.g > b.g + 4",
        [(1, 11, 22), (2, 12, None), (3, None, None), (4, None, None)],
    ),
    "a join in a sub-query joined again": (
        "SELECT t.id, t.b, c.id AS c FROM (SELECT a.id, b.id AS b, a.k, a.g + b.g AS s FROM a JOIN b "
        "WITHIN 5 SECONDS ON a.k = b.k WHERE b.g < 2) AS t JOIN c WITHIN 5 SECONDS ON t.k = c.k WHERE t.s = 2",
        [(1, 11, 21), (1, 11, 22)],
    ),
    "joins on both sides": (
        f"SELECT t.id, t.b, u.c, u.d FROM (SELECT a.id, b.id AS b, a.k FROM {PAIRS}) AS t JOIN "
        "(SELECT c.id AS c, d.id AS d, c.k FROM c JOIN d WITHIN 5 SECONDS ON c.k = d.k) AS u "
        "WITHIN 5 SECONDS ON t.k = u.k",
        [(1, 11, 21, 31), (1, 11, 22, 31)],
    ),
    "a join on the right side": (
        "SELECT a.id, u.c, u.d FROM a LEFT JOIN (SELECT c.id AS c, d.id AS d, c.k FROM c JOIN d WITHIN 5 SECONDS "
        "ON c.k = d.k) AS u WITHIN 5 SECONDS ON a.k = u.k",
        [(1, 21, 31), (1, 22, 31), (2, None, None), (3, None, None), (4, None, None)],
    ),
    "four streams": (
        f"SELECT a.id, b.id AS b, c.id AS c, d.id AS d FROM {PAIRS} LEFT JOIN c WITHIN 5 SECONDS ON a.k = c.k "
        "JOIN d WITHIN 5 SECONDS ON b.k = d.k",
        [(1, 11, 21, 31), (1, 11, 22, 31), (2, 12, None, 32)],
    ),
    "stream, stream, changelog, changelog": (
        f"SELECT a.id, b.id AS b, p.id AS p, q.k FROM {PAIRS} JOIN p ON a.k = p.k LEFT JOIN q ON p.g = q.g",
        [(1, 11, 43, "n"), (2, 12, 42, "n")],
    ),
    "stream, changelog, stream": (
        "SELECT a.id, p.id AS p, b.id AS b FROM a LEFT JOIN p ON a.k = p.k JOIN b WITHIN 5 SECONDS ON a.k = b.k",
        [(1, 41, 11), (2, 42, 12)],
    ),
    "a stream with itself, twice": (
        "SELECT x.id, y.id AS y, z.id AS z FROM b AS x JOIN b AS y WITHIN 1 MINUTE ON x.k = y.k AND x.id < y.id "
        "JOIN b AS z WITHIN 1 MINUTE ON y.k = z.k AND z.id >= y.id",
        [(11, 13, 13)],
    ),
    "grouped": (
        f"SELECT a.k, count(*) AS n, sum(c.id) AS s FROM {PAIRS} "
        "LEFT JOIN c WITHIN 5 SECONDS ON a.k = c.k GROUP BY a.k",
        [("x", 2, 43), ("y", 1, None)],
    ),
    "UNION ALL of joins": (
        "SELECT a.id, b.id AS other FROM a JOIN b WITHIN 5 SECONDS ON a.k = b.k UNION ALL "
        "SELECT a.id, p.id FROM a LEFT JOIN p ON a.k = p.k UNION ALL SELECT id, NULL FROM d",
        [(1, 11), (1, 41), (2, 12), (2, 42), (3, None), (4, None), (31, None), (32, None)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [pytest.param(1, marks=pytest.mark.night), 100], ids=["row by row", "at once"])
def test_chains_of_every_form(form: str, rows: int, chain: Callable[..., Chain]) -> None:
    sql, expected = FORMS[form]
    made = chain(sql)
    for at in range(0, 4, rows):
        for source in made.sources:
            if records := STREAMS[source][at : at + rows]:
                made.feed(source, records)
                made.run(rows)
    for source in made.sources:
        made.feed(source, [Record(99, "end", None, LATER)])
        made.run(rows)
    made.settle()
    assert [row for row in made.rows if 99 not in row and "end" not in row] == expected


# --- random rows, against a rule that knows no batches ---------------------------------------------------------------
WITHIN = 5_000
NOWHERE = float("-inf")


@dataclass(frozen=True)
class Made:
    """A row of a source or a join: its numbers by source, key, time, and the mark that it is late by."""

    ids: tuple[int | None, ...]
    k: str | None
    t: int | None
    mark: float


def _random_records(chance: random.Random, first: int, partitions: int) -> list[Record]:
    """A first one of each partition, then such of partitions that are far apart, each with rows that are late."""
    now = [chance.choice((0, 20_000, 60_000)) for _ in range(partitions)]
    records = [Record(first + 50 + partition, None, 1, 0, partition) for partition in range(partitions)]
    for number in range(first, first + 24):
        partition = chance.randrange(partitions)
        now[partition] += chance.choice((0, 500, 1_000, 4_000))
        back = chance.choice((0, 0, 0, 1_000, 6_000, 14_000, 40_000))
        at = None if chance.random() < 0.03 else max(0, now[partition] - back)
        records.append(Record(number, None if chance.random() < 0.05 else chance.choice("xy"), 1, at, partition))
    ends = [Record(first + 90 + partition, None, None, LATER, partition) for partition in range(partitions)]
    return records + ends


def _source(records: Sequence[Record]) -> list[Made]:
    come_to: dict[int, float] = {}
    made = []
    for record in records:
        before = come_to.get(record.partition, NOWHERE)
        made.append(Made((record.id,), record.k, record.at, before))
        come_to[record.partition] = max(before, NOWHERE if record.at is None else record.at)
    return made


def _joined(lefts: Sequence[Made], rights: Sequence[Made], kind: str) -> list[Made]:
    """The key of a row is that of its left side."""
    found, met = [], set()
    for left in lefts:
        for right in rights:
            if left.k is None or left.k != right.k or left.t is None or right.t is None:
                continue
            in_time = left.mark <= right.t + WITHIN and right.mark <= left.t + WITHIN
            if abs(left.t - right.t) <= WITHIN and in_time:
                mark = max(left.mark, right.mark) - WITHIN
                found.append(Made(left.ids + right.ids, left.k, max(left.t, right.t), mark))
                met |= {left, right}
    if kind != "INNER":
        nobody = (None,) * len(rights[0].ids)
        found += [Made(row.ids + nobody, row.k, row.t, row.mark - WITHIN) for row in lefts if row not in met]
    if kind == "FULL":
        nobody = (None,) * len(lefts[0].ids)
        found += [Made(nobody + row.ids, None, row.t, row.mark - WITHIN) for row in rights if row not in met]
    return found


VERSIONS = {"x": 9_041, "y": 9_042}  # numbers of the rows of a changelog that was whole before


def _versioned(rows: Sequence[Made]) -> list[Made]:
    return [
        Made((*row.ids, None if row.k is None or row.t is None else VERSIONS.get(row.k)), row.k, row.t, row.mark)
        for row in rows
    ]


@pytest.mark.parametrize("kinds", [("INNER", "INNER"), ("LEFT", "FULL"), ("version", "LEFT")])
def test_what_meets_does_not_depend_on_batches(kinds: tuple[str, str], chain: Callable[..., Chain]) -> None:
    seed = int(os.environ.get("JOIN_SEED", random.randrange(10**6)))
    print(f"JOIN_SEED={seed}")
    chance = random.Random(f"{seed} {kinds}")
    first, second = kinds
    wanted: Counter[tuple[int | None, ...]] = Counter()
    while not wanted:
        records = {name: _random_records(chance, number * 1_000, 3) for number, name in enumerate("abc")}
        ends = {record.id for given in records.values() for record in given if record.at == LATER}
        of_a = _source(records["a"])
        joined = _versioned(of_a) if first == "version" else _joined(of_a, _source(records["b"]), first)
        wanted = Counter(row.ids for row in _joined(joined, _source(records["c"]), second) if not ends & set(row.ids))
    join = "LEFT JOIN p AS b" if first == "version" else f"{first} JOIN b WITHIN 5 SECONDS"
    made = chain(
        f"SELECT a.id, b.id AS b, c.id AS c FROM a {join} ON a.k = b.k {second} JOIN c WITHIN 5 SECONDS ON a.k = c.k",
        3,
    )
    queues = {name: _cut(chance, given) for name, given in records.items() if name in made.sources}
    if first == "version":
        ends_of_p = [Record(99, "end", None, LATER, partition) for partition in range(3)]
        made.feed("p", [*(Record(number, k, 1, 0) for k, number in VERSIONS.items()), *ends_of_p])
    while any(queues.values()):
        made.feed(name := chance.choice([name for name, left in queues.items() if left]), queues[name].pop(0))
        if chance.random() < 0.5:
            made.run(chance.choice((1, 3, 1_000)))
    made.settle()
    found = Counter(ids for ids in made.rows if not ends & set(ids))
    assert found == wanted, (list((found - wanted).items())[:5], list((wanted - found).items())[:5])


def _cut(chance: random.Random, records: Sequence[Record]) -> list[list[Record]]:
    """The first batch has the first record of each partition: one that nothing has come from does not count."""
    batches, at = [list(records[:3])], 3
    while at < len(records):
        size = chance.choice((5, 10, 30))
        batches.append(list(records[at : at + size]))
        at += size
    return batches
