"""COPY FROM STDIN into the entity of a stream on a FILE store: psycopg and psql, what it writes and what it refuses."""

from __future__ import annotations

import datetime as dt
import json
import select
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.clients.live_server import LiveServer

COLUMNS = (
    "id BIGINT NOT NULL, name VARCHAR, flag BOOLEAN, tiny TINYINT, real4 FLOAT, real8 DOUBLE, amount DECIMAL(10, 2), "
    "day DATE, clock TIME, moment TIMESTAMP, instant TIMESTAMP_LTZ, bytes VARBINARY, short VARCHAR(3), "
    "list ARRAY<INTEGER>, place STRUCT<x INTEGER, y VARCHAR>, tags MAP<VARCHAR, DOUBLE>"
)


@pytest.fixture(scope="module")
def copying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    made = LiveServer(tmp_path_factory.mktemp("copying"))
    made.start()
    with psycopg.connect(made.conninfo, autocommit=True) as connection:
        connection.execute("CREATE STORE files WITH ('type' = FILE, 'uris' = '.')")
        for name, columns, form in (
            ("everything", COLUMNS, "json"),
            ("pairs", "id INTEGER NOT NULL, name VARCHAR", "json"),
            ("lines", "id INTEGER NOT NULL, name VARCHAR, amount DOUBLE", "csv"),
        ):
            connection.execute(f"CREATE ENTITY {name} IN STORE files")
            connection.execute(f"CREATE STREAM {name} ({columns}) WITH ('store' = 'files', 'value.format' = '{form}')")
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def _empty(copying: LiveServer) -> None:
    for name in ("everything", "pairs", "lines"):
        for path in (copying.files / name).iterdir():
            path.unlink()


@pytest.fixture
def connection(copying: LiveServer) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(copying.conninfo, autocommit=True) as opened:
        yield opened


def files(server: LiveServer, entity: str) -> list[Path]:
    """With those that are not visible: none may be left over."""
    return sorted((server.files / entity).iterdir())


def lines(server: LiveServer, entity: str) -> list[str]:
    return [line for path in files(server, entity) for line in path.read_text().splitlines()]


def copy(connection: psycopg.Connection[Any], statement: str, data: str | bytes) -> int:
    with connection.cursor() as cursor:
        with cursor.copy(statement) as target:
            target.write(data)
        return cursor.rowcount


def refused(connection: psycopg.Connection[Any], statement: str, data: str | bytes = "") -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        copy(connection, statement, data)
    return caught.value


TEXT_ROW = (
    "1\tn\\\\ä\\n\tt\t-128\t1.5\t1e300\t12.345\t2024-02-29\t23:59:59.5\t2024-01-02 03:04:05.678901\t"
    '2024-01-02 03:04:05+02\t\\\\x00ff\tabc   \t{1,NULL,3}\t{"x": 1, "y": "é"}\t{"a": 1.5, "b": null}\n'
)


def test_values_of_every_type(copying: LiveServer, connection: psycopg.Connection[Any]) -> None:
    assert copy(connection, "COPY everything FROM STDIN", TEXT_ROW + "2" + "\t\\N" * 15 + "\n") == 2
    full, empty = map(json.loads, lines(copying, "everything"))
    assert full == {
        "id": 1, "name": "n\\ä\n", "flag": True, "tiny": -128, "real4": 1.5, "real8": 1e300, "amount": 12.35,
        "day": "2024-02-29", "clock": "23:59:59.500000", "moment": "2024-01-02 03:04:05.678901",
        "instant": "2024-01-02 01:04:05+00:00", "bytes": "AP8=", "short": "abc", "list": [1, None, 3],
        "place": {"x": 1, "y": "é"}, "tags": {"a": 1.5, "b": None},
    }  # fmt: skip
    assert empty == dict.fromkeys(full) | {"id": 2}


def test_binary_and_typed_rows(copying: LiveServer, connection: psycopg.Connection[Any]) -> None:
    with connection.cursor() as cursor:
        statement = "COPY everything (id, name, amount, real8, instant, list) FROM STDIN (FORMAT binary)"
        with cursor.copy(statement) as target:
            target.set_types(["int8", "text", "numeric", "float8", "timestamptz", "int4[]"])
            target.write_row((7, "x", Decimal("-0.005"), float("nan"), dt.datetime(2024, 1, 1, tzinfo=dt.UTC), [1, 2]))
        assert cursor.statusmessage == "COPY 1"
    (record,) = map(json.loads, lines(copying, "everything"))
    assert {name: value for name, value in record.items() if value is not None} == {
        "id": 7, "name": "x", "amount": -0.01, "real8": "NaN", "instant": "2024-01-01 00:00:00+00:00", "list": [1, 2],
    }  # fmt: skip


