"""Aggregates of aggregates, over a server that is killed between its records: all as PostgreSQL has it."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from tests.faults.live import LiveServer, temporary_server

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

SEED = int(os.environ.get("MVSERVER_TEST_SEED", "20261121"))
ROUNDS = 2
SETTLE_S = 240.0

WRITTEN = (
    """SELECT n, count(*) AS groups FROM (SELECT k, count(*) AS n FROM events GROUP BY k) AS t GROUP BY n""",
    """SELECT avg(m) AS a, count(*) AS c FROM (SELECT g, max(v) AS m FROM events GROUP BY g, k) AS t""",
    """SELECT count(*) AS c, sum(n) AS s FROM (SELECT count(*) AS n FROM events WHERE v > 1000000) AS t""",
    """SELECT DISTINCT count(*) AS n FROM events GROUP BY k, g""",
    """WITH d AS (SELECT DISTINCT k, g FROM events)
       SELECT k, count(*) AS gs FROM d GROUP BY k HAVING count(*) > 1""",
    """SELECT team, max(n) AS most
       FROM (SELECT team, score, count(*) AS n FROM people GROUP BY team, score) AS t GROUP BY team""",
    """SELECT lower(team) AS l, string_agg(team, ',') AS teams
       FROM (SELECT team, sum(score) AS s FROM people GROUP BY team HAVING sum(score) > 20) AS t
       WHERE s < 400 GROUP BY 1""",
    """SELECT max(c) AS deep FROM (
         SELECT n, count(*) AS c FROM (SELECT k, g, count(*) AS n FROM events GROUP BY k, g) AS a GROUP BY n) AS b""",
    """SELECT l, count(*) AS c, sum(n) AS s
       FROM (SELECT grouping(k, g) AS l, count(*) AS n FROM events GROUP BY ROLLUP (k, g)) AS t GROUP BY l""",
)
WINDOWED = """SELECT window_start, max(n) AS most, count(*) AS ks
    FROM (SELECT window_start, window_end, k, count(*) AS n
          FROM TUMBLE(events, SIZE 1 MINUTES) WITH ('watermark.delay.millis' = 86400000)
          GROUP BY window_start, window_end, k) AS t
    GROUP BY window_start"""
IN_POSTGRESQL = """SELECT w, max(n), count(*)
    FROM (SELECT date_trunc('minute', at) AS w, k, count(*) AS n FROM events GROUP BY w, k) AS t GROUP BY w"""


@pytest.fixture
def live_server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        yield live.start()


def program(rng: random.Random) -> str:
    source, keys, number = rng.choice(
        (("events", ("k", "g", "g % 2"), "v"), ("people", ("team", "score % 3"), "score"))
    )
    group = rng.sample(keys, k=rng.randint(1, len(keys)))
    named = [f"{key} AS k{i}" for i, key in enumerate(group)]
    inner = f"SELECT {', '.join(named)}, count(*) AS n, sum({number}) AS s, max({number}) AS m FROM {source}"
    if rng.random() < 0.4:
        inner += f" WHERE {number} > {rng.randint(5, 40)}"
    inner += f" GROUP BY {', '.join(group)}"
    if rng.random() < 0.4:
        inner += f" HAVING {rng.choice(('count(*) > 2', f'max({number}) < 70', f'min({number}) > 3'))}"
    by = rng.choice(("k0", "n", "m / 10", ""))
    aggregates = rng.sample(
        ("count(*)", "sum(s)", "avg(n)", "max(m)", "min(s)", "count(DISTINCT n)", "count(*) FILTER (WHERE n > 2)"), k=3
    )
    selected = [*([f"{by} AS b"] if by else []), *(f"{each} AS a{i}" for i, each in enumerate(aggregates))]
    where = rng.choice(("", " WHERE n > 1", " WHERE m IS NOT NULL"))
    return f"SELECT {', '.join(selected)} FROM ({inner}) AS t{where}{f' GROUP BY {by}' if by else ''}"


def events(rng: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "k": rng.choice(("a", "b", "c", None)),
            "g": rng.choice((1, 2, 3, 4, None)),
            "v": rng.choice((rng.randint(0, 90), None)),
            "at": f"2024-05-17 12:{rng.randrange(4):02}:{rng.randrange(60):02}",
        }
        for _ in range(count)
    ]


def people(rng: random.Random, count: int) -> list[dict[str, Any]]:
    teams = ("red", "Red", "blue", None)
    return [{"id": rng.randrange(40), "team": rng.choice(teams), "score": rng.randint(0, 60)} for _ in range(count)]


def feed(server: LiveServer, entity: str, records: Sequence[dict[str, Any]]) -> None:
    folder = server.data / "files" / entity
    folder.mkdir(parents=True, exist_ok=True)
    aside = server.data.parent / "aside.json"
    aside.write_text("".join(json.dumps(record) + "\n" for record in records))
    aside.rename(folder / f"{time.monotonic_ns():020}.json")


def expected(dsn: str, rows: dict[str, list[dict[str, Any]]], queries: dict[str, str]) -> dict[str, Any]:
    current = {record["id"]: record for record in rows["people"]}
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TEMP TABLE events (k TEXT, g INTEGER, v INTEGER, at TIMESTAMP)")
        connection.execute("CREATE TEMP TABLE people (id INTEGER, team TEXT, score INTEGER)")
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO events VALUES (%(k)s, %(g)s, %(v)s, %(at)s)", rows["events"])
        cursor.executemany("INSERT INTO people VALUES (%(id)s, %(team)s, %(score)s)", list(current.values()))
        found = {name: sorted(map(plain, connection.execute(sql.encode()).fetchall())) for name, sql in queries.items()}
        connection.rollback()
    return found


def plain(row: tuple[Any, ...]) -> str:
    """Averages have six digits here, and more there; texts are joined in any order."""
    return str(
        [
            str(round(value, 4).normalize()) if isinstance(value, Decimal) else sorted(value.split(","))
            if isinstance(value, str) else value
            for value in row
        ]
    )  # fmt: skip


@pytest.mark.parametrize("count", [4, pytest.param(len(WRITTEN) + 8, marks=pytest.mark.night)])
def test_groups_of_groups_are_what_postgresql_computes(
    live_server: LiveServer, postgres_server: Any, count: int
) -> None:
    print("seed", SEED)
    rng = random.Random(SEED)
    written = [*WRITTEN, *(program(rng) for _ in range(8))][:count]
    ours = {**{f"v{number}": text for number, text in enumerate(written)}, "windowed": WINDOWED}
    theirs = {**ours, "windowed": IN_POSTGRESQL}
    live_server.run(
        "CREATE STORE s WITH ('type' = FILE, 'uris' = '.')",
        "CREATE STREAM events (k VARCHAR, g INTEGER, v INTEGER, at TIMESTAMP) "
        "WITH ('store' = 's', 'value.format' = 'json', 'timestamp' = 'at')",
        "CREATE CHANGELOG people (id INTEGER, team VARCHAR, score INTEGER, PRIMARY KEY (id)) "
        "WITH ('store' = 's', 'value.format' = 'json')",
        *(f"CREATE MATERIALIZED VIEW {name} AS {text}" for name, text in ours.items()),
    )
    rows: dict[str, list[dict[str, Any]]] = {"events": [], "people": []}
    for number in range(ROUNDS):
        for _ in range(4):
            for entity, more in (("events", events(rng, 25)), ("people", people(rng, 25))):
                feed(live_server, entity, more)
                rows[entity] += more
            time.sleep(rng.uniform(0, 0.5))  # which of them a batch takes is left to chance
        if number < ROUNDS - 1:
            live_server.kill()
            live_server.start()
    wanted = expected(postgres_server.dsn, rows, theirs)
    deadline = time.monotonic() + SETTLE_S
    while True:
        found = {name: sorted(map(plain, live_server.query(f"SELECT * FROM {name}"))) for name in ours}
        wrong = {ours[name]: (found[name], wanted[name]) for name in ours if found[name] != wanted[name]}
        if not wrong:
            return
        assert time.monotonic() < deadline, f"{wrong} {live_server.states()} {live_server.log_tail()}"
        time.sleep(0.5)
