"""UNION ALL in DuckDB: both sides append to one log, each batch once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from mvserver.errors import SqlError
from spark_sinks.duckdb.changes.log_reader import LOOK_S, LogReader
from spark_sinks.duckdb.changes.logs import Log
from spark_sinks.duckdb.joins.join_sides import Side
from spark_sinks.duckdb.joins.unions import UnionTables
from tests.streaming.joins import Row, World

LOG = Log("v_1_join_log", ("VARCHAR", "BIGINT", "TIMESTAMPTZ"), "log")
TABLES = UnionTables(tuple(Side(f"v_1_join_{i}", (), ("VARCHAR", "BIGINT"), False) for i in range(2)), LOG)


def test_both_sides_append(tmp_path: Path) -> None:
    world = World(tmp_path, TABLES)
    world.commit(0, [Row(1, "a", 5, "0"), Row(2, None, None, "0")])
    world.commit(1, [Row(11, "b", 3, "0")])
    world.restart()
    world.take()
    world.commit(1, [Row(12, "c", 4, "0")])
    assert world.count("v_1_join_log") == 1, "what is read is removed"
    world.take()
    assert world.read == [("a", 1), (None, 2), ("b", 11), ("c", 12)]


def test_the_log_is_looked_after_while_rows_come(tmp_path: Path) -> None:
    """Idleness is judged also where commits of the other side follow each other without a pause."""
    world = World(tmp_path, TABLES)
    looks: list[float] = []
    reader = LogReader(LOG, StructType([]), world.database.cursor, look=lambda: looks.append(time.monotonic()))
    deadline = time.monotonic() + 30
    while len(looks) < 2 and time.monotonic() < deadline:
        reader.notify()
        assert reader.next_batch({"seq": 0}, 10) == {"seq": 0}
        reader.wait(1)
    assert len(looks) == 2
    assert looks[1] - looks[0] >= LOOK_S
    world.commit(0, [Row(1, "a", 5, "0")])
    assert reader.next_batch({"seq": 0}, 10) == {"seq": 1}
    assert reader.health.look({"seq": 0}).latest == {"seq": 1}
    reader.close()


def test_where_a_log_ends_is_not_known_before_its_sources_are_read(tmp_path: Path) -> None:
    world = World(tmp_path, TABLES)
    reader = LogReader(LOG, StructType([]), world.database.cursor, complete=lambda: False)
    assert reader.health.look({"seq": 0}).latest is None
    world.commit(0, [Row(1, "a", 5, "0")])
    world.take()
    world.commit(0, [Row(2, "b", 6, "0")])
    with pytest.raises(SqlError, match="rows from 0 of an intermediate result are gone"):
        reader.health.check_history({"seq": 0})
