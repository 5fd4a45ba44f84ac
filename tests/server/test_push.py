"""Push queries and bounded reads of a real server: live rows from Spark by every way, and nothing left behind."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer

from tests.server.program import Program, with_spark

pytestmark = pytest.mark.spark

WITHIN_S = 120.0
COLUMNS = (
    "n BIGINT, url VARCHAR, price DECIMAL(10, 2), at TIMESTAMP, item STRUCT<a INTEGER, b VARCHAR>, tags ARRAY<INTEGER>"
)


class Stream:
    """The server, and the records of its stream ``clicks``."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program = program
        self.folder = folder
        self.topic = folder / "data" / "files" / "clicks"
        self.fed = 0

    def record(self, n: int) -> dict[str, Any]:
        return {
            "n": n, "url": f"./p{n % 3}", "price": f"{n}.25", "at": "2024-01-02 03:04:05.5",
            "item": {"a": n, "b": None}, "tags": [n, None],
        }  # fmt: skip

    def feed(self, count: int) -> list[int]:
        numbers = list(range(self.fed, self.fed + count))
        aside = self.folder / "aside"
        aside.write_text("".join(json.dumps(self.record(n)) + "\n" for n in numbers))
        aside.rename(self.topic / f"{time.monotonic_ns()}.json")
        self.fed += count
        return numbers

    def connect(self, **parameters: Any) -> psycopg.Connection[tuple[Any, ...]]:
        return self.program.connect(**parameters)

    @property
    def readings(self) -> list[str]:
        """What stands in the folder of sources: one folder for each that is read."""
        sources = self.folder / "data" / "sources"
        return [] if not sources.exists() else [each.name for each in sources.iterdir()]


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    folder = tmp_path_factory.mktemp("push")
    environment = with_spark()
    arguments = ("--file-poll-interval", "20ms", "--spark-driver-memory", "1GB")
    with Program(folder, *arguments, environment=environment) as program:
        program.ready()
        made = Stream(program, folder)
        made.topic.mkdir(parents=True)
        made.feed(7)
        with made.connect() as connection:
            connection.execute("CREATE STORE s WITH ('type' = FILE, 'uris' = '.')")
            connection.execute(f"CREATE STREAM clicks ({COLUMNS}) WITH ('store' = 's', 'value.format' = 'json')")
        yield made


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def waits(stream: Stream, pid: int) -> bool:
    """Whether the session's push query stands at its source."""
    with stream.connect() as watcher:
        active = watcher.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()
    return active == ("active",) and bool(stream.readings)


def test_history_and_limit(stream: Stream) -> None:
    with stream.connect() as connection:
        found = connection.execute(
            "SELECT * FROM clicks WITH ('starting.position' = 'earliest') WHERE n >= 2 LIMIT 2"
        ).fetchall()
    assert [(n, url, price, item, tags) for n, url, price, _, item, tags in found] == [
        (n, f"./p{n % 3}", Decimal(f"{n}.25"), {"a": n, "b": None}, [n, None]) for n in (2, 3)
    ]
    assert str(found[0][3]) == "2024-01-02 03:04:05.500000"
    until(lambda: stream.readings == [])


def test_rows_come_as_they_are_written(stream: Stream) -> None:
    seen: list[int] = []
    started = threading.Event()

    def read() -> None:
        with stream.connect() as connection:
            pids.append(connection.info.backend_pid)
            started.set()
            for (n,) in connection.cursor().stream("SELECT n FROM clicks WHERE n % 2 = 1"):
                seen.append(n)
                if len(seen) == 5:
                    break

    pids: list[int] = []
    reader = threading.Thread(target=read)
    reader.start()
    started.wait(WITHIN_S)
    until(lambda: waits(stream, pids[0]))
    wanted = [n for n in stream.feed(4) if n % 2]
    until(lambda: seen == wanted)  # while the query goes on
    wanted += [n for n in stream.feed(6) if n % 2]
    reader.join(WITHIN_S)
    assert seen == wanted
    until(lambda: stream.readings == [])


