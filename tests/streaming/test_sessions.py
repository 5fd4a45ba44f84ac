"""Rows that are joined to sessions, where many of them begin at one moment."""

from __future__ import annotations

import random

import duckdb
import pytest

from spark_sinks.duckdb.state.sessions import joined

GAP = 30


@pytest.mark.parametrize("seed", [0, 40, 45, 50, 52])  # their rows of one moment came in two orders
def test_rows_of_one_moment_are_in_one_session(seed: int) -> None:
    chance = random.Random(seed)
    count, now = chance.choice([6, 50, 3000]), 0
    rows = []
    for number in range(count):
        now += chance.choice([0, 0, 40, 100, 20])
        rows.append((chance.choice("ab"), now, now + GAP, number))
    chance.shuffle(rows)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE r (g VARCHAR, s INTEGER, e INTEGER, n INTEGER)")
        connection.executemany("INSERT INTO r VALUES (?, ?, ?, ?)", rows)
        sessions = joined("r", ["g"], "s", "e", "true")
        found = connection.execute(f"SELECT g, s, e, count(*) FROM {sessions} GROUP BY ALL ORDER BY ALL").fetchall()
    assert found == expected(rows)


def expected(rows: list[tuple[str, int, int, int]]) -> list[tuple[str, int, int, int]]:
    sessions: list[tuple[str, int, int, int]] = []
    for key, start, end, _ in sorted(rows):
        if sessions and sessions[-1][0] == key and start <= sessions[-1][2]:
            _, begin, last, count = sessions.pop()
            sessions.append((key, begin, max(last, end), count + 1))
        else:
            sessions.append((key, start, end, 1))
    return sessions
