"""Push queries with a state on a real server: aggregates, windows, joins and changelogs against PostgreSQL, read by
every kind of client, and nothing left of them: not at their end, and not after a crash."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from tests.server.program import Program, with_spark

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

WITHIN_S = 120.0
START_MS = 1_700_000_000_000
ALL = "WITH ('starting.position' = 'earliest')"
SHOWN = {  # what a push query of each kind leaves when its changes are carried out, and the same in PostgreSQL
    "groups": (
        f"SELECT url, count(*) AS c, sum(ms) AS s FROM clicks {ALL} GROUP BY url HAVING count(*) > 1",
        "SELECT url, count(*), sum(ms) FROM clicks GROUP BY url HAVING count(*) > 1",
    ),
    "no groups": (f"SELECT count(*) AS c, max(ms) AS m FROM clicks {ALL}", "SELECT count(*), max(ms) FROM clicks"),
    "key left out": (f"SELECT min(ms) AS m FROM clicks {ALL} GROUP BY url", "SELECT min(ms) FROM clicks GROUP BY url"),
    "distinct": (f"SELECT DISTINCT url, ms % 3 AS r FROM clicks {ALL}", "SELECT DISTINCT url, ms % 3 FROM clicks"),
    "levels": (
        f"SELECT c, count(*) AS urls FROM (SELECT url, count(*) AS c FROM clicks {ALL} GROUP BY url) AS x GROUP BY c",
        "SELECT c, count(*) FROM (SELECT url, count(*) AS c FROM clicks GROUP BY url) AS x GROUP BY c",
    ),
    "changelog": (f"SELECT id, name FROM users {ALL} WHERE age > 20", "SELECT id, name FROM users WHERE age > 20"),
    "changelog groups": (
        f"SELECT name, count(*) AS c, max(age) AS m FROM users {ALL} GROUP BY name",
        "SELECT name, count(*), max(age) FROM users GROUP BY name",
    ),
    "windows": (
        f"SELECT window_start, url, count(*) AS c FROM TUMBLE(clicks, SIZE 10 SECONDS) {ALL} "
        "GROUP BY window_start, window_end, url EMIT CHANGES",
        "SELECT to_timestamp(at / 10000 * 10) AT TIME ZONE 'UTC', url, count(*) FROM clicks GROUP BY 1, 2",
    ),
}
ADDED = {  # the same where rows are only added
    "closed windows": (
        f"SELECT window_end, count(*) AS c FROM TUMBLE(clicks, SIZE 10 SECONDS) {ALL} "
        "GROUP BY window_start, window_end EMIT FINAL",
        "SELECT to_timestamp(at / 10000 * 10 + 10) AT TIME ZONE 'UTC' AS e, count(*) FROM clicks "
        "WHERE at / 10000 * 10000 + 10000 <= (SELECT max(at) FROM clicks) GROUP BY 1",
    ),
    "join": (
        f"SELECT a.n, b.n AS other FROM clicks {ALL} a JOIN clicks {ALL} b WITHIN 3 SECONDS "
        "ON a.url = b.url AND a.n < b.n",
        "SELECT a.n, b.n FROM clicks a JOIN clicks b ON a.url = b.url AND a.n < b.n AND b.at - a.at <= 3000",
    ),
    "union": (
        f"SELECT url, ms FROM clicks {ALL} WHERE ms > 500 UNION ALL SELECT name, age FROM people {ALL}",
        "SELECT url, ms FROM clicks WHERE ms > 500 UNION ALL SELECT name, age FROM people",
    ),
    "windows of records": (
        f"SELECT window_end, n FROM HOP(clicks, SIZE 4 SECONDS, ADVANCE BY 2 SECONDS) {ALL} WHERE n % 5 = 0",
        "SELECT to_timestamp((at / 2000 + k) * 2) AT TIME ZONE 'UTC', n FROM clicks, generate_series(1, 2) AS k "
        "WHERE n % 5 = 0",
    ),
}


class World:
    """A server with a stream of clicks and a changelog of users, and the same rows in PostgreSQL."""

    def __init__(self, folder: Path, postgres_dsn: str, seed: int) -> None:
        self.folder = folder
        self.files = folder / "data" / "files"
        self.postgres = psycopg.connect(postgres_dsn, autocommit=True)
        for table in ("clicks", "people", "users"):
            self.postgres.execute(f"DROP TABLE IF EXISTS {table}".encode())
        self.postgres.execute("CREATE TABLE clicks (n bigint, url text, ms int, at bigint)")
        self.postgres.execute("CREATE TABLE people (id int, name text, age int)")
        self.postgres.execute("CREATE TABLE users (id int PRIMARY KEY, name text, age int)")
        self.chance = random.Random(seed)
        self.fed = 0
        self.environment = with_spark()
        self.start()

    def start(self) -> None:
        arguments = ("--file-poll-interval", "20ms", "--spark-driver-memory", "1GB")
        self.program = Program(self.folder, *arguments, environment=self.environment).ready()

    def kill(self) -> None:
        self.program.process.kill()
        self.program.__exit__()

    def connect(self, **parameters: Any) -> psycopg.Connection[tuple[Any, ...]]:
        return self.program.connect(**parameters)

    def click(self) -> dict[str, Any]:
        self.fed += 1
        at = START_MS + self.fed * 700 + self.chance.randint(0, 600)
        url = self.chance.choice(["./home", "./cart", "./a", None])
        return {"n": self.fed, "url": url, "ms": self.chance.randint(0, 999), "at": at}

    def feed(self, count: int) -> None:
        clicks = [self.click() for _ in range(count)]
        people = [
            {"id": self.chance.randint(1, 6), "name": self.chance.choice("xyz"), "age": self.chance.randint(10, 40)}
            for _ in range(count // 2)
        ]
        self.write("clicks", clicks)
        self.write("people", people)
        for row in clicks:
            self.postgres.execute("INSERT INTO clicks VALUES (%(n)s, %(url)s, %(ms)s, %(at)s)", row)
        for row in people:
            self.postgres.execute("INSERT INTO people VALUES (%(id)s, %(name)s, %(age)s)", row)
            self.postgres.execute(
                "INSERT INTO users VALUES (%(id)s, %(name)s, %(age)s) "
                "ON CONFLICT (id) DO UPDATE SET name = excluded.name, age = excluded.age",
                row,
            )

    def write(self, entity: str, records: list[dict[str, Any]]) -> None:
        aside = self.folder / "aside"
        aside.write_text("".join(json.dumps(record) + "\n" for record in records))
        aside.rename(self.files / entity / f"{time.time_ns()}.json")

    def expected(self, sql: str) -> Counter[tuple[Any, ...]]:
        return Counter(self.postgres.execute(sql.encode()).fetchall())

    @property
    def readings(self) -> list[str]:
        """What stands in the folder of sources: one folder for each that is read."""
        sources = self.folder / "data" / "sources"
        return [] if not sources.exists() else [each.name for each in sources.iterdir()]

    def left_in_file(self) -> list[tuple[str, ...]]:
        """States and places in the ledger, of a server that does not run."""
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for file in (self.folder / "data").glob("views.duckdb*"):
            shutil.copy(file, copy)
        with duckdb.connect(str(copy / "views.duckdb")) as connection:
            return connection.execute(
                "SELECT table_name FROM duckdb_tables() WHERE schema_name = '_state' UNION ALL "
                "SELECT view_name FROM duckdb_views() WHERE schema_name = '_views' UNION ALL "
                'SELECT query_id FROM "_ledger".subscribers UNION ALL SELECT query_id FROM "_ledger".outboxes '
                'UNION ALL SELECT log FROM "_ledger".logs UNION ALL SELECT query_id FROM "_ledger".watermarks'
            ).fetchall()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, postgres_server: Any) -> Iterator[World]:
    seed = time.time_ns()
    print(f"seed {seed}")
    made = World(tmp_path_factory.mktemp("push"), postgres_server.dsn, seed)
    try:
        for entity in ("clicks", "people"):
            (made.files / entity).mkdir(parents=True)
        with made.connect() as connection:
            connection.execute("CREATE STORE s WITH ('type' = FILE, 'uris' = '.')")
            given = "'store' = 's', 'value.format' = 'json'"
            clicks = "(n BIGINT, url VARCHAR, ms INTEGER, at BIGINT)"
            connection.execute(f"CREATE STREAM clicks {clicks} WITH ({given}, 'timestamp' = 'at')")
            people = "(id INTEGER, name VARCHAR, age INTEGER"
            connection.execute(f"CREATE STREAM people {people}) WITH ({given})")
            connection.execute(f"CREATE CHANGELOG users {people}, PRIMARY KEY (id)) WITH ({given}, 'topic' = 'people')")
        yield made
    finally:
        made.program.__exit__()
        made.postgres.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Reader:
    """A client that takes the rows of a push query as they come."""

    def __init__(self, world: World, sql: str) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.error: psycopg.Error | None = None
        self._connection = world.connect()
        self._sql = sql
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            for row in self._connection.cursor().stream(self._sql.encode()):
                self.rows.append(row)
        except psycopg.Error as error:
            self.error = error

    def result(self, changes: bool) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for row in list(self.rows):
            if changes:
                found[row[1:]] += 1 if row[0].startswith("+") else -1
            else:
                found[row] += 1
        return +found

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def end(self) -> str | None:
        self._connection.cancel()
        self._thread.join(WITHIN_S)
        self._connection.close()
        return None if self.error is None else self.error.sqlstate


def shown_by(world: World, queries: dict[str, tuple[str, str]], *, changes: bool) -> None:
    readers = {name: Reader(world, ours) for name, (ours, _) in queries.items()}
    try:
        for _ in range(3):
            world.feed(world.chance.randint(5, 40))
            for name, (_, theirs) in queries.items():
                wanted = world.expected(theirs)
                until(lambda name=name, wanted=wanted: same(world, readers[name], name, wanted, changes))
    finally:
        ended = {name: reader.end() for name, reader in readers.items()}
    assert ended == dict.fromkeys(queries, "57014")


def same(world: World, reader: Reader, name: str, wanted: Counter[Any], changes: bool) -> bool:
    assert reader.error is None, f"{name}: {reader.error}"
    return reader.result(changes) == wanted


def test_changes_carried_out_are_what_postgresql_computes(world: World) -> None:
    world.feed(30)
    shown_by(world, SHOWN, changes=True)
    until(lambda: world.readings == [])


def test_rows_that_are_only_added(world: World) -> None:
    shown_by(world, ADDED, changes=False)
    until(lambda: world.readings == [])


def test_every_way_to_read_them(world: World) -> None:
    groups = f"SELECT count(*) AS c FROM clicks {ALL}"
    with world.connect() as connection, world.connect() as other:
        assert connection.execute(f"{groups} LIMIT 1").fetchall() == [("+I", 0)]
        (described,) = [connection.execute(f"{groups} LIMIT 1").description]
        assert described is not None
        assert [column.name for column in described] == ["op", "c"]
        with connection.transaction():
            connection.execute(f"DECLARE c CURSOR FOR {groups}")
            found: list[Any] = []
            while ("+U", world.fed) not in found:
                found += connection.execute("FETCH 3 FROM c").fetchall()
        sql = f"COPY (SELECT url, count(*) AS c FROM clicks {ALL} GROUP BY url LIMIT 2) TO STDOUT"
        with other.cursor() as cursor, cursor.copy(sql.encode()) as copy:
            assert [row[0] for row in copy.rows()] == ["+I", "+I"]
        connection.execute("SET statement_timeout = '1s'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(groups)
        connection.execute("RESET statement_timeout")
        assert connection.execute("SELECT count(*) FROM mv_catalog.queries").fetchone() == (0,)
        assert connection.execute(f"EXPLAIN {groups}").fetchall()[:2] == [
            ("Push query, until its client ends it",),
            ("  Each row with the kind of its change: +I, -U, +U or -D",),
        ]
    until(lambda: world.readings == [])


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_shows_changed_groups(world: World) -> None:
    text = f"SELECT url, count(*) AS c FROM clicks {ALL} WHERE url = './cart' GROUP BY url LIMIT 1;"
    shown = subprocess.run(
        ["psql", "-X", "-h", "127.0.0.1", "-p", str(world.program.port), "-U", "postgres", "-d", "postgres"],
        input=f"\\set FETCH_COUNT 1\n{text}\n", capture_output=True, text=True, timeout=WITHIN_S, check=True,
    )  # fmt: skip
    assert re.search(r"^ \+I \| ./cart \| +[1-9]\d*$", shown.stdout, re.MULTILINE)


def test_the_same_to_the_present_end(world: World) -> None:
    """As a BI tool asks: ordinary SQL over the rows that are there."""
    asked = "SELECT url, count(*), sum(ms) FROM clicks GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10"
    world.feed(30)
    with world.connect(options="-c mv.stream_reads=bounded") as connection:
        assert connection.execute(asked).fetchall() == world.postgres.execute(asked).fetchall()
        for rows in (
            "SELECT * FROM users ORDER BY id LIMIT 4",
            "SELECT name, count(*), max(age) FROM users WHERE age > 15 GROUP BY name ORDER BY name",
            "SELECT c.n, u.name FROM clicks c JOIN users u ON u.id = c.ms % 7 ORDER BY c.n",
        ):
            assert connection.execute(rows).fetchall() == world.postgres.execute(rows).fetchall() != []
        with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
            connection.execute(SHOWN["windows"][0].encode())
        assert "RESET mv.stream_reads" in str(caught.value.diag.message_hint)
    until(lambda: world.readings == [])


def test_errors_end_them_alone(world: World) -> None:
    with world.connect() as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute(f"SELECT url, sum(1 / (n - 3)) AS s FROM clicks {ALL} GROUP BY url".encode()).fetchall()
        with pytest.raises(psycopg.errors.DuplicateColumn):
            connection.execute("SELECT url AS op, count(*) AS c FROM clicks GROUP BY url")
        with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
            connection.execute("SELECT url, count(*) AS c FROM clicks GROUP BY url ORDER BY c")
        assert "mv.stream_reads" in str(caught.value.diag.message_hint)
        reader = Reader(world, "SELECT name, count(*) AS c FROM users GROUP BY name")
        until(lambda: world.readings != [])
        connection.execute("DROP CHANGELOG users")
        until(lambda: reader.error is not None)
        assert reader.end() == "42P01"
    until(lambda: world.readings == [])


def test_a_crash_leaves_nothing_behind(world: World) -> None:
    readers = [Reader(world, SHOWN[name][0]) for name in ("groups", "levels")]
    readers.append(Reader(world, ADDED["join"][0]))
    until(lambda: all(reader.rows for reader in readers))
    world.kill()
    until(lambda: all(reader.over for reader in readers))  # a client that has not noticed yet cannot cancel
    assert [reader.end() for reader in readers] != ["57014"] * 3
    assert world.left_in_file() != []
    world.start()
    with world.connect() as connection:
        assert connection.execute("SELECT count(*) FROM mv_catalog.queries").fetchone() == (0,)
    world.program.terminate()
    world.program.ended()
    assert world.left_in_file() == []
    assert world.readings == []
