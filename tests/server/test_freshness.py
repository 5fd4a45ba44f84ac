"""Reads that ask for freshness, and what mv_catalog says, over a real server with Spark and a directory as source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.server.program import Program, with_spark

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("freshness")
    environment = with_spark()
    arguments = ("--file-poll-interval", "20ms", "--spark-driver-memory", "1GB", "--source-check-interval", "30s")
    with Program(folder, *arguments, environment=environment) as program:
        program.ready()
        with program.connect() as connection:
            connection.execute("CREATE STORE s WITH ('type' = FILE, 'uris' = '.')")
            for entity in ("orders", "payments"):
                connection.execute(f"CREATE ENTITY {entity} IN STORE s")
                connection.execute(
                    f"CREATE STREAM {entity} (item VARCHAR, n INTEGER) WITH ('store' = 's', 'value.format' = 'json')"
                )
            connection.execute("CREATE MATERIALIZED VIEW sold AS SELECT item, sum(n) AS n FROM orders GROUP BY item")
            connection.execute("CREATE MATERIALIZED VIEW paid AS SELECT item, sum(n) AS n FROM payments GROUP BY item")
        yield program


def insert(connection: psycopg.Connection[tuple[object, ...]], entity: str, n: int) -> None:
    connection.execute(f"""INSERT INTO ENTITY {entity} IN STORE s VALUE ('{{"item": "tea", "n": {n}}}')""")


def test_what_was_written_is_read(server: Program) -> None:
    """Each time at once, also through a join and a CTE over views of two sources that are read apart."""
    with server.connect() as connection:
        connection.execute("SET mv.freshness = 'latest'")
        connection.execute("SET mv.freshness_timeout = '60s'")  # the first batch of a busy machine
        sold = paid = 0
        for n in range(1, 6):
            insert(connection, "orders", n)
            sold += n
            assert connection.execute("SELECT n FROM sold").fetchall() == [(sold,)]
            insert(connection, "orders", n)
            insert(connection, "payments", n)
            sold, paid = sold + n, paid + n
            both = "WITH p AS (SELECT item, n FROM paid) SELECT s.n, p.n FROM sold s JOIN p ON p.item = s.item"
            assert connection.execute(both).fetchall() == [(sold, paid)]
        connection.execute("SET mv.freshness = '30s'")
        assert connection.execute("SELECT n FROM sold").fetchall() == [(sold,)]


def test_what_mv_catalog_says_of_it(server: Program) -> None:
    with server.connect() as connection:
        connection.execute("SET mv.freshness = 'latest'")
        connection.execute("SELECT count(*) FROM sold, paid")
        assert connection.execute(
            "SELECT view, rows, lag_records, lag_seconds, caught_up, filled, epoch > 0, bytes >= 0, "
            "last_confirmed_at <= now(), last_change_at <= now() FROM mv_catalog.views ORDER BY view"
        ).fetchall() == [
            (f"postgres.public.{name}", 1, 0, 0.0, True, True, True, True, True, True) for name in ("paid", "sold")
        ]
        assert connection.execute("SELECT count(*) FROM mv_catalog.backfills").fetchall() == [(0,)]
        assert connection.execute(
            "SELECT store, entity, state, error, queries, generation, position, latest_position "
            "FROM mv_catalog.pipelines ORDER BY entity"
        ).fetchall() == [
            ("s", "orders", "RUNNING", None, 1, 1, '{"seq": 10}', '{"seq": 10}'),
            ("s", "payments", "RUNNING", None, 1, 1, '{"seq": 5}', '{"seq": 5}'),
        ]
        assert connection.execute(
            "SELECT p.entity, sum(l.records), max(l.end_position), count(*) = max(l.batch_id) + 1 "
            "FROM mv_catalog.ledger l JOIN mv_catalog.pipelines p ON p.id = l.pipeline "
            "WHERE p.entity = 'payments' GROUP BY p.entity"
        ).fetchall() == [("payments", 5, '{"seq":5}', True)]
        assert ("postgres.public.sold", "materialized view", "postgres.public.orders", "stream") in connection.execute(
            "SELECT * FROM mv_catalog.dependencies"
        ).fetchall()


def test_an_answer_that_cannot_be_fresh_is_refused(server: Program) -> None:
    with server.connect() as connection:
        (query_id,) = connection.execute(
            "SELECT query_id FROM mv_catalog.views WHERE view = 'postgres.public.paid'"
        ).fetchone() or (None,)
        directory = Path(server.process.args[5]) / "files" / "payments"  # type: ignore[index]
        connection.execute("SET mv.freshness = 'latest'")
        connection.execute("SET mv.freshness_timeout = '300ms'")
        aside = directory.with_name("aside")
        directory.rename(aside)
        try:
            with pytest.raises(psycopg.Error) as late:
                connection.execute("SELECT * FROM sold, paid")
        finally:
            aside.rename(directory)
        assert late.value.sqlstate == "55000"
        assert late.value.diag.message_primary == 'materialized view "paid" is not as fresh as mv.freshness asks'
        detail = late.value.diag.message_detail or ""
        assert detail.startswith('The source of "paid" has not said yet where it ends. The source does not answer: ')
        assert f"directory {directory} " in detail
        assert connection.execute("SELECT n FROM sold").fetchall() == [(30,)]
        connection.execute(f"TERMINATE QUERY '{query_id}'")
        with pytest.raises(psycopg.Error) as never:
            connection.execute("SELECT * FROM paid")
        assert (never.value.sqlstate, never.value.diag.message_detail) == (
            "55000", f"Its query {query_id} is TERMINATED.",
        )  # fmt: skip
        connection.execute("SET mv.freshness = 'any'")
        assert connection.execute("SELECT n FROM paid").fetchall() == [(15,)]
