"""One table's rows and changes by exact positions, against a real server and without Spark."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest

from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.postgresql import frames
from spark_sinks.postgresql.client import PostgresClient
from spark_sinks.postgresql.source import PostgresReader
from spark_sinks.postgresql.spool import RECORDS
from spark_sinks.rows_frame import RowsFrame
from tests.postgresql.test_client import options_of
from tests.services.postgres import LogicalPostgres

pytestmark = pytest.mark.postgres
WITHIN_S = 30.0
# Slots that are being made, and wait for a transaction.
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walsender' AND wait_event_type = 'Lock'"


class Tabled:
    """In Spark's place: a frame is the table that it is made of."""

    _sc = None

    def createDataFrame(self, table: Any, schema: str | None = None) -> pa.Table:
        return table if schema is None else pa.Table.from_batches([], RECORDS)


def rows_of(frame: Any) -> pa.Table:
    """Those of a frame that Spark need not know of, or the table."""
    return frame.rows if isinstance(frame, RowsFrame) else frame


class Run:
    """A pipeline over a reader: its rows and its position change together, as in a transaction."""

    def __init__(self, server: LogicalPostgres, table: str, work: Path, *, keyed: bool) -> None:
        self.server, self.table, self.work, self.keyed = server, table, work, keyed
        self.position: Position = {"start": "earliest"}
        self.rows: dict[str, dict[str, Any]] = {}
        self.records: list[dict[str, Any]] = []
        self.reader = self.opened()

    def opened(self) -> PostgresReader:
        return PostgresReader(
            "pg", options_of(self.server), self.table, self.work, keyed=self.keyed, timeout_s=5.0,
            record_bytes_max=1_000_000,
        )  # fmt: skip

    def restart(self) -> None:
        """As after a kill: nothing that is in memory is left."""
        self.reader.close()
        self.reader = self.opened()

    def settle(self) -> None:
        found: list[Position] = []
        self.reader.settle(self.position, found.append)
        self.position = found[0]

    def step(self, records: int = 1000) -> bool:
        end = self.reader.next_batch(self.position, records)
        if self.reader.positions.reached(self.position, end):
            return False
        self.take(rows_of(self.reader.batch(Tabled(), self.position, end)))
        self.position = end
        return True

    def take(self, table: pa.Table) -> None:
        for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
            if not self.keyed:
                self.records.append(json.loads(value))
            elif value is None:
                self.rows.pop(key.decode(), None)
            else:
                self.rows[key.decode()] = json.loads(value)

    def catch_up(self, records: int = 1000) -> None:
        """To the end of the log as it is now."""
        health = self.reader.health.look(self.position)
        assert health.state == "ok", health.cause
        assert health.latest is not None
        deadline = time.monotonic() + WITHIN_S
        while not self.reader.positions.reached(self.position, health.latest):
            assert time.monotonic() < deadline, (self.position, health.latest)
            if not self.step(records):
                self.reader.wait(1.0)

    def stops(self) -> SqlError:
        """What ends the reading."""
        deadline = time.monotonic() + WITHIN_S
        try:
            while time.monotonic() < deadline:
                if not self.step():
                    self.reader.wait(0.5)
        except SqlError as error:
            return error
        raise AssertionError("nothing has ended the reading")

    def release(self) -> None:
        self.reader.release(lambda: [self.position])

    def same(self, connection: psycopg.Connection[Any]) -> None:
        rows = connection.execute(f"SELECT row_to_json(t) FROM {self.table} t").fetchall()
        assert sorted(self.rows.values(), key=str) == sorted((row for (row,) in rows), key=str)


@pytest.fixture
def connection(logical_postgres: LogicalPostgres) -> Iterator[psycopg.Connection[Any]]:
    with logical_postgres.connect() as made:
        yield made


