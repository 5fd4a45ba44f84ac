"""A transaction that stays open does not slow the merges, and what it keeps of old rows is bounded and given back.

The whole front end and the real writer of the views over one DuckDB, without Spark. Compared are bytes that DuckDB
holds, not times.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from catalog.model import Column
from mvserver import limits
from mvserver.dialect.errors.duck_errors import translate
from spark_sinks.duckdb.writer import Writer
from tests.clients.live_server import LiveServer
from tests.streaming.states import Fed, target
from tests.wire.server import wait_for

pytestmark = pytest.mark.usefixtures("made_system_catalog")  # a copy counts as memory when it is read

BATCH = [{"k": str(number), "l": number} for number in range(2_000)]
BATCHES = 60
NOISE_BYTES = 6 * 1024 * 1024  # what DuckDB's own blocks come and go by
OLD_ROW_BYTES_MAX = 400  # of a replaced row that a pinned snapshot still sees


class Merged(LiveServer):
    """A server whose views are fed with the same keys again and again."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.writer = Writer(self.database.cursor, translate)
        with self.writer.transaction() as ledger:
            ledger.begin_generation("p", {"at": 0})
        self.fed = Fed(
            self.database, self.writer, target("SELECT k, count(*) AS n, sum(l) AS s FROM events GROUP BY k")
        )
        self.add_view("small", (Column("n", "BIGINT"),), ("n",), "SELECT 1::BIGINT AS n")
        self.batches = 0

    def feed(self, count: int = BATCHES) -> None:
        for _ in range(count):
            self.fed.feed(BATCH)
        self.batches += count

    def held(self) -> int:
        """Bytes of DuckDB's memory."""
        with self.database.cursor() as cursor:
            ((held,),) = cursor.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
        return int(held)

    def counts(self) -> set[int]:
        return {row[1] for row in self.fed.rows()}


@pytest.fixture
def merged(tmp_path: Path) -> Iterator[Merged]:
    server = Merged(tmp_path)
    server.start()
    server.feed(20)
    yield server
    server.stop()
    server.writer.close()


def test_a_read_committed_transaction_keeps_nothing(merged: Merged) -> None:
    with psycopg.connect(merged.conninfo) as connection:
        connection.execute("SELECT n FROM small")
        before = merged.held()
        merged.feed()
        assert merged.held() - before < NOISE_BYTES
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        assert connection.execute("SELECT n FROM small").fetchall() == [(1,)]
    assert merged.counts() == {merged.batches}


def test_a_pinned_snapshot_keeps_old_rows_until_it_ends(merged: Merged) -> None:
    before = merged.held()
    with psycopg.connect(merged.conninfo) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT n FROM small")
        merged.feed()
        assert merged.counts() == {merged.batches}, "merges went on"
        assert merged.held() - before < OLD_ROW_BYTES_MAX * len(BATCH) * BATCHES
        assert connection.execute("SELECT n FROM small").fetchall() == [(1,)]
        connection.rollback()
        merged.feed(1)
        assert merged.held() - before < NOISE_BYTES


def test_its_age_ends_it(merged: Merged, monkeypatch: pytest.MonkeyPatch) -> None:
    before = merged.held()
    with psycopg.connect(merged.conninfo) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT n FROM small")
        merged.feed()
        monkeypatch.setattr(limits, "PINNED_SNAPSHOT_AGE_MAX_S", 0.0)
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("SELECT n FROM small")
        assert caught.value.sqlstate == "72000"
        connection.rollback()
        merged.feed(1)
        assert merged.held() - before < NOISE_BYTES
        monkeypatch.undo()
        assert connection.execute("SELECT n FROM small").fetchall() == [(1,)]


def test_the_time_out_of_idle_transactions_gives_its_rows_back(merged: Merged) -> None:
    before = merged.held()
    with psycopg.connect(merged.conninfo, autocommit=True) as connection:
        connection.execute("SET idle_in_transaction_session_timeout = '300ms'")
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT n FROM small")
        merged.feed()
        wait_for(lambda: merged._server is not None and merged._server.connections == 0)
        merged.feed(1)
        assert merged.held() - before < NOISE_BYTES
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("SELECT 1")
        assert caught.value.sqlstate == "25P03"


@pytest.mark.night  # the old rows go to disk and back, which takes its time
def test_with_little_memory_merges_go_on_beside_a_pinned_snapshot(merged: Merged) -> None:
    with merged.database.cursor() as cursor:
        cursor.execute("SET memory_limit = '40MB'")
    with psycopg.connect(merged.conninfo) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT n FROM small")
        merged.feed(3 * BATCHES)
        assert merged.held() <= 40_000_000
        assert merged.counts() == {merged.batches}
        assert connection.execute("SELECT n FROM small").fetchall() == [(1,)]
