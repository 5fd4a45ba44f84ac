"""pgbench's own load over its own tables, with kills of the server and of the database: views equal the tables."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.faults.live import LiveServer, temporary_server
from tests.postgresql.test_views import slots, store, wait_rows
from tests.services.postgres import LogicalPostgres, pgbench

pytestmark = [pytest.mark.spark, pytest.mark.postgres]
SECONDS = "3600"  # until it is ended

# A view's SELECT, and what PostgreSQL says of the same.
VIEWS = {
    "accounts": "SELECT aid, bid, abalance FROM pgbench_accounts WHERE abalance <> 0",
    "tellers": "SELECT tid, bid, tbalance FROM pgbench_tellers",
    "branches": "SELECT bid, bbalance FROM pgbench_branches",
    "by_branch": "SELECT bid, sum(abalance) AS total, count(*) AS n FROM pgbench_accounts GROUP BY bid",
}
HISTORY = "SELECT after->bid AS bid, sum(after->delta) AS total, count(*) AS n FROM history GROUP BY after->bid"
THEIR_HISTORY = "SELECT bid, sum(delta), count(*) FROM pgbench_history GROUP BY bid"


@contextmanager
def load(source: LogicalPostgres) -> Iterator[None]:
    """Two clients, begun anew as often as the database is killed under them."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            running = pgbench(source, "-n", "-c", "2", "-T", SECONDS, "-R", "200")
            while running.poll() is None and not stop.wait(0.05):
                pass
            running.terminate()
            running.wait()
            stop.wait(0.1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("kills", [2, pytest.param(24, marks=pytest.mark.night)])
def test_views_equal_the_tables(logical_postgres: LogicalPostgres, kills: int) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    assert pgbench(logical_postgres, "-i", "-q", "-s", "1", "-F", "100").wait() == 0
    with logical_postgres.connect() as source:
        source.execute("ALTER TABLE pgbench_history REPLICA IDENTITY FULL")
    with temporary_server() as server:
        server.start()
        with load(logical_postgres):
            server.run(store(logical_postgres))
            for table in ("accounts", "tellers", "branches"):
                server.run(f"CREATE CHANGELOG pgbench_{table} WITH ('store' = pg)")
            server.run("CREATE STREAM history WITH ('store' = pg, 'topic' = 'pgbench_history')")
            for name, select in VIEWS.items():
                server.run(f"CREATE MATERIALIZED VIEW {name} AS {select}")
            server.run(f"CREATE MATERIALIZED VIEW history_by_branch AS {HISTORY}")
            for number in range(kills):
                time.sleep(chance.random() * 3)  # at no step of its own choosing
                if number % 3 == 1:
                    logical_postgres.stop("immediate")
                    logical_postgres.start()
                else:
                    server.kill()
                    server.start()
        with logical_postgres.connect() as source:
            compare(server, source)
            assert slots(source) == 4
            for name in (*VIEWS, "history_by_branch"):
                server.run(f"DROP MATERIALIZED VIEW {name}")
            assert slots(source) == 0
            assert source.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)
            source.execute("DROP TABLE pgbench_accounts, pgbench_tellers, pgbench_branches, pgbench_history")


def compare(server: LiveServer, source: psycopg.Connection[Any]) -> None:
    """With PostgreSQL, and by pgbench's own invariant: each transaction moves the same amount in all four tables."""
    for name, select in VIEWS.items():
        wait_rows(server, f"SELECT * FROM {name}", source.execute(select).fetchall())  # type: ignore[call-overload]
    wait_rows(server, "SELECT * FROM history_by_branch", source.execute(THEIR_HISTORY).fetchall())
    sums = [
        server.query(f"SELECT sum({column})::bigint FROM {view}")
        for column, view in [("abalance", "accounts"), ("tbalance", "tellers"), ("bbalance", "branches"),
                             ("total", "history_by_branch")]
    ]  # fmt: skip
    assert len({str(each) for each in sums}) == 1, sums
    assert server.query("SELECT sum(n)::bigint > 0 FROM history_by_branch") == [(True,)]