def test_a_cursor_a_copy_and_a_view_beside_each_other(stream: Stream) -> None:
    with stream.connect() as connection, stream.connect() as other:
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT url, count(*) AS n FROM clicks GROUP BY url")
        with connection.transaction():
            connection.execute("DECLARE c CURSOR FOR SELECT n, url FROM clicks WHERE n >= 0")
            with other.cursor() as cursor, cursor.copy("COPY (SELECT n FROM clicks LIMIT 5) TO STDOUT") as copy:
                wanted = stream.feed(5)
                assert [int(row[0]) for row in copy.rows()] == wanted
            found: list[int] = []
            while len(found) < 5:
                found += [n for n, _ in connection.execute("FETCH 3 FROM c").fetchall()]
        assert found == wanted
        connection.execute("SET mv.freshness = 'latest'")
        urls = Counter(f"./p{n % 3}" for n in range(stream.fed))
        assert dict(connection.execute("SELECT url, n FROM v").fetchall()) == urls
        assert connection.execute("SELECT count(*) FROM mv_catalog.queries").fetchone() == (1,)
        connection.execute("DROP MATERIALIZED VIEW v")
    until(lambda: stream.readings == [])


def test_a_bad_expression_fails_at_its_row(stream: Stream) -> None:
    with stream.connect() as connection, pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("SELECT 1 / n FROM clicks WITH ('starting.position' = 'earliest')").fetchall()
    until(lambda: stream.readings == [])


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_shows_each_row_and_ctrl_c_ends_it(stream: Stream) -> None:
    address = ["-h", "127.0.0.1", "-p", str(stream.program.port), "-U", "postgres", "-d", "postgres"]
    psql = subprocess.Popen(
        ["psql", "-X", "--csv", "-t", *address, "-v", "FETCH_COUNT=1", "-c", "SELECT n, url FROM clicks"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert psql.stdout is not None
    try:
        until(lambda: fetching(stream))
        numbers = stream.feed(2)
        assert [psql.stdout.readline() for _ in numbers] == [f"{n},./p{n % 3}\n" for n in numbers]
    finally:
        psql.send_signal(signal.SIGINT)
    out, err = psql.communicate(timeout=WITHIN_S)
    assert out == ""
    assert "Cancel request sent" in err
    until(lambda: stream.readings == [])


def fetching(stream: Stream) -> bool:
    with stream.connect() as watcher:
        rows = watcher.execute(
            "SELECT query FROM pg_stat_activity WHERE application_name = 'psql' AND state = 'active'"
        ).fetchall()
    return any("FETCH" in query for (query,) in rows)


def test_a_client_that_hangs_up_leaves_nothing(stream: Stream) -> None:
    connection = stream.connect()
    connection.pgconn.send_query(b"SELECT n FROM clicks")
    connection.pgconn.flush()
    until(lambda: waits(stream, connection.info.backend_pid))
    connection.close()
    until(lambda: stream.readings == [])


@pytest.mark.kafka
def test_the_rows_of_a_partition_come_in_its_order(stream: Stream, kafka_broker: Any) -> None:
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})

    def produce(numbers: range) -> None:
        for n in numbers:
            producer.produce("push_numbers", json.dumps({"n": n}).encode())
        assert producer.flush(30) == 0

    with stream.connect() as connection, stream.connect() as other:
        connection.execute(f"CREATE STORE k WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')")
        connection.execute("CREATE ENTITY push_numbers IN STORE k WITH ('topic.partitions' = 1, 'topic.replicas' = 1)")
        connection.execute("CREATE STREAM numbers (n BIGINT) WITH ('store' = 'k', 'topic' = 'push_numbers', "
                           "'value.format' = 'json')")  # fmt: skip
        produce(range(300))
        live = connection.cursor().stream("SELECT n FROM numbers WITH ('starting.position' = 'earliest')")
        with other.cursor() as cursor, cursor.copy("COPY (SELECT n FROM numbers LIMIT 200) TO STDOUT") as copy:
            produce(range(300, 600))
            assert [int(row[0]) for row in copy.rows()] == list(range(300, 500))
        assert [next(live) for _ in range(600)] == [(n,) for n in range(600)]
        live.close()
    with stream.connect(options="-c mv.stream_reads=bounded") as connection:
        assert connection.execute("SELECT count(*), max(n) FROM numbers").fetchone() == (600, 599)
        assert connection.execute("SELECT n FROM numbers LIMIT 3").fetchall() == [(0,), (1,), (2,)]
        connection.execute("DROP STREAM numbers")
        versions = [("a", 1), ("b", 2), ("c", 3), ("a", 4), ("b", None), ("d", None), ("c", None), ("c", 5)]
        connection.execute("CREATE ENTITY push_versions IN STORE k WITH ('topic.partitions' = 3, 'topic.replicas' = 1)")
        connection.execute("CREATE CHANGELOG versions (id VARCHAR, n BIGINT, PRIMARY KEY (id)) WITH ('store' = 'k', "
                           "'topic' = 'push_versions', 'value.format' = 'json', 'key.format' = 'json', "
                           "'key.type' = 'STRUCT<id VARCHAR>')")  # fmt: skip
        assert connection.execute("SELECT * FROM versions").fetchall() == []
        for key, version in versions:
            value = None if version is None else json.dumps({"id": key, "n": version}).encode()
            producer.produce("push_versions", value, json.dumps({"id": key}).encode())
        assert producer.flush(30) == 0
        assert connection.execute("SELECT * FROM versions ORDER BY id LIMIT 2").fetchall() == [("a", 4), ("c", 5)]
        assert connection.execute("SELECT count(*), sum(n) FROM versions WHERE n > 1").fetchone() == (2, 9)
        connection.execute("DROP CHANGELOG versions")
    until(lambda: stream.readings == [])


