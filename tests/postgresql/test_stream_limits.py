"""What a reader of changes keeps, and what it waits for, has bounds."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from mvserver.errors import SqlError
from spark_sinks.postgresql import capture
from spark_sinks.postgresql.replication import ReplicationStream
from tests.postgresql.running import Source, received, running, wait_until
from tests.postgresql.test_client import options_of
from tests.services.postgres import LogicalPostgres

pytestmark = pytest.mark.postgres
DESCRIPTORS = 1_100  # more than select() takes


@pytest.fixture
def source(logical_postgres: LogicalPostgres) -> Iterator[Source]:
    with logical_postgres.connect() as made:
        made.execute("CREATE TABLE t (id int PRIMARY KEY, v text, n numeric(9, 2))")
        yield made
        made.execute("DROP TABLE t")


def test_a_transaction_that_is_larger_than_what_may_be_received_ahead(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "SPOOL_AHEAD_BYTES", 1_000)
    with running(logical_postgres, tmp_path, "t", keyed=False) as run:
        source.execute("INSERT INTO t SELECT i, 'v', 1 FROM generate_series(1, 20000) i")
        source.execute("INSERT INTO t SELECT i, 'v', 1 FROM generate_series(20001, 20100) i")
        run.catch_up()
        assert len(run.records) == 20_100


def test_changes_that_nobody_releases_do_not_fill_the_disk(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "SPOOL_BYTES_MAX", 200_000)
    with running(logical_postgres, tmp_path, "t", keyed=False) as run:
        source.execute("INSERT INTO t SELECT i, 'v', 1 FROM generate_series(1, 2000) i")
        full = run.stops()
        assert len(run.records) == 2_000
        assert (full.sqlstate, full.message) == ("53400", "the changes that are kept come to too many bytes")
        health = run.reader.health.look(run.position)
        assert health.state == "stalled"
        source.execute("INSERT INTO t VALUES (3000)")
        run.release()
        wait_until(lambda: run.reader.health.look(run.position).state == "ok")
        run.catch_up()
        assert len(run.records) == 2_001


@contextmanager
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4_096, hard), hard))
    taken = [os.open("/dev/null", os.O_RDONLY) for _ in range(DESCRIPTORS)]
    try:
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_may_have_many_descriptors(logical_postgres: LogicalPostgres, source: Source, tmp_path: Path) -> None:
    with many_descriptors(), closing(ReplicationStream("pg", options_of(logical_postgres))) as stream:
        assert stream.connection.pgconn.socket > DESCRIPTORS
        began = time.monotonic()
        stream.wait(0.2)
        assert time.monotonic() - began >= 0.1
        with running(logical_postgres, tmp_path, "t") as run:
            source.execute("INSERT INTO t VALUES (1, 'x', 1)")
            run.catch_up()
            run.same(source)


def test_a_capture_that_ends_says_so_to_who_waits_for_it(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path
) -> None:
    with running(logical_postgres, tmp_path, "t") as run:
        received(run, source)
        ended, known = run.reader._capture, run.reader._table
        assert ended is not None
        assert known is not None
        ended._stopping.set()
        with pytest.raises(SqlError) as caught:
            ended.begin_again(known, run.position["lsn"])
        assert caught.value.sqlstate == "57014"
