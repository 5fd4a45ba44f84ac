"""One server with Spark for all tests of the module, which run in this order: the first meets it while Spark starts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.server import copied_rows
from tests.server.program import Program, with_spark

pytestmark = pytest.mark.spark

CREATE = "CREATE MATERIALIZED VIEW {} AS SELECT url, COUNT(*) AS n FROM clicks GROUP BY url"
CANCELLED_WITHIN_S = 2.0  # a second is the promise


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("server")
    environment = with_spark()
    arguments = ("--file-poll-interval", "20ms", "--spark-driver-memory", "1GB")
    with Program(folder, *arguments, environment=environment) as program:
        topic = folder / "data" / "files" / "clicks"
        program.ready()
        topic.mkdir(parents=True)
        feed(topic, [f"./page{n % 3}" for n in range(9)])
        yield program


def feed(topic: Path, urls: list[str]) -> None:
    aside = topic.parent.parent / "aside.json"
    aside.write_text("".join(json.dumps({"url": url}) + "\n" for url in urls))
    aside.rename(topic / f"{time.monotonic_ns()}.json")


def cancelled_after(connection: psycopg.Connection[Any], text: str, watcher: psycopg.Connection[Any]) -> float:
    """How long the statement went on after it was cancelled."""
    failed: list[tuple[float, psycopg.Error]] = []

    def run() -> None:
        try:
            connection.execute(text)
        except psycopg.Error as error:
            failed.append((time.monotonic(), error))

    thread = threading.Thread(target=run)
    thread.start()
    active = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND state = 'active'"
    while watcher.execute(active, [connection.info.backend_pid]).fetchone() != (1,):
        assert thread.is_alive()
    told = time.monotonic()
    connection.cancel_safe()
    thread.join(30)
    ((ended, error),) = failed
    assert (error.sqlstate, error.diag.message_primary) == ("57014", "canceling statement due to user request")
    return ended - told


def test_a_statement_that_waits_for_spark_can_be_cancelled(server: Program) -> None:
    with server.connect() as connection, server.connect() as watcher:
        connection.execute("CREATE STORE s WITH ('type' = FILE, 'uris' = '.')")
        connection.execute("CREATE STREAM clicks (url VARCHAR) WITH ('store' = 's', 'value.format' = 'json')")
        assert cancelled_after(connection, CREATE.format("never"), watcher) < CANCELLED_WITHIN_S
        connection.autocommit = False
        connection.execute(CREATE.format("never"))
        assert cancelled_after(connection, "COMMIT", watcher) < CANCELLED_WITHIN_S
        connection.rollback()
        assert watcher.execute("SELECT count(*) FROM pg_matviews").fetchone() == (0,)


def test_a_view_can_be_read_from_the_moment_it_is_made(server: Program) -> None:
    """Another session asks for it all the time: it is not there, or being set up, and then it answers whole."""
    seen: set[str] = set()
    answers: list[list[tuple[Any, ...]]] = []
    stop = threading.Event()

    def read() -> None:
        with server.connect() as reader:
            while not stop.is_set() and not answers:
                try:
                    answers.append(reader.execute("SELECT url, n FROM visits ORDER BY url").fetchall())
                except psycopg.Error as error:
                    seen.add(error.sqlstate or str(error))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with server.connect() as connection:
            connection.execute(CREATE.format("visits"))
        reader.join(60)
    finally:
        stop.set()
        reader.join(60)
    assert answers == [[("./page0", 3), ("./page1", 3), ("./page2", 3)]]
    assert seen <= {"42P01", "55000"}


def test_names_are_found_along_the_whole_search_path(server: Program) -> None:
    with server.connect() as connection:
        connection.execute("CREATE SCHEMA other")
        connection.execute("SET search_path = other, public")
        connection.execute(CREATE.format("elsewhere"))  # in "other", over the stream in "public"
        assert connection.execute("SELECT count(*) FROM other.elsewhere").fetchone() == (3,)
        plan = "\n".join(line for (line,) in connection.execute("EXPLAIN SELECT * FROM visits").fetchall())
        assert "Pull query" in plan
        described = connection.execute("DESCRIBE RELATION clicks").fetchall()
        assert len(described) == 1


@pytest.mark.parametrize("form", copied_rows.BY_FORMAT)
def test_records_of_a_copy_are_read_as_they_were_given(server: Program, form: str) -> None:
    """Every type through a record and Spark: COPY TO gives back what COPY FROM took."""
    given, names = copied_rows.rows(form), copied_rows.names(form)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE ENTITY copied_{form} IN STORE s")
        properties = f"WITH ('store' = 's', 'value.format' = '{form}')"
        cursor.execute(f"CREATE STREAM copied_{form} ({copied_rows.columns(form)}) {properties}")
        with cursor.copy(f"COPY copied_{form} FROM STDIN") as copy:
            copy.write("".join(f"{row}\n" for row in given))
        cursor.execute(f"CREATE MATERIALIZED VIEW seen_{form} AS SELECT {names} FROM copied_{form}")
        with cursor.copy(f"COPY (SELECT * FROM seen_{form} ORDER BY id) TO STDOUT") as copy:
            assert b"".join(copy).decode().splitlines() == given


READS = {
    "simple": "SELECT n, q FROM quotients",
    "look-up": "SELECT q FROM quotients WHERE n = 1",
    "joined": "SELECT v.url FROM visits v LEFT JOIN quotients s ON v.n = s.n",
    "sub-query": "SELECT url FROM visits WHERE n IN (SELECT n FROM quotients)",
    "empty anyway": "SELECT 1 FROM quotients LIMIT 0",
    "cursor": "BEGIN; DECLARE c CURSOR FOR SELECT n FROM quotients; FETCH 1 FROM c; COMMIT",
    "prepared": "PREPARE p AS SELECT n FROM quotients; EXECUTE p",
    "snapshot": "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT n FROM quotients; COMMIT",
    "while filling": "SET mv.read_while_filling = on; SELECT n FROM quotients",
}


def test_a_view_that_failed_with_nothing_is_an_error_however_it_is_read(server: Program) -> None:
    """It was filled while its stream was empty, so that it had answered until then."""
    with server.connect() as connection:
        connection.execute("CREATE ENTITY numbers IN STORE s")
        connection.execute("CREATE STREAM numbers (n INTEGER) WITH ('store' = 's', 'value.format' = 'json')")
        connection.execute("CREATE MATERIALIZED VIEW quotients AS SELECT n, 10 / n AS q FROM numbers")
        assert connection.execute("SELECT n, q FROM quotients").fetchall() == []
        connection.execute("INSERT INTO ENTITY numbers IN STORE s VALUE ('{\"n\": 0}')")
        state = "SELECT state FROM mv_catalog.queries WHERE sink = 'postgres.public.quotients'"
        deadline = time.monotonic() + 60
        while connection.execute(state).fetchone() != ("FAILED",):
            assert time.monotonic() < deadline
        for form, text in READS.items():
            with server.connect() as reader, pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as caught:
                reader.execute(text)
            assert "22012: division by zero" in (caught.value.diag.message_detail or ""), form
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            connection.execute("SELECT q FROM quotients WHERE n = %s", [1])
        copied = connection.cursor().copy("COPY (SELECT n FROM quotients) TO STDOUT")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState), copied as copy:
            list(copy)
        connection.execute("DROP RELATION numbers CASCADE")


def test_it_goes_on_where_it_was_and_ends_cleanly(server: Program) -> None:
    with server.connect() as connection:
        feed(Path(server.process.args[5]) / "files" / "clicks", ["./page0"])  # type: ignore[index]
        deadline = time.monotonic() + 30
        while connection.execute("SELECT n FROM visits WHERE url = './page0'").fetchone() != (4,):
            assert time.monotonic() < deadline
    server.terminate()
    assert server.ended(20) == 0
    assert "nanobind" not in server.stderr
    assert "Traceback" not in server.stderr
