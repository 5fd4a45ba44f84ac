"""SUBSCRIBE on a real server: a client's copy equals the view, whoever is killed on the way."""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.server.program import Program, with_spark

pytestmark = [pytest.mark.spark]

WITHIN_S = 180.0
ALL = "WITH ('starting.position' = 'earliest')"
VIEWS = {
    "seen": f"SELECT n, url, ms / 1000.0 AS s FROM clicks {ALL} WHERE ms > 300",
    "by_url": f"SELECT url, count(*) AS c, sum(ms) AS s, max(n) AS m FROM clicks {ALL} GROUP BY url",
    "many": f"SELECT count(*) AS c, sum(n) AS s FROM clicks {ALL}",
    "people": f"SELECT id, name FROM users {ALL} WHERE age > 20",
    "levels": f"SELECT c, count(*) AS urls FROM (SELECT url, count(*) AS c FROM clicks {ALL} GROUP BY url) AS x "
    "GROUP BY c",
    "pairs": f"SELECT a.n, b.n AS other FROM clicks {ALL} a JOIN clicks {ALL} b WITHIN 2 SECONDS "
    "ON a.url = b.url AND a.n < b.n",
}


class World:
    further: tuple[str, ...] = ()  # arguments of the server

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "data" / "files"
        self.chance = random.Random(7)
        self.fed = 0
        self.environment = with_spark()
        self.start()

    def start(self) -> None:
        arguments = ("--file-poll-interval", "20ms", "--spark-driver-memory", "1GB", "--history-retention", "600s")
        self.program = Program(self.folder, *arguments, *self.further, environment=self.environment).ready()

    def kill(self) -> None:
        self.program.process.kill()
        self.program.__exit__()

    def create(self) -> None:
        for entity in ("clicks", "users"):
            (self.files / entity).mkdir(parents=True, exist_ok=True)
        with self.program.connect() as connection:
            for statement in (
                "CREATE STORE f WITH ('type' = FILE, 'uris' = '.')",
                "CREATE STREAM clicks (n BIGINT, url VARCHAR, ms INTEGER, at BIGINT) WITH "
                "('store' = 'f', 'value.format' = 'json', 'timestamp' = 'at')",
                "CREATE CHANGELOG users (id INTEGER, name VARCHAR, age INTEGER, PRIMARY KEY (id)) WITH "
                "('store' = 'f', 'topic' = 'users', 'value.format' = 'json')",
                *(f"CREATE MATERIALIZED VIEW {name} AS {text}" for name, text in VIEWS.items()),
            ):
                connection.execute(statement.encode())

    def feed(self, count: int) -> None:
        clicks, users = [], []
        for _ in range(count):
            self.fed += 1
            at = 1_700_000_000_000 + self.fed * 700
            url = self.chance.choice(["./a", "./b", "./c", None])
            clicks.append({"n": self.fed, "url": url, "ms": self.chance.randint(0, 999), "at": at})
            users.append({"id": self.chance.randint(1, 5), "name": self.chance.choice("xyz"), "age": self.fed % 40})
        for entity, records in (("clicks", clicks), ("users", users)):
            aside = self.folder / "aside"
            aside.write_text("".join(json.dumps(record) + "\n" for record in records))
            aside.rename(self.files / entity / f"{time.time_ns()}.json")

    def rows(self, view: str) -> Counter[tuple[Any, ...]]:
        with self.program.connect() as connection:
            return Counter(connection.execute(f"SELECT * FROM {view}".encode()).fetchall())

    def caught_up(self) -> bool:
        with self.program.connect() as connection:
            rows = connection.execute(
                "SELECT bool_and(caught_up AND filled), count(*) FROM mv_catalog.views"
            ).fetchall()
            total = connection.execute("SELECT c FROM many").fetchall()
        return rows[0][0] is True and total == [(self.fed,)]


def wait_for(condition: Callable[[], bool], what: str, within_s: float = WITHIN_S) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} took too long"
        time.sleep(0.05)