@pytest.fixture
def begin(logical_postgres: LogicalPostgres, connection: psycopg.Connection[Any], tmp_path: Path) -> Iterator[Any]:
    runs: list[Run] = []

    def begun(table: str, *, keyed: bool = True, settle: bool = True) -> Run:
        run = Run(logical_postgres, table, tmp_path / f"w{uuid4().hex}", keyed=keyed)
        runs.append(run)
        if settle:
            run.settle()
        return run

    connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text, n numeric(9, 2))")
    yield begun
    for run in runs:
        run.reader.forget()
    names = "SELECT slot_name FROM pg_replication_slots UNION SELECT pubname FROM pg_publication"
    with logical_postgres.connect() as last:
        last.execute("DROP TABLE IF EXISTS t")
        assert last.execute(names).fetchall() == []


def test_rows_and_then_changes(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    connection.execute("INSERT INTO t SELECT i, 'v' || i, i / 4.0 FROM generate_series(1, 25) i")
    run = begin("t")
    connection.execute("UPDATE t SET v = 'new' WHERE id <= 3; DELETE FROM t WHERE id = 9; INSERT INTO t VALUES (100)")
    connection.execute("UPDATE t SET id = 200 WHERE id = 25")
    run.catch_up(records=10)
    run.same(connection)


def test_an_empty_table(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    run = begin("t")
    assert "snapshot" not in run.position
    connection.execute("INSERT INTO t VALUES (1, 'x', 2)")
    run.catch_up()
    assert run.rows == {'{"id":1}': {"id": 1, "v": "x", "n": 2.0}}


def test_a_stream_has_each_change_as_debezium_writes_it(
    begin: Callable[..., Run], connection: psycopg.Connection[Any]
) -> None:
    connection.execute("INSERT INTO t VALUES (1, 'a', 1)")
    run = begin("t", keyed=False)
    connection.execute("INSERT INTO t VALUES (2, 'b', NULL)")
    connection.execute("UPDATE t SET v = 'c' WHERE id = 1")
    connection.execute("UPDATE t SET id = 3 WHERE id = 2")
    connection.execute("DELETE FROM t WHERE id = 1")
    connection.execute("TRUNCATE t")
    connection.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    connection.execute("INSERT INTO t VALUES (5, 'x', 5)")
    connection.execute("UPDATE t SET v = 'y'")
    run.catch_up()
    found = [(r["op"], r["before"], r["after"]) for r in run.records]
    assert found == [
        ("r", None, {"id": 1, "v": "a", "n": 1.0}),
        ("c", None, {"id": 2, "v": "b", "n": None}),
        ("u", None, {"id": 1, "v": "c", "n": 1.0}),
        ("u", {"id": 2}, {"id": 3, "v": "b", "n": None}),
        ("d", {"id": 1}, None),
        ("t", None, None),
        ("c", None, {"id": 5, "v": "x", "n": 5.0}),
        ("u", {"id": 5, "v": "x", "n": 5.0}, {"id": 5, "v": "y", "n": 5.0}),
    ]
    first, second = run.records[0]["source"], run.records[1]["source"]
    assert (first["snapshot"], second["snapshot"], second["db"], second["schema"], second["table"]) == (
        True, False, "postgres", "public", "t",
    )  # fmt: skip
    assert abs(run.records[1]["ts_ms"] / 1000 - time.time()) < 60


@pytest.mark.parametrize("seed", range(3))
def test_each_change_counts_once_over_restarts(
    begin: Callable[..., Run], connection: psycopg.Connection[Any], seed: int
) -> None:
    """Restarts at every moment: in a snapshot, before and after what is read is released."""
    chance = random.Random(seed)
    connection.execute("INSERT INTO t SELECT i, 'v', 0 FROM generate_series(1, 60) i")
    run, events = begin("t"), begin("t", keyed=False)
    written = 0
    for _ in range(60):
        change = chance.randrange(5)
        if change == 0:
            ids = [chance.randrange(1, 90) for _ in range(chance.randrange(1, 9))]
            with connection.transaction():
                for number in ids:
                    done = connection.execute(
                        "INSERT INTO t VALUES (%s, 'i', 1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1", (number,)
                    )
                    written += done.rowcount
        elif change == 1:
            written += connection.execute("DELETE FROM t WHERE id = %s", (chance.randrange(1, 90),)).rowcount
        elif change == 2:
            for each in (run, events):
                each.step(chance.randrange(1, 12))
        elif change == 3:
            for each in (run, events):
                each.release()
        else:
            for each in (run, events):
                each.restart()
    for each in (run, events):
        each.catch_up(records=7)
    run.same(connection)
    assert len(events.records) == 60 + written


def test_a_transaction_is_never_divided(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    run = begin("t", keyed=False)
    connection.execute("INSERT INTO t SELECT i FROM generate_series(1, 5000) i")
    connection.execute("INSERT INTO t VALUES (6000)")
    sizes, before = [], 0
    deadline = time.monotonic() + WITHIN_S
    while len(run.records) < 5001 and time.monotonic() < deadline:
        if run.step(records=10):
            sizes.append(len(run.records) - before)
            before = len(run.records)
        else:
            run.reader.wait(1.0)
    assert [size for size in sizes if size] == [5000, 1]


def test_what_is_not_released_can_be_read_again(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    run = begin("t", keyed=False)
    start = run.position
    connection.execute("INSERT INTO t VALUES (1)")
    run.catch_up()
    middle = run.position
    run.reader.release(lambda: [start, middle])
    connection.execute("INSERT INTO t VALUES (2)")
    run.catch_up()
    run.restart()
    run.reader.next_batch(run.position, 10)
    again = rows_of(run.reader.batch(Tabled(), start, run.position))
    assert [json.loads(value)["after"]["id"] for value in again["value"].to_pylist()] == [1, 2]
    run.release()
    with pytest.raises(SqlError, match="is ahead of the query") as caught:
        rows_of(run.reader.batch(Tabled(), start, run.position))
    assert caught.value.sqlstate == "55000"


def test_the_slot_is_confirmed_after_the_commit_alone(
    begin: Callable[..., Run], connection: psycopg.Connection[Any]
) -> None:
    run = begin("t")
    confirmed = "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = %s"
    first = connection.execute(confirmed, (run.reader.slot,)).fetchone()
    connection.execute("INSERT INTO t VALUES (1)")
    run.catch_up()
    run.reader.health.look(run.position)
    assert connection.execute(confirmed, (run.reader.slot,)).fetchone() == first
    run.release()
    deadline = time.monotonic() + WITHIN_S
    while (now := connection.execute(confirmed, (run.reader.slot,)).fetchone()) == first:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert now == (run.position["lsn"],)


def test_a_second_view_has_a_snapshot_of_its_own(
    begin: Callable[..., Run], connection: psycopg.Connection[Any]
) -> None:
    connection.execute("INSERT INTO t SELECT i, 'v', 0 FROM generate_series(1, 10) i")
    run = begin("t")
    run.catch_up()
    connection.execute("UPDATE t SET v = 'w' WHERE id = 3")
    found: list[Position] = []
    run.reader.settle({"start": "earliest"}, found.append)
    start = found[0]
    connection.execute("UPDATE t SET v = 'x' WHERE id = 4")
    run.catch_up()
    run.reader.release(lambda: [run.position, start])  # the first one has gone on
    positions = run.reader.positions
    second = Run.__new__(Run)
    second.keyed, second.rows, second.table = True, {}, "t"
    at = start
    while not positions.reached(at, run.position):
        end = positions.advance(at, positions.limit(at, run.position, 4))
        second.take(rows_of(run.reader.batch(Tabled(), at, end)))
        at = end
    second.same(connection)
    assert len(list((run.work / "snapshots").iterdir())) == 1
    run.release()
    assert list((run.work / "snapshots").iterdir()) == []


def test_transactions_across_the_start_of_a_view(
    begin: Callable[..., Run], connection: psycopg.Connection[Any], logical_postgres: LogicalPostgres
) -> None:
    """Writers that never rest while a snapshot is taken: each of their rows is in it, or comes behind it."""
    stop = threading.Event()

    def write(first: int) -> None:
        with logical_postgres.connect() as mine:
            for number in range(first, first + 100_000):
                if stop.is_set():
                    return
                with mine.transaction():
                    mine.execute("INSERT INTO t VALUES (%s)", (number,))
                    mine.execute("UPDATE t SET n = 1 WHERE id = %s", (number,))

    writers = [threading.Thread(target=write, args=(n * 1_000_000,)) for n in range(3)]
    for writer in writers:
        writer.start()
    try:
        runs = [begin("t") for _ in range(3)]
        for run in runs:
            run.step(100)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    for run in runs:
        run.catch_up(records=500)
        run.same(connection)


def test_one_is_warned_of_a_slot_that_holds_back_much(
    begin: Callable[..., Run],
    connection: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = begin("t")
    monkeypatch.setattr("spark_sinks.postgresql.source.SLOT_LAG_WARNING_BYTES", 2_000_000)
    connection.execute(
        "SELECT count(pg_logical_emit_message(true, 'other', repeat('x', 10000))) FROM generate_series(1, 300)"
    )
    for _ in range(2):  # and not at each look
        assert run.reader.health.look(run.position).state == "ok"
    (told,) = [text for record in caplog.records if "holds back" in (text := record.getMessage())]
    words, _, megabytes = told.removesuffix(" MB of the server's log").rpartition(" ")
    assert words == f"replication slot {run.reader.slot} of store pg holds back"
    assert int(megabytes) >= 3


def test_slots_are_shown_with_their_table_also_those_that_nobody_reads(
    begin: Callable[..., Run], connection: psycopg.Connection[Any], logical_postgres: LogicalPostgres
) -> None:
    run = begin("t")
    client = PostgresClient("pg", options_of(logical_postgres), timeout_s=5.0)
    assert dict(client.describe_entity("t").details)[f"slot {run.reader.slot}"].startswith("read, holds back ")
    run.reader.close()
    deadline = time.monotonic() + WITHIN_S
    while not (shown := dict(client.describe_entity("t").details)[f"slot {run.reader.slot}"]).startswith("not read"):
        assert time.monotonic() < deadline
    assert shown.endswith(" bytes of the log, reserved")


def test_the_latest_changes(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    connection.execute("INSERT INTO t VALUES (1)")
    run = begin("t", keyed=False, settle=False)
    run.position = run.reader.adopt({"start": "latest"}, fresh=True)
    connection.execute("INSERT INTO t VALUES (2)")
    run.catch_up()
    other = run.reader.adopt({"start": "latest"}, fresh=False)
    connection.execute("INSERT INTO t VALUES (3)")
    run.catch_up()
    assert [r["after"]["id"] for r in run.records] == [2, 3]
    run.release()  # the other one is being made
    late = rows_of(run.reader.batch(Tabled(), other, run.position))
    assert [json.loads(value)["after"]["id"] for value in late["value"].to_pylist()] == [3]


def test_the_latest_changes_of_a_slot_that_was_left_behind(
    begin: Callable[..., Run], connection: psycopg.Connection[Any]
) -> None:
    """A query whose statement was cut off: whoever comes after it begins now, and not where that one did."""
    run = begin("t", keyed=False, settle=False)
    run.reader.adopt({"start": "latest"}, fresh=True)
    run.restart()
    connection.execute("INSERT INTO t VALUES (1)")
    run.position = run.reader.adopt({"start": "latest"}, fresh=True)
    connection.execute("INSERT INTO t VALUES (2)")
    run.catch_up()
    assert [r["after"]["id"] for r in run.records] == [2]


def lose_slot(run: Run, connection: psycopg.Connection[Any]) -> None:
    """Under a reader that goes on reading, or whose connection the server has not seen end."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        assert time.monotonic() < deadline
        connection.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s", (run.reader.slot,)
        )
        try:
            connection.execute("SELECT pg_drop_replication_slot(%s)", (run.reader.slot,))
        except psycopg.errors.ObjectInUse:
            continue
        return


def test_the_latest_changes_again_when_the_slot_is_lost(
    begin: Callable[..., Run], connection: psycopg.Connection[Any]
) -> None:
    """As REFRESH does, in the process that has lost it."""
    run = begin("t", keyed=False)
    run.catch_up()
    lose_slot(run, connection)
    connection.execute("INSERT INTO t VALUES (1)")
    deadline = time.monotonic() + WITHIN_S
    while run.stops().sqlstate != "55000":  # first the stream ends
        assert time.monotonic() < deadline
    run.position = run.reader.adopt({"start": "latest"}, fresh=False)
    connection.execute("INSERT INTO t VALUES (2)")
    run.catch_up()
    assert [r["after"]["id"] for r in run.records] == [2]


def test_a_slot_that_another_one_made_is_not_gone_on_with(
    begin: Callable[..., Run], connection: psycopg.Connection[Any]
) -> None:
    """One of the same name has nothing of what came before it."""
    run = begin("t", keyed=False)
    run.catch_up()
    connection.execute("INSERT INTO t VALUES (1)")
    run.reader.close()
    lose_slot(run, connection)
    connection.execute("INSERT INTO t VALUES (2)")
    connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (run.reader.slot,))
    assert "is ahead of the query" in (run.reader.health.look(run.position).cause or "")
    with pytest.raises(SqlError, match="is ahead of the query"):
        run.step()


def test_two_queries_that_begin_at_once_make_one_slot(
    begin: Callable[..., Run], connection: psycopg.Connection[Any], logical_postgres: LogicalPostgres
) -> None:
    run, found, errors = begin("t", settle=False), [], []

    def settle() -> None:
        try:
            run.reader.settle({"start": "earliest"}, found.append)
        except SqlError as error:
            errors.append(error)

    threads = [threading.Thread(target=settle) for _ in range(3)]
    with logical_postgres.connect() as other:
        other.execute("BEGIN; INSERT INTO t VALUES (1)")  # a slot waits for it
        for thread in threads:
            thread.start()
        waiting = (
            "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'walsender' AND wait_event_type = 'Lock'"
        )
        deadline = time.monotonic() + WITHIN_S
        while connection.execute(waiting).fetchone() != (True,):
            assert time.monotonic() < deadline
        other.execute("COMMIT")
    for thread in threads:
        thread.join(WITHIN_S)
    assert (errors, len(found)) == ([], 3)
    run.position = found[0]
    run.catch_up()
    run.same(connection)


def test_large_values_that_did_not_change(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    connection.execute("ALTER TABLE t ALTER v SET STORAGE EXTERNAL")
    connection.execute("INSERT INTO t VALUES (1, repeat('x', 100000), 1)")
    run, events = begin("t"), begin("t", keyed=False)
    connection.execute("UPDATE t SET n = 2")
    for each in (run, events):
        each.catch_up()
    unknown = "\0the large value of v did not change and is not in the log; REPLICA IDENTITY FULL has it"
    assert run.rows['{"id":1}'] == {"id": 1, "v": unknown, "n": 2.0}
    assert events.records[-1]["after"]["v"] == unknown
    connection.execute("ALTER TABLE t REPLICA IDENTITY FULL; UPDATE t SET n = 3")
    for each in (run, events):
        each.catch_up()
    run.same(connection)
    assert events.records[-1]["after"]["v"] == events.records[-1]["before"]["v"] == "x" * 100_000


def test_columns_come_and_go(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    run = begin("t")
    connection.execute("ALTER TABLE t ADD more int DEFAULT 5; INSERT INTO t VALUES (1, 'a', 1)")
    connection.execute("ALTER TABLE t DROP v; INSERT INTO t VALUES (2, 2)")
    run.catch_up()
    assert run.rows['{"id":1}'] == {"id": 1, "v": "a", "n": 1.0, "more": 5}
    assert run.rows['{"id":2}'] == {"id": 2, "n": 2.0, "more": 5, "v": "\0column v was dropped from the table"}


BARRIERS = [
    ("TRUNCATE t; INSERT INTO t VALUES (7, '7', 7)", "table public.t was truncated"),
    ("ALTER TABLE t ALTER n TYPE int USING n * 100; UPDATE t SET v = 'w' WHERE id = 1",
     "a column of table public.t has another type now"),
    ("ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (v); INSERT INTO t VALUES (8, '8', 8)",
     "the key of table public.t was changed"),
]  # fmt: skip


@pytest.mark.parametrize(("statements", "message"), BARRIERS)
@pytest.mark.parametrize("restarted", [False, True])
def test_a_changelog_stands_before_what_it_cannot_follow(
    begin: Callable[..., Run], connection: psycopg.Connection[Any], statements: str, message: str, restarted: bool
) -> None:
    connection.execute("INSERT INTO t VALUES (1, '1', 1)")
    run = begin("t")
    connection.execute("INSERT INTO t VALUES (2, '2', 2)")
    for statement in statements.split(";"):
        connection.execute(statement)
    if restarted:
        run.restart()
    stopped = run.stops()
    assert (stopped.sqlstate, stopped.message) == ("55000", message)
    assert '{"id":2}' in run.rows  # all before it was read
    with pytest.raises(SqlError, match=message):  # and it stays there
        run.step()
    run.restart()
    assert run.stops().message == message
    run.position, run.rows = {"start": "earliest"}, {}  # built anew
    run.settle()
    connection.execute("INSERT INTO t VALUES (9, '9', 9)")
    run.catch_up()
    run.restart()
    connection.execute("INSERT INTO t VALUES (10, '10', 10)")
    run.catch_up()
    run.same(connection)


def test_nobody_passes_what_cannot_be_followed(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    """Also by a round, or with the batch of others who stand behind it already."""
    connection.execute("INSERT INTO t VALUES (1, '1', 1)")
    run = begin("t")
    run.catch_up()
    start = run.position
    connection.execute("INSERT INTO t VALUES (2, '2', 2)")
    connection.execute("TRUNCATE t")
    connection.execute("INSERT INTO t VALUES (3, '3', 3)")
    assert run.stops().message == "table public.t was truncated"
    run.reader.release(lambda: [start])
    run.position, run.rows = {"start": "earliest"}, {}
    run.settle()
    run.catch_up()
    run.same(connection)
    for _ in range(2):
        with pytest.raises(SqlError, match="was truncated") as caught:
            rows_of(run.reader.batch(Tabled(), start, run.position))
        assert caught.value.sqlstate == "55000"
        before = run.reader.bounded(start, run.position, 100)
        assert rows_of(run.reader.batch(Tabled(), start, before))["value"].to_pylist() == [b'{"id":2,"v":"2","n":2.00}']
        assert run.reader.positions.limit(start, run.position, 100) == before
        with pytest.raises(SqlError, match="was truncated") as caught:
            run.reader.bounded(before, run.position, 100)
        assert caught.value.sqlstate == "55000"
        run.restart()  # nothing is received yet


def test_a_key_that_the_log_does_not_show(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    """Under REPLICA IDENTITY FULL a table's own words do not say which columns are its key."""
    connection.execute("ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO t VALUES (1, '1', 1)")
    run = begin("t")
    run.catch_up()
    connection.execute("ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (v)")
    connection.execute("INSERT INTO t VALUES (1, '2', 2)")
    health = run.reader.health.look(run.position)
    assert (health.state, health.cause) == ("failed", 'the key of table "t" of store "pg" was changed')
    run.position, run.rows = {"start": "earliest"}, {}
    run.settle()
    connection.execute("DELETE FROM t WHERE v = '1'")
    run.catch_up()
    run.same(connection)


def test_a_partitioned_table_is_one(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    connection.execute("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)")
    connection.execute("CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10)")
    connection.execute("CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20)")
    connection.execute("INSERT INTO t VALUES (1, 'a'), (11, 'b')")
    run = begin("t")
    connection.execute("INSERT INTO t VALUES (2, 'c'); UPDATE t SET id = 12 WHERE id = 1")
    connection.execute("CREATE TABLE t3 PARTITION OF t FOR VALUES FROM (20) TO (30); INSERT INTO t VALUES (21, 'd')")
    run.catch_up()
    run.same(connection)


def test_what_is_rolled_back_never_comes(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    run = begin("t", keyed=False)
    connection.execute("BEGIN; INSERT INTO t VALUES (1); SAVEPOINT a; INSERT INTO t VALUES (2); ROLLBACK TO a; COMMIT")
    connection.execute("BEGIN; INSERT INTO t VALUES (3); ROLLBACK")
    run.catch_up()
    assert [r["after"]["id"] for r in run.records] == [1]


def test_a_large_transaction_lies_in_files(
    begin: Callable[..., Run], connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_sinks.postgresql.spool.SPOOL_MEMORY_BYTES", 0)
    run = begin("t", keyed=False)
    run.reader._spool._memory_bytes = 1_000_000  # type: ignore[union-attr]
    connection.execute("INSERT INTO t SELECT i, repeat('v', 100) FROM generate_series(1, 60000) i")
    read: list[int] = []

    class Files(Tabled):
        @property
        def read(self) -> Files:
            return self

        def parquet(self, folder: str) -> pa.Table:
            read.append(len(list(Path(folder).iterdir())))
            return pa.parquet.read_table(folder)

    monkeypatch.setattr(frames, "FRAME_MEMORY_BYTES", 1_000_000)
    deadline = time.monotonic() + WITHIN_S
    while (end := run.reader.next_batch(run.position, 100)) == run.position:
        assert time.monotonic() < deadline
        run.reader.wait(1.0)
    table = run.reader.batch(Files(), run.position, end)
    assert (table.num_rows, read) == (60_000, [8])
    assert table.sort_by("place")["place"].to_pylist() == list(range(60_000))
    assert list((run.work / "spool").iterdir())


# --- the server -------------------------------------------------------------------------------------------------------
def test_a_server_that_crashes_goes_on(
    begin: Callable[..., Run], connection: psycopg.Connection[Any], logical_postgres: LogicalPostgres
) -> None:
    run = begin("t")
    connection.execute("INSERT INTO t SELECT i FROM generate_series(1, 100) i")
    run.catch_up()
    run.release()
    logical_postgres.stop("immediate")
    assert run.reader.health.look(run.position).state == "stalled"
    assert run.stops().sqlstate == "08006"
    logical_postgres.start()
    with logical_postgres.connect() as again:
        again.execute("DELETE FROM t WHERE id > 50; INSERT INTO t VALUES (500)")
        deadline = time.monotonic() + WITHIN_S
        while run.reader.health.look(run.position).state != "ok":
            assert time.monotonic() < deadline
            time.sleep(0.1)
        run.catch_up()
        run.same(again)
        run.reader.forget()
        again.execute("DROP TABLE t")
    connection.close()


def test_a_slot_that_is_gone_is_said_and_a_view_begins_anew(
    begin: Callable[..., Run], connection: psycopg.Connection[Any]
) -> None:
    run = begin("t")
    run.catch_up()
    run.reader.close()
    lose_slot(run, connection)
    connection.execute("INSERT INTO t VALUES (1)")
    run.restart()
    health = run.reader.health.look(run.position)
    assert health.state == "failed"
    assert f'replication slot "{run.reader.slot}" of store "pg" does not exist any more' in (health.cause or "")
    with pytest.raises(SqlError) as caught:
        run.step()
    assert caught.value.sqlstate == "55000"
    before, run.position, run.rows = run.position, {"start": "earliest"}, {}
    run.settle()
    with pytest.raises(SqlError, match="is ahead of the query"):  # whoever stood before it has lost what was between
        run.reader.next_batch(before, 10)
    run.catch_up()
    run.same(connection)


def test_a_table_that_is_another_one(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    run = begin("t")
    run.catch_up()
    connection.execute("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, w int); INSERT INTO t VALUES (1, 2)")
    health = run.reader.health.look(run.position)
    assert (health.state, health.cause) == ("failed", 'table "t" of store "pg" was dropped')
    before, run.position, run.rows = run.position, {"start": "earliest"}, {}
    run.settle()
    with pytest.raises(SqlError, match="is another one than was read"):
        run.reader.next_batch(before, 10)
    connection.execute("INSERT INTO t VALUES (3, 4)")
    run.catch_up()
    run.same(connection)


def test_a_table_that_is_another_one_after_a_restart(
    begin: Callable[..., Run], connection: psycopg.Connection[Any]
) -> None:
    """The slot is there still, and sends nothing of the new table."""
    run = begin("t")
    run.catch_up()
    connection.execute("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, w int); INSERT INTO t VALUES (1, 2)")
    run.restart()
    assert run.reader.health.look(run.position).cause == 'table "t" of store "pg" was dropped'
    assert run.stops().sqlstate == "55000"
    run.position, run.rows = {"start": "earliest"}, {}
    run.settle()
    connection.execute("INSERT INTO t VALUES (3, 4)")
    run.catch_up()
    run.same(connection)


PUBLICATIONS = [
    'ALTER PUBLICATION "{0}" DROP TABLE t',
    'ALTER PUBLICATION "{0}" DROP TABLE t; INSERT INTO t VALUES (50); ALTER PUBLICATION "{0}" ADD TABLE t',
    "ALTER PUBLICATION \"{0}\" SET (publish = 'insert')",
    'ALTER PUBLICATION "{0}" SET TABLE t WHERE (id > 10)',
    'ALTER PUBLICATION "{0}" SET TABLE t (id)',
    'DROP PUBLICATION "{0}"',
]


@pytest.mark.parametrize("statements", PUBLICATIONS)
@pytest.mark.parametrize("restarted", [False, True])
def test_a_publication_that_is_altered_is_not_believed(
    begin: Callable[..., Run], connection: psycopg.Connection[Any], statements: str, restarted: bool
) -> None:
    run = begin("t")
    run.catch_up()
    for statement in statements.format(run.reader.slot).split("; "):
        connection.execute(statement)
    connection.execute("INSERT INTO t VALUES (1)")
    if restarted:
        run.restart()
    words = 'the changes of table "public.t" of store "pg" are not all published'
    health = run.reader.health.look(run.position)
    assert (health.state, (health.cause or "").partition(":")[0]) == ("failed", words)
    if restarted:
        with pytest.raises(SqlError, match=words) as caught:
            run.step()
        assert caught.value.sqlstate == "55000"
    run.position, run.rows = {"start": "earliest"}, {}
    run.settle()
    connection.execute("UPDATE t SET v = 'x'; INSERT INTO t VALUES (2)")
    run.catch_up()
    run.same(connection)


def test_a_log_that_goes_back_is_refused(begin: Callable[..., Run]) -> None:
    run = begin("t")
    ahead = {**run.position, "lsn": run.position["lsn"] + 10**12}
    health = run.reader.health.look(ahead)
    assert health.state == "failed"
    assert 'the log of store "pg" ends before what was read of it' in (health.cause or "")
    elsewhere = {**run.position, "system": "1"}
    assert "is another server than before" in (run.reader.health.look(elsewhere).cause or "")


def test_a_snapshot_that_was_lost_is_said(begin: Callable[..., Run], connection: psycopg.Connection[Any]) -> None:
    import shutil

    connection.execute("INSERT INTO t VALUES (1)")
    run = begin("t")
    shutil.rmtree(run.work / "snapshots")
    with pytest.raises(SqlError, match="is gone from the server's data directory") as caught:
        run.step()
    assert caught.value.sqlstate == "55000"


def test_a_start_that_waits_for_a_transaction_can_be_given_up(
    begin: Callable[..., Run], logical_postgres: LogicalPostgres
) -> None:
    run = begin("t", settle=False)
    with logical_postgres.connect() as other:
        other.execute("BEGIN; INSERT INTO t VALUES (1)")
        errors: list[SqlError] = []

        def settle() -> None:
            try:
                run.settle()
            except SqlError as error:
                errors.append(error)

        thread = threading.Thread(target=settle)
        thread.start()
        deadline = time.monotonic() + WITHIN_S
        with logical_postgres.connect() as third:
            while third.execute(WAITING).fetchone() == (0,):
                assert time.monotonic() < deadline
        run.reader.give_up()
        thread.join(WITHIN_S)
        assert [error.sqlstate for error in errors] == ["57014"]
        other.execute("COMMIT")
    run.restart()
    run.settle()
    run.catch_up()
    assert list(run.rows) == ['{"id":1}']
