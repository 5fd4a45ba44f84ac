"""Joins of joined rows in DuckDB, through the logs between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from streaming_chains import Chain, Record
from streaming_states import writer_in

LATER = 10_000_000  # milliseconds: behind all that the tests give


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Chain]]:
    with writer_in(tmp_path_factory.mktemp("chains")) as (_, writer):
        yield lambda sql: Chain(writer, sql)


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
@pytest.mark.parametrize("rows", [1, 100], ids=["row by row", "at once"])
def test_chains_of_every_form(form: str, rows: int, chain: Callable[[str], Chain]) -> None:
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