class Follower(threading.Thread):
    """Keeps a copy of a view, over any number of connections and servers."""

    def __init__(self, world: World, view: str) -> None:
        super().__init__(name=f"follow-{view}", daemon=True)
        self.world, self.view = world, view
        self.copy: Counter[tuple[Any, ...]] = Counter()
        self.token: str | None = None
        self.connections = self.snapshots = 0
        self.failure: Exception | None = None
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._ending = False

    def run(self) -> None:
        while not self._ending:
            try:
                self._follow()
            except psycopg.OperationalError as error:  # the server or the connection is gone
                if error.sqlstate not in (None, "57P01", "57P03", "57014", "08006", "53300"):
                    self.failure = error
                    return
                time.sleep(0.05)
            except Exception as error:  # noqa: BLE001 - told by who asks for the copy
                self.failure = error
                return

    def _follow(self) -> None:
        option = "SNAPSHOT" if self.token is None else f"SINCE '{self.token}'"
        with self.world.program.connect() as connection:
            self._connection = connection
            self.connections += 1
            if self.token is None:
                self.copy.clear()
                self.snapshots += 1
            for token, _, _, kind, *row in connection.cursor().stream(
                f"SUBSCRIBE TO {self.view} WITH ({option})".encode()
            ):
                self._apply(kind, tuple(row))
                self.token = token or self.token

    def _apply(self, kind: str, row: tuple[Any, ...]) -> None:
        if kind in ("+I", "+U"):
            self.copy[row] += 1
            return
        assert self.copy[row] > 0, f"{self.view}: {kind} {row} is not there"
        self.copy[row] -= 1
        if not self.copy[row]:
            del self.copy[row]

    def break_off(self) -> None:
        """The connection goes without a word."""
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(OSError, psycopg.Error):
                os.dup2(os.open(os.devnull, os.O_RDWR), connection.fileno())

    def equals(self, rows: Counter[tuple[Any, ...]]) -> bool:
        if self.failure is not None:
            raise self.failure
        return dict(self.copy) == dict(rows)

    def end(self) -> None:
        self._ending = True
        self.break_off()


@contextlib.contextmanager
def begun(made: World) -> Iterator[World]:
    """With its views, and rows in them."""
    try:
        made.create()
        made.feed(20)
        wait_for(made.caught_up, "the first rows")
        yield made
    finally:
        made.kill()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with begun(World(tmp_path_factory.mktemp("subscribe"))) as made:
        yield made


def kill_under_load(
    world: World, chance: random.Random, kills: int, server_kills: int, break_off: Callable[[], None]
) -> Iterator[None]:
    """Feeds rows, and ends the server or a client's connection somewhere in a batch; yields behind each end."""
    ends = [True] * server_kills + [False] * (kills - server_kills)
    chance.shuffle(ends)
    for is_server in ends:
        for _ in range(chance.randint(1, 3)):
            world.feed(chance.choice([1, 10, 40]))
            time.sleep(chance.random() * 0.2)  # somewhere in a batch
        if is_server:
            world.kill()
            world.start()
        else:
            break_off()
        yield
    world.feed(5)
    wait_for(world.caught_up, "the last rows")


def follow_through(world: World, seed: int, kills: int, server_kills: int) -> None:
    """The copies of all views equal the views, although clients and servers are killed."""
    print("seed", seed)
    chance = random.Random(seed)
    followers = [Follower(world, view) for view in VIEWS]
    for follower in followers:
        follower.start()
    for _ in kill_under_load(world, chance, kills, server_kills, lambda: chance.choice(followers).break_off()):
        pass
    for follower in followers:
        rows = world.rows(follower.view)
        wait_for(lambda f=follower, r=rows: f.equals(r), f"the copy of {follower.view}")  # type: ignore[misc]
    assert sum(follower.connections for follower in followers) >= len(followers) + kills - server_kills
    for follower in followers:
        follower.end()


def test_copies_equal_the_views_through_kills(world: World) -> None:
    follow_through(world, 1, 20, 1)


@pytest.mark.night
@pytest.mark.parametrize("run", range(5))
def test_copies_equal_the_views_through_many_kills(world: World, run: int) -> None:
    follow_through(world, random.SystemRandom().randrange(2**32), 20, 6)


def test_a_cursor_and_copy(world: World) -> None:
    with world.program.connect(autocommit=False) as connection:
        connection.execute("DECLARE c CURSOR FOR SUBSCRIBE TO many WITH (SNAPSHOT)")
        ((token, epoch, at, kind, *row),) = connection.execute("FETCH 10 FROM c").fetchall()
        assert (kind, tuple(row)) == ("+I", next(iter(world.rows("many"))))
        assert token is not None
        assert at is not None
        connection.execute("SET LOCAL mv.fetch_timeout = '50ms'")
        assert connection.execute("FETCH 10 FROM c").fetchall() == []
        connection.execute("SET LOCAL mv.fetch_timeout = 0")
        world.feed(1)
        changes = connection.execute("FETCH 10 FROM c").fetchall()
        assert [(change[1], change[3]) for change in changes] == [(epoch + 1, "-U"), (epoch + 1, "+U")]
        assert changes[0][4:] == tuple(row)
        assert changes[1][4] == world.fed
        connection.rollback()
        with connection.cursor().copy(f"COPY (SUBSCRIBE TO many WITH (SINCE '{token}')) TO STDOUT".encode()) as copy:
            first = next(iter(copy.rows()))
            assert first[3:] == ("-U", str(row[0]), str(row[1]))
            connection.cancel()
            with pytest.raises(psycopg.errors.QueryCanceled):
                list(copy)