def test_what_is_read_to_the_present_end(stream: Stream) -> None:
    with stream.connect(options="-c mv.stream_reads=bounded") as connection:
        count = stream.fed

        def rows(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
            return connection.execute(sql, parameters or None).fetchall()

        assert rows("SELECT count(*) FROM clicks") == [(count,)]
        assert rows("SELECT n, tags FROM clicks ORDER BY n LIMIT 2") == [(0, [0, None]), (1, [1, None])]
        assert len(rows("SELECT * FROM clicks LIMIT 3")) == 3
        assert rows("SELECT max(price), sum(n) FROM clicks WHERE n < %s", 3) == [(Decimal("2.25"), Decimal(3))]
        pairs = rows("SELECT a.n FROM clicks a JOIN public.clicks b ON b.n = a.n + 3 ORDER BY a.n")
        assert pairs == [(n,) for n in range(count - 3)]
        assert rows("SELECT n FROM clicks WITH ('starting.position' = 'latest')") == []
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT url, count(*) AS n FROM clicks GROUP BY url")
        joined = "SELECT c.url, count(*) = max(v.n) FROM clicks c JOIN v USING (url) GROUP BY c.url ORDER BY 1"
        assert rows(joined) == [(f"./p{at}", True) for at in range(3)]
        (plan, read, *_) = rows("EXPLAIN SELECT n FROM clicks LIMIT 5")
        assert plan[0].startswith("Pull query (other) over 0 view(s)  (cost=")
        assert read == ('Read by Spark, to the present end: SELECT "n" FROM "postgres"."public"."clicks" LIMIT 5',)
        with pytest.raises(psycopg.errors.UndefinedColumn):
            rows("SELECT nope FROM clicks")
        connection.execute("DROP MATERIALIZED VIEW v")
    until(lambda: stream.readings == [])


def test_drop_ends_it(stream: Stream) -> None:
    """The last one: the stream is gone behind it."""
    failed: list[psycopg.Error] = []
    connection = stream.connect()

    def read() -> None:
        try:
            connection.execute("SELECT n FROM clicks")
        except psycopg.Error as error:
            failed.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    until(lambda: waits(stream, connection.info.backend_pid))
    with stream.connect() as other:
        other.execute("DROP STREAM clicks")
    reader.join(WITHIN_S)
    assert [(error.sqlstate, error.diag.message_primary) for error in failed] == [
        ("42P01", 'stream "clicks" was dropped')
    ]
    until(lambda: stream.readings == [])
    connection.close()
