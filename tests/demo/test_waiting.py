"""A demo on a busy machine waits for Spark as long as it starts, and says so."""

from __future__ import annotations

import time
from typing import Any, cast

import psycopg
import pytest

from mvserver.demo import terminal


class Connection:
    """Of a server whose Spark is still starting for the first statements."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.sent = 0

    def execute(self, statement: str) -> None:
        time.sleep(0.05)
        self.sent += 1
        if self.sent <= self.refusals:
            raise psycopg.errors.CannotConnectNow("Spark is still starting")


def test_it_waits_as_long_as_spark_starts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(terminal, "WAITING_EVERY_S", 0.01)
    connection = Connection(3)
    terminal.run_with_spark(cast(Any, connection), "CREATE MATERIALIZED VIEW v AS ...", lambda: False)
    told = capsys.readouterr().out
    assert connection.sent == 4
    assert "-- waiting for Spark, 0 s" in told
    assert "-- done in" in told


def test_it_stops_when_it_is_asked_to() -> None:
    connection = Connection(100)
    with pytest.raises(psycopg.errors.CannotConnectNow):
        terminal.run_with_spark(cast(Any, connection), "CREATE MATERIALIZED VIEW v AS ...", lambda: True)
    assert connection.sent == 1