def test_what_is_refused(world: World) -> None:
    with world.program.connect() as connection:
        for text, sqlstate in (
            ("SUBSCRIBE TO nothing", "42P01"),
            ("SUBSCRIBE TO clicks", "42809"),
            ("SUBSCRIBE TO many WITH (SINCE 'x')", "22023"),
            (f"SUBSCRIBE TO many WITH (SINCE '{'0' * 16}-1')", "72000"),
            ("SUBSCRIBE TO many WITH (SNAPSHOT, SINCE 'x')", "42601"),
            ("SUBSCRIBE TO (SELECT 1)", "0A000"),
            ("CREATE MATERIALIZED VIEW x WITH ('history.millis' = 1) AS SELECT n AS mv_op FROM clicks", "42701"),
            ("CREATE MATERIALIZED VIEW x WITH ('history.millis' = 0) AS SELECT n FROM clicks", "22023"),
            ("CREATE VIEW x AS SELECT * FROM many AS OF '2020-01-01'", "0A000"),
            ('CREATE VIEW x AS SELECT * FROM "many$changes"', "0A000"),
            ("DECLARE c CURSOR WITH HOLD FOR SUBSCRIBE TO many", "0A000"),
        ):
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(text.encode())
            assert caught.value.sqlstate == sqlstate, text
        connection.execute("CREATE ROLE reader LOGIN")
    with (
        world.program.connect(user="reader") as reader,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        reader.execute("SUBSCRIBE TO many")


def test_a_time_out_and_a_drop_end_it(world: World) -> None:
    with world.program.connect() as connection, world.program.connect() as other:
        connection.execute("SET statement_timeout = '200ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SUBSCRIBE TO many")
        connection.execute("SET statement_timeout = 0")
        other.execute(f"CREATE MATERIALIZED VIEW short AS SELECT n FROM clicks {ALL}".encode())
        connection.execute("BEGIN")
        connection.execute("DECLARE c CURSOR FOR SUBSCRIBE TO short WITH (SNAPSHOT)")
        assert connection.execute("FETCH 1 FROM c").fetchall()
        other.execute("REFRESH MATERIALIZED VIEW short")
        fetching = (connection.execute("FETCH 1000 FROM c") for _ in range(1000))
        with pytest.raises(psycopg.Error) as caught:
            list(fetching)
        assert caught.value.sqlstate == "72000"
        connection.execute("ROLLBACK")
        watched = other.execute("SELECT view, watchers, always, oldest_token FROM mv_catalog.watched_views").fetchall()
        assert ("postgres.public.many", 0, False) in [row[:3] for row in watched]
        other.execute("DROP MATERIALIZED VIEW short")


def test_a_history_that_is_always_kept(world: World) -> None:
    def token() -> str:
        found = "SELECT latest_token FROM mv_catalog.watched_views WHERE view = 'postgres.public.always' AND always"
        ((text,),) = connection.execute(found).fetchall()
        return str(text)

    def subscribe(since: str) -> str | None:
        cursor = connection.cursor()
        try:
            return str(next(cursor.stream(f"SUBSCRIBE TO always WITH (SINCE '{since}')".encode()))[3])
        except psycopg.Error as error:
            return error.sqlstate

    with world.program.connect() as connection:
        connection.execute(
            "CREATE MATERIALIZED VIEW always WITH ('history.millis' = 3600000) AS SELECT count(*) AS c FROM clicks"
        )
        wait_for(world.caught_up, "the view")
        first = token()
        assert connection.execute('SELECT count(*) FROM "always$changes"').fetchall() != [(0,)]
    world.kill()
    world.start()
    with world.program.connect() as connection:
        assert token() == first
        world.feed(1)
        wait_for(world.caught_up, "another row")
        assert connection.execute(f"SELECT c FROM always AS OF '{first}'".encode()).fetchall() == [(world.fed - 1,)]
        connection.execute("SET statement_timeout = '20s'")
        assert subscribe(first) == "-U"
        connection.execute("REFRESH MATERIALIZED VIEW always")
        wait_for(world.caught_up, "the view anew")
        assert subscribe(first) == "72000"
        assert token().split("-")[0] != first.split("-")[0]
        connection.execute("DROP MATERIALIZED VIEW always")
        assert connection.execute("SELECT count(*) FROM mv_catalog.watched_views WHERE always").fetchall() == [(0,)]
