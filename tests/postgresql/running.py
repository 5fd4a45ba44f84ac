"""Readers of tables for the tests of one matter: each with a table of its own, of which nothing is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from tests.postgresql.test_source import WITHIN_S, Run
from tests.services.postgres import LogicalPostgres

Source = psycopg.Connection[Any]


@contextmanager
def running(server: LogicalPostgres, folder: Path, table: str, *, keyed: bool = True) -> Iterator[Run]:
    """Begun with the present rows."""
    run = Run(server, table, folder / f"w{uuid4().hex}", keyed=keyed)
    try:
        run.settle()
        yield run
    finally:
        run.reader.forget()
        with server.connect() as last:
            names = "SELECT slot_name FROM pg_replication_slots UNION SELECT pubname FROM pg_publication"
            assert last.execute(names).fetchall() == []


def wait_until(condition: Callable[[], bool], within_s: float = WITHIN_S) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def received(run: Run, source: Source) -> None:
    """All that has committed is in the reader's spool."""
    row = source.execute("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    run.reader._want(int(row[0]))
    wait_until(lambda: run.reader._spool.end >= int(row[0]))  # type: ignore[union-attr]
