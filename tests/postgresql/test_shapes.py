"""What rows of a table are: whose they are, what tells them apart, and which of them no change shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_sinks.base import Position
from spark_sinks.postgresql.changes import ChangeRecords, KnownTable
from spark_sinks.postgresql.pgoutput import UNCHANGED, Begin, Change, Commit, Table, TableColumn, Values
from spark_sinks.postgresql.records import RowColumn, RowShape
from spark_sinks.postgresql.snapshot import SnapshotFiles
from spark_sinks.postgresql.spool import Spool
from tests.postgresql.running import Source, received, running
from tests.postgresql.test_client import options_of
from tests.services.postgres import LogicalPostgres

postgres = pytest.mark.postgres


@pytest.fixture
def source(logical_postgres: LogicalPostgres) -> Iterator[Source]:
    with logical_postgres.connect() as made:
        made.execute("CREATE TABLE t (id int PRIMARY KEY, v text, n numeric(9, 2))")
        yield made
        made.execute("DROP TABLE IF EXISTS t CASCADE")


# --- whose rows -------------------------------------------------------------------------------------------------------
@postgres
@pytest.mark.parametrize("keyed", [True, False])
def test_tables_that_inherit_have_rows_of_their_own(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, keyed: bool
) -> None:
    from spark_sinks.postgresql.client import PostgresClient

    source.execute("CREATE TABLE child () INHERITS (t); INSERT INTO child VALUES (1, 'child', 1)")
    source.execute("INSERT INTO t VALUES (1, 'parent', 1)")
    client = PostgresClient("pg", options_of(logical_postgres), timeout_s=5.0)
    printed = list(client.print_entity("t", from_beginning=True, limit=None, stopped=lambda: False))
    assert [record.value for record in printed] == [b'{"id":1,"v":"parent","n":1.00}']
    with running(logical_postgres, tmp_path, "t", keyed=keyed) as run:
        source.execute("UPDATE child SET v = 'other'; INSERT INTO child VALUES (2, 'child', 2)")
        source.execute("INSERT INTO t VALUES (3, 'parent', 3)")
        run.catch_up()
        rows = list(run.rows.values()) if keyed else [record["after"] for record in run.records]
        assert rows == [{"id": 1, "v": "parent", "n": 1.0}, {"id": 3, "v": "parent", "n": 3.0}]


@postgres
def test_partitions_that_log_less_than_their_table(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path
) -> None:
    """REPLICA IDENTITY FULL of a partitioned table says nothing of its partitions, though the log is marked so."""
    source.execute("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, v text, n int) PARTITION BY RANGE (id)")
    source.execute("CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (1000)")
    source.execute("ALTER TABLE t REPLICA IDENTITY FULL; ALTER TABLE t ALTER v SET STORAGE EXTERNAL")
    source.execute("ALTER TABLE t1 ALTER v SET STORAGE EXTERNAL; INSERT INTO t VALUES (1, repeat('x', 10000), 1)")
    with running(logical_postgres, tmp_path, "t") as run:
        source.execute("UPDATE t SET id = 2")
        run.catch_up()
        assert list(run.rows) == ['{"id":2}']
        assert run.rows['{"id":2}']["v"].startswith("\0the large value of v did not change")


# --- what no change shows ---------------------------------------------------------------------------------------------
ANEW = "a column of table public.t was dropped and added again"


@postgres
@pytest.mark.parametrize("definition", ["text", "text DEFAULT 'new'"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_column_that_is_dropped_and_added_again(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, definition: str, restarted: bool
) -> None:
    source.execute("ALTER TABLE t DROP n; INSERT INTO t VALUES (1, 'old'), (2, 'old')")
    with running(logical_postgres, tmp_path, "t") as run:
        run.catch_up()
        source.execute(f"ALTER TABLE t DROP v; ALTER TABLE t ADD v {definition}")
        health = run.reader.health.look(run.position)
        assert (health.state, health.cause) == (
            "failed", 'a column of table "t" of store "pg" was dropped and added again',
        )  # fmt: skip
        source.execute("UPDATE t SET v = 'later' WHERE id = 1")
        if restarted:
            run.restart()
        assert run.stops().message == ANEW
        run.restart()
        assert run.stops().message == ANEW
        run.position, run.rows = {"start": "earliest"}, {}
        run.settle()
        source.execute("INSERT INTO t VALUES (3, 'x')")
        run.catch_up()
        run.restart()
        source.execute("INSERT INTO t VALUES (4, 'x')")
        run.catch_up()
        run.same(source)


@postgres
def test_a_column_that_is_made_anew_while_nobody_reads(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path
) -> None:
    """What the server says of its columns holds for the changes behind it, and for none before."""
    source.execute("ALTER TABLE t DROP n; INSERT INTO t VALUES (1, 'old')")
    with running(logical_postgres, tmp_path, "t") as run:
        run.reader.close()  # the slot stays where it is
        source.execute("INSERT INTO t VALUES (2, 'old')")
        source.execute("ALTER TABLE t DROP v; ALTER TABLE t ADD v text")
        source.execute("INSERT INTO t VALUES (3, 'x')")
        source.execute("UPDATE t SET v = 'y'")
        assert run.stops().message == ANEW
        assert len(run.rows) <= 2
        assert run.stops().message == ANEW


@postgres
def test_a_type_that_changes_with_all_rows_and_no_change(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path
) -> None:
    source.execute("INSERT INTO t VALUES (1, 'a', 1)")
    with running(logical_postgres, tmp_path, "t") as run:
        source.execute("ALTER TABLE t ALTER n TYPE int USING n * 100")
        health = run.reader.health.look(run.position)
        assert (health.state, health.cause) == ("failed", 'a column of table "t" of store "pg" has another type now')


# --- what tells them apart --------------------------------------------------------------------------------------------
@postgres
@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_changes_while_a_view_begins_anew_have_the_key_of_now(
    logical_postgres: LogicalPostgres,
    source: Source,
    tmp_path: Path,
    identity: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source.execute(f"ALTER TABLE t REPLICA IDENTITY {identity}")
    source.execute("INSERT INTO t SELECT i, 'v' || i, i FROM generate_series(1, 5) i")
    with running(logical_postgres, tmp_path, "t") as run:
        run.catch_up()
        source.execute("ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (v)")
        source.execute("UPDATE t SET n = 0 WHERE id = 1")
        received(run, source)
        write = SnapshotFiles.write

        def written(*args: Any, **more: Any) -> Any:
            made = write(*args, **more)
            source.execute("UPDATE t SET n = -1 WHERE id = 2; DELETE FROM t WHERE id = 3")
            source.execute("UPDATE t SET id = 40 WHERE id = 4; INSERT INTO t VALUES (1, 'six', 6)")
            received(run, source)
            return made

        monkeypatch.setattr(SnapshotFiles, "write", written)
        run.position, run.rows = {"start": "earliest"}, {}
        run.settle()
        run.catch_up(records=2)
        run.same(source)
        assert '{"v":"six"}' in run.rows
        run.restart()
        source.execute("DELETE FROM t WHERE v = 'v5'")
        run.catch_up()
        run.same(source)


@postgres
def test_a_query_of_the_latest_changes_knows_the_table_as_it_is(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path
) -> None:
    with running(logical_postgres, tmp_path, "t") as run:
        source.execute("ALTER TABLE t ALTER n TYPE int; INSERT INTO t VALUES (1, 'a', 1)")
        assert run.stops().message == "a column of table public.t has another type now"
        run.position = run.reader.adopt({"start": "latest"}, fresh=False)
        source.execute("INSERT INTO t VALUES (2, 'b', 2)")
        run.catch_up()
        assert run.rows == {'{"id":2}': {"id": 2, "v": "b", "n": 2}}


@postgres
@pytest.mark.parametrize("keyed", [True, False])
def test_a_key_that_is_large_and_did_not_change(
    logical_postgres: LogicalPostgres, source: Source, tmp_path: Path, keyed: bool
) -> None:
    source.execute("DROP TABLE t; CREATE TABLE t (k text PRIMARY KEY, n int)")
    source.execute("ALTER TABLE t ALTER k SET STORAGE EXTERNAL; INSERT INTO t VALUES (repeat('x', 2600), 1)")
    with running(logical_postgres, tmp_path, "t", keyed=keyed) as run:
        source.execute("UPDATE t SET n = 2")
        run.catch_up()
        if keyed:
            run.same(source)
        else:
            assert run.records[-1]["after"] == {"k": "x" * 2600, "n": 2}


COLUMNS = (TableColumn("k", True, 25, -1), TableColumn("n", False, 23, -1))
KNOWN = KnownTable("db", "public.t", 1, ("k",), {"k": 25, "n": 23}, {}, {"k": 1, "n": 2})


def records_of(folder: Path, change: Change) -> Spool:
    spool = Spool(folder / "spool", 100)
    records = ChangeRecords(KNOWN, spool, keyed=True, record_bytes_max=1_000)
    for message in (Begin(110, 0, 7), Table(1, "public", "t", "d", COLUMNS), change, Commit(110, 120, 0)):
        records.take(message)
    return spool


def rows_in(spool: Spool) -> list[tuple[bytes, bytes | None]]:
    return [(row["key"], row["value"]) for batch in spool.table(spool.start, spool.end) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        ([b"a", None], [UNCHANGED, b"2"], [(b'{"k":"a"}', b'{"k":"a","n":2}')]),
        ([b"a", None], [b"b", b"2"], [(b'{"k":"a"}', None), (b'{"k":"b"}', b'{"k":"b","n":2}')]),
    ],
)
def test_keys_of_a_row_that_changed(
    tmp_path: Path, old: Values, new: Values, rows: list[tuple[bytes, bytes | None]]
) -> None:
    assert rows_in(records_of(tmp_path, Change("u", 1, old, True, new))) == rows


def test_a_key_that_the_log_does_not_have_is_not_guessed(tmp_path: Path) -> None:
    """Servers before 14.2 leave it out."""
    spool = records_of(tmp_path, Change("u", 1, None, False, [UNCHANGED, b"2"]))
    barrier = spool.barrier(100)
    assert barrier is not None
    assert (barrier.error.sqlstate, barrier.error.message) == (
        "55000", "the log does not have the key of a row of table public.t",
    )  # fmt: skip
    assert rows_in(spool) == []


def test_positions_of_another_shape_are_refused() -> None:
    before: Position = {"system": "1", "table": 1, "shape": 0, "lsn": 5}
    now = KNOWN.followed_by(KnownTable("db", "public.t", 1, ("k",), {"k": 25, "n": 23}, {}, {"k": 1, "n": 3}))
    assert now.shape == int(before["shape"]) + 1
    assert KNOWN.followed_by(KnownTable("db", "public.t", 1, ("k",), {"m": 23}, {}, {"m": 3})).shape == 0


def test_texts_are_json_whatever_is_in_them() -> None:
    texts = ["", "plain", 'a "b" \\ c', "".join(map(chr, range(128))), "ä€𝄞\u2028", "\n\\n\t"]
    shape = RowShape([RowColumn(f"c{at}", 25) for at in range(len(texts))], ())
    row = shape.row([text.encode() for text in texts])
    assert list(json.loads(row).values()) == texts
    assert json.loads(row, strict=True)