def test_csv_into_csv(copying: LiveServer, connection: psycopg.Connection[Any]) -> None:
    data = 'amount,id\n1.5,1\n,"2"\n'
    assert copy(connection, "COPY lines (amount, id) FROM STDIN (FORMAT csv, HEADER match)", data) == 2
    assert copy(connection, "COPY lines FROM STDIN CSV", '3,"a ""b"", c",\n4,"",2\n') == 2
    assert lines(copying, "lines") == ["1,,1.5", "2,,", '3,"a ""b"", c",', '4,"",2.0']
    error = refused(connection, "COPY lines FROM STDIN CSV", '5,"two\nlines",1\n')
    assert (error.sqlstate, error.diag.context) == ("0A000", 'COPY lines, line 1, column name: "two\nlines"')


WRONG = [
    ("COPY pairs FROM STDIN", "1\ta\nx\tb\n", "22P02", 'invalid input syntax for type integer: "x"',
     'COPY pairs, line 2, column id: "x"'),
    ("COPY pairs FROM STDIN", "1\ta\n99999999999\tb\n", "22003",
     'value "99999999999" is out of range for type integer', 'COPY pairs, line 2, column id: "99999999999"'),
    ("COPY pairs FROM STDIN", "1\ta\n2\n", "22P04", 'missing data for column "name"', 'COPY pairs, line 2: "2"'),
    ("COPY pairs FROM STDIN", "1\ta\tb\n", "22P04", "extra data after last expected column",
     'COPY pairs, line 1: "1\ta\tb"'),
    ("COPY pairs FROM STDIN", b"1\ta\n2\t\xff\n", "22021", 'invalid byte sequence for encoding "UTF8": 0xff',
     "COPY pairs, line 2"),
    ("COPY pairs FROM STDIN", "\\N\ta\n", "23502",
     'null value in column "id" of relation "pairs" violates not-null constraint', 'COPY pairs, line 1: "\\N\ta"'),
    ("COPY pairs (name) FROM STDIN", "a\n", "23502",
     'null value in column "id" of relation "pairs" violates not-null constraint', 'COPY pairs, line 1: "a"'),
    ("COPY everything (id, tiny) FROM STDIN", "1\t128\n", "22003", 'value "128" is out of range for type tinyint',
     'COPY everything, line 1, column tiny: "128"'),
    ("COPY everything (id, short) FROM STDIN", "1\tabcd\n", "22001",
     "value too long for type character varying(3)", 'COPY everything, line 1, column short: "abcd"'),
    ("COPY everything (id, amount) FROM STDIN", "1\t123456789\n", "22003", "numeric field overflow",
     'COPY everything, line 1, column amount: "123456789"'),
    ("COPY everything (id, amount) FROM STDIN", "1\t99999999.995\n", "22003", "numeric field overflow",
     'COPY everything, line 1, column amount: "99999999.995"'),
    ("COPY everything (id, day) FROM STDIN", "1\tinfinity\n", "22008", 'date out of range: "infinity"',
     'COPY everything, line 1, column day: "infinity"'),
    ("COPY everything (id, place) FROM STDIN", '1\t{"z": 1}\n', "22P02",
     'type STRUCT<"x" INTEGER, "y" VARCHAR> has no field "z"', 'COPY everything, line 1, column place: "{"z": 1}"'),
    ("COPY everything (id, place) FROM STDIN", '1\t{"x": "a"}\n', "22P02",
     'JSON value "a" does not fit type INTEGER', 'COPY everything, line 1, column place: "{"x": "a"}"'),
    ("COPY everything (id, tags) FROM STDIN", "1\t[1]\n", "22P02",
     'JSON value ["1"] does not fit type MAP<VARCHAR, DOUBLE>', 'COPY everything, line 1, column tags: "[1]"'),
    ("COPY pairs FROM STDIN (FORMAT binary)", b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2\0\0\0\3abc\xff\xff\xff\xff",
     "22P03", "incorrect binary data format", "COPY pairs, line 1, column id"),
    ("COPY nothing FROM STDIN", "", "42P01", 'relation "nothing" does not exist', None),
    ("COPY pairs (id, what) FROM STDIN", "", "42703", 'column "what" of relation "pairs" does not exist', None),
    ("COPY pairs (id) FROM STDIN (FORMAT csv, FORCE_NULL (name))", "", "42P10",
     'FORCE_NULL column "name" not referenced by COPY', None),
    ("COPY pairs FROM STDIN WHERE id > 1", "", "0A000", "COPY FROM with WHERE is not supported", None),
]  # fmt: skip


def test_what_is_refused_leaves_nothing(copying: LiveServer, connection: psycopg.Connection[Any]) -> None:
    for statement, data, sqlstate, message, context in WRONG:
        error = refused(connection, statement, data)
        told = (error.sqlstate, error.diag.message_primary, error.diag.context)
        assert told == (sqlstate, message, context), statement
    assert [files(copying, name) for name in ("everything", "pairs")] == [[], []]
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_view_is_no_target(server: LiveServer) -> None:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        error = refused(connection, "COPY visits FROM STDIN")
    assert (error.sqlstate, error.diag.message_primary) == ("42809", 'cannot copy to materialized view "visits"')


