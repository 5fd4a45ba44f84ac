"""psycopg 3 as a client: parameters and results of every type, in text and binary, and its own ways of talking."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Json

from tests.wire.server import Running, wait_for

UTC = dt.UTC
BERLIN = dt.timezone(dt.timedelta(hours=2))


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with Running() as server:
        yield server


@pytest.fixture
def connection(running: Running) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(running.dsn, autocommit=True) as opened:
        yield opened


VALUES: list[tuple[str, Any]] = [
    ("bool", True), ("bool", False), ("int2", -32768), ("int4", 2147483647), ("int8", -(2**63)), ("oid", 2**32 - 1),
    ("float4", 1.5), ("float8", 0.1), ("float8", 1e300), ("float8", float("inf")), ("float8", -1e-7),
    ("numeric", Decimal("12345678901234567890.0123456789")), ("numeric", Decimal("-0.0001")), ("numeric", Decimal(0)),
    ("text", "h\u00e9llo \U0001f600"), ("text", ""), ("varchar", "x'y\"z\\"), ("bpchar", "ab"), ("name", "pg_class"),
    ("bytea", b"\x00\xff\\'"), ("bytea", b""),
    ("date", dt.date(2024, 2, 29)), ("date", dt.date(1, 1, 1)), ("date", dt.date(9999, 12, 31)),
    ("time", dt.time(23, 59, 59, 999999)), ("time", dt.time(0)),
    ("timestamp", dt.datetime(2024, 2, 29, 12, 30, 0, 500000)), ("timestamp", dt.datetime(1, 1, 1)),
    ("timestamp", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("timestamptz", dt.datetime(2024, 7, 1, 12, tzinfo=UTC)),
    ("timestamptz", dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ("uuid", uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    ("int4[]", [1, None, -3]), ("int4[]", []),
    ("text[]", ["", None, "NULL", 'a"b\\c', "d,e"]),
    ("float8[]", [1.5, float("-inf")]), ("bool[]", [True, None]), ("date[]", [dt.date(2024, 1, 1)]),
    ("uuid[]", [uuid.UUID(int=0)]),
]  # fmt: skip


@pytest.mark.parametrize("result", [False, True], ids=["text-result", "binary-result"])
@pytest.mark.parametrize("parameter", ["t", "b"], ids=["text-parameter", "binary-parameter"])
@pytest.mark.parametrize(("name", "value"), VALUES, ids=lambda v: str(v)[:30])
def test_values_go_through(
    connection: psycopg.Connection[Any], name: str, value: Any, parameter: str, result: bool
) -> None:
    with connection.cursor(binary=result) as cursor:
        row = cursor.execute(f"echo %{parameter}::{name}", (value,)).fetchone()
    assert row == (value,)
    assert type(row[0]) is type(value)


@pytest.mark.parametrize("result", [False, True])
def test_nulls(connection: psycopg.Connection[Any], result: bool) -> None:
    with connection.cursor(binary=result) as cursor:
        row = cursor.execute("echo %s::int4 %s::text %s::numeric %s::timestamptz %s::int4[]", [None] * 5).fetchone()
    assert row == (None,) * 5


def test_zone_of_the_session(running: Running) -> None:
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        connection.execute("set TimeZone Europe/Berlin")
        assert connection.info.timezone.key == "Europe/Berlin"  # type: ignore[attr-defined]
        (seen,) = connection.execute("echo %s::timestamptz", (dt.datetime(2024, 7, 1, 12, tzinfo=BERLIN),)).fetchone()
        assert seen == dt.datetime(2024, 7, 1, 10, tzinfo=UTC)
        assert seen.utcoffset() == dt.timedelta(hours=2)


def test_json(connection: psycopg.Connection[Any]) -> None:
    for name in ("json", "jsonb"):
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                (seen,) = cursor.execute(f"echo %s::{name}", (Json({"a": [1, None, "é"]}),)).fetchone()
            assert seen == {"a": [1, None, "é"]}


def test_description_and_row_count(connection: psycopg.Connection[Any]) -> None:
    cursor = connection.execute("rows 3")
    assert [(column.name, column.type_code) for column in cursor.description or ()] == [
        ("id", 20), ("name", 25), ("value", 701), ("at", 1114), ("ok", 16)
    ]  # fmt: skip
    assert cursor.rowcount == 3
    assert cursor.statusmessage == "SELECT 3"
    assert cursor.fetchall()[1] == (1, "name-1", 0.125, dt.datetime(2023, 11, 14, 22, 13, 20, 1000), False)
    assert connection.execute("insert 7").rowcount == 7


def test_errors_have_every_field(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero) as raised:
        connection.execute("error 22012 division by zero")
    seen = raised.value.diag
    assert (seen.severity, seen.message_primary, seen.message_detail, seen.message_hint, seen.statement_position) == (
        "ERROR", "division by zero", "What happened.", "What to do.", "7"
    )  # fmt: skip
    assert connection.execute("insert 1").rowcount == 1


def test_notices(connection: psycopg.Connection[Any]) -> None:
    seen: list[str | None] = []
    connection.add_notice_handler(lambda diagnostic: seen.append(diagnostic.message_primary))
    connection.execute("notice hello")
    assert seen == ["hello"]


def test_prepared_statements(connection: psycopg.Connection[Any]) -> None:
    for value in range(10):
        assert connection.execute("echo %s::int4", (value,), prepare=True).fetchone() == (value,)


def test_pipeline(connection: psycopg.Connection[Any]) -> None:
    with connection.pipeline() as pipeline:
        cursors = [connection.execute("echo %s::int4", (value,)) for value in range(50)]
        pipeline.sync()
        assert [cursor.fetchone() for cursor in cursors] == [(value,) for value in range(50)]

    def wrong() -> None:
        with connection.pipeline():
            connection.execute("insert 1")
            connection.execute("error 42601 wrong")
            connection.execute("insert 2")

    with pytest.raises(psycopg.errors.SyntaxError):
        wrong()
    assert connection.execute("insert 1").rowcount == 1


def test_stream(connection: psycopg.Connection[Any]) -> None:
    with connection.cursor() as cursor:
        assert [row[0] for row in cursor.stream("rows 5000 700")] == list(range(5000))


def test_transactions(running: Running) -> None:
    with psycopg.connect(running.dsn) as connection:
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        connection.execute("insert 1")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("error 42P01 nothing")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("insert 1")
        connection.rollback()
        assert connection.execute("insert 1").rowcount == 1


def test_cancel(running: Running, connection: psycopg.Connection[Any]) -> None:
    session = running.backend.sessions[-1]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            connection.execute("sleep 60")
        except psycopg.errors.QueryCanceled as error:
            failures.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    wait_for(lambda: session.running)
    connection.cancel_safe(timeout=10)  # cancel() would hold the interpreter's lock, which the server needs here
    worker.join(10)
    assert [failure.sqlstate for failure in failures] == ["57014"]  # type: ignore[attr-defined]


def test_refused_connections(running: Running) -> None:
    with pytest.raises(psycopg.OperationalError, match='database "other" does not exist'):
        psycopg.connect(running.dsn.replace("dbname=toy", "dbname=other"))
    with pytest.raises(psycopg.OperationalError, match='role "nobody" does not exist'):
        psycopg.connect(running.dsn.replace("user=u", "user=nobody"))


def test_many_connections_at_once(running: Running) -> None:
    def work(results: list[int]) -> None:
        with psycopg.connect(running.dsn, autocommit=True) as own:
            results.extend(len(own.execute("rows 100").fetchall()) for _ in range(20))

    results: list[int] = []
    workers = [threading.Thread(target=work, args=(results,)) for _ in range(10)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)
    assert results == [100] * 200