def test_in_a_block_records_are_written_at_commit(copying: LiveServer) -> None:
    """psycopg begins a block by itself."""
    with psycopg.connect(copying.conninfo) as connection:
        copy(connection, "COPY pairs FROM STDIN", "1\ta\n")
        connection.execute("SAVEPOINT s")
        copy(connection, "COPY pairs FROM STDIN", "2\tb\n")
        connection.execute("ROLLBACK TO s")
        copy(connection, "COPY lines FROM STDIN CSV", "3,c,\n")
        before = [files(copying, name) for name in ("pairs", "lines")]
        connection.commit()
        assert before == [[], []]
        assert [lines(copying, name) for name in ("pairs", "lines")] == [['{"id":1,"name":"a"}'], ['3,"c",']]
        copy(connection, "COPY pairs FROM STDIN", "4\td\n")
        connection.rollback()
        refused(connection, "COPY pairs FROM STDIN", "x\td\n")
        connection.rollback()
    assert len(files(copying, "pairs")) == 1


def test_definitions_and_records_do_not_share_a_block(copying: LiveServer) -> None:
    with psycopg.connect(copying.conninfo) as connection:
        copy(connection, "COPY pairs FROM STDIN", "1\ta\n")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction, match="cannot follow COPY FROM"):
            connection.execute("CREATE SCHEMA other")
        connection.rollback()
        connection.execute("CREATE SCHEMA other")
        error = refused(connection, "COPY pairs FROM STDIN")
        assert error.sqlstate == "25001"
        connection.rollback()
        connection.execute("SET TRANSACTION READ ONLY")
        assert refused(connection, "COPY pairs FROM STDIN").sqlstate == "25006"
    assert files(copying, "pairs") == []


def test_the_client_gives_up(copying: LiveServer, connection: psycopg.Connection[Any]) -> None:
    def interrupted() -> None:
        with connection.cursor() as cursor, cursor.copy("COPY pairs FROM STDIN") as target:
            target.write("1\ta\n")
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        interrupted()
    assert connection.execute("SELECT 1").fetchone() == (1,)
    assert files(copying, "pairs") == []


def test_cancel_and_time_out_while_the_client_is_silent(
    copying: LiveServer, connection: psycopg.Connection[Any]
) -> None:
    began = time.monotonic()
    error = silent(connection, connection.cancel_safe)
    assert error.diag.message_primary == "canceling statement due to user request"
    connection.execute("SET statement_timeout = '100ms'")
    error = silent(connection, lambda: None)
    assert error.diag.message_primary == "canceling statement due to statement timeout"
    assert time.monotonic() - began < 5
    connection.execute("RESET statement_timeout")
    assert files(copying, "pairs") == []


def silent(connection: psycopg.Connection[Any], meanwhile: Callable[[], object]) -> psycopg.Error:
    """A COPY whose client sends a row, and then waits until the server says something of its own accord."""

    def wait() -> None:
        with connection.cursor() as cursor, cursor.copy("COPY pairs FROM STDIN") as target:
            target.write("1\ta\n")
            thread = threading.Thread(target=meanwhile)
            thread.start()
            thread.join(10)
            assert select.select([connection.pgconn.socket], [], [], 5)[0], "the server was silent"

    with pytest.raises(psycopg.errors.QueryCanceled) as caught:
        wait()
    return caught.value


def test_many_rows_in_small_pieces(copying: LiveServer, connection: psycopg.Connection[Any]) -> None:
    rows = 30_000
    data = "".join(f"{at}\tname {at}\n" for at in range(rows)).encode()
    with connection.cursor() as cursor, cursor.copy("COPY pairs FROM STDIN") as target:
        for at in range(0, len(data), 1_001):
            target.write(data[at : at + 1_001])
    records = [json.loads(line) for line in lines(copying, "pairs")]
    assert records == [{"id": at, "name": f"name {at}"} for at in range(rows)]


def test_psql_copies_from_a_file_of_its_own(copying: LiveServer, tmp_path: Path) -> None:
    source = tmp_path / "pairs.csv"
    source.write_text('id,name\n1,"a, b"\n2,\n')
    done = subprocess.run(
        ["psql", "-X", "-d", copying.conninfo, "-c", f"\\copy pairs from '{source}' (format csv, header)"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("COPY 2\n", "")
    inline = "COPY pairs FROM STDIN;\n3\tc\n\\.\nSELECT 1 AS one;\n"
    done = subprocess.run(
        ["psql", "-X", "-At", "-d", copying.conninfo], input=inline, capture_output=True, text=True, timeout=30,
        check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("COPY 1\n1\n", "")
    assert lines(copying, "pairs")[-3:] == ['{"id":1,"name":"a, b"}', '{"id":2,"name":null}', '{"id":3,"name":"c"}']
