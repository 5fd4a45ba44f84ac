"""psycopg 3, as its users use it: both protocols, both formats, prepared statements, pipelines, transactions."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import errors
from psycopg.rows import dict_row

from mvserver.streaming.api import QueryState
from tests.clients.live_server import LiveServer

UTC = datetime.UTC


@pytest.fixture
def connection(server: LiveServer) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.conninfo, autocommit=True, connect_timeout=10) as made:
        yield made


def one(connection: psycopg.Connection[Any], sql: str, *parameters: Any, **options: Any) -> Any:
    row = connection.execute(sql, parameters or None, **options).fetchone()
    assert row is not None
    return row[0] if len(row) == 1 else row


def test_connect(connection: psycopg.Connection[Any]) -> None:
    assert connection.info.server_version // 10000 == 15
    assert connection.info.encoding == "utf-8"
    assert connection.info.parameter_status("TimeZone") == "UTC"
    assert one(connection, "SELECT current_user, current_database(), current_schema()") == (
        "postgres", "postgres", "public",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "sqlstate"), [("user=nobody", "28000"), ("dbname=nowhere", "3D000"), ("options=-cnonsense=1", "42704")]
)
def test_connecting_is_refused(server: LiveServer, options: str, sqlstate: str) -> None:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(f"{server.conninfo} {options}", connect_timeout=10)
    expected = {
        "28000": 'role "nobody" does not exist',
        "3D000": 'database "nowhere" does not exist',
        "42704": 'unrecognized configuration parameter "nonsense"',
    }
    assert expected[sqlstate] in str(caught.value)


@pytest.mark.parametrize("binary", [False, True])
def test_every_type_comes_back(connection: psycopg.Connection[Any], binary: bool) -> None:
    cursor = connection.cursor(binary=binary)
    cursor.execute("SELECT * FROM typed ORDER BY id")
    assert cursor.fetchall() == [
        (
            1, True, 2, 9007199254740993, 1.5, 0.1, Decimal("12.30"), "näme 'x'", b"\x00\xff",
            datetime.date(2024, 2, 29), datetime.time(23, 59, 59, 123456),
            datetime.datetime(2024, 1, 2, 3, 4, 5, 678901), datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
        ),
        (2, *[None] * 12),
    ]  # fmt: skip
    assert cursor.description is not None
    assert [column.type_code for column in cursor.description] == [
        23, 16, 21, 20, 700, 701, 1700, 25, 17, 1082, 1083, 1114, 1184,
    ]  # fmt: skip
    assert cursor.description[6].precision == 12
    assert cursor.description[6].scale == 2


PARAMETERS = [
    ("flag = %s", True),
    ("small = %s", 2),
    ("big = %s", 9007199254740993),
    ("real8 = %s", 0.1),
    ("amount = %s", Decimal("12.30")),
    ("name = %s", "näme 'x'"),
    ("bytes = %s", b"\x00\xff"),
    ("day = %s", datetime.date(2024, 2, 29)),
    ("clock = %s", datetime.time(23, 59, 59, 123456)),
    ("moment = %s", datetime.datetime(2024, 1, 2, 3, 4, 5, 678901)),
    ("instant = %s", datetime.datetime(2024, 1, 2, 4, 4, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))),
]


@pytest.mark.parametrize("placeholder", ["%s", "%t", "%b"])
@pytest.mark.parametrize(("condition", "value"), PARAMETERS, ids=[p[0].split()[0] for p in PARAMETERS])
def test_every_parameter_type(
    connection: psycopg.Connection[Any], condition: str, value: Any, placeholder: str
) -> None:
    sql = f"SELECT id FROM typed WHERE {condition.replace('%s', placeholder)}"
    assert one(connection, sql, value) == 1


def test_null_parameters_and_lists(connection: psycopg.Connection[Any]) -> None:
    assert one(connection, "SELECT count(*) FROM typed WHERE name = %s", None) == 0
    assert one(connection, "SELECT coalesce(%s::text, 'none')", None) == "none"
    rows = connection.execute(
        "SELECT url FROM visits WHERE url = ANY(%s::text[]) ORDER BY url", [["./home", "./cart", None]]
    ).fetchall()
    assert rows == [("./cart",), ("./home",)]
    assert one(connection, "SELECT count(*) FROM numbers WHERE n = ANY(%s)", [3, 5, 100_000]) == 2
    assert one(connection, "SELECT count(*) FROM visits WHERE url = ANY(%s)", ["./home", "./cart", None]) == 2
    assert one(connection, "SELECT count(*) FROM visits WHERE url = ANY(%s)", []) == 0


def test_prepared_statements(connection: psycopg.Connection[Any]) -> None:
    for url, visits in [("./home", 30), ("./shop", 20), ("./cart", 10)] * 3:
        assert one(connection, "SELECT visits FROM visits WHERE url = %s", url, prepare=True) == visits
    for _ in range(8):  # psycopg prepares after five
        assert one(connection, "SELECT count(*) FROM visits WHERE visits > %s", 15) == 2


def test_a_prepared_statement_follows_a_new_definition(own_server: LiveServer) -> None:
    with psycopg.connect(own_server.conninfo, autocommit=True) as connection:
        sql = "SELECT visits FROM visits WHERE url = %s"
        assert one(connection, sql, "./home", prepare=True) == 30
        connection.execute("CREATE SCHEMA other")
        assert one(connection, sql, "./home", prepare=True) == 30
        own_server.change("visits", "UPDATE {} SET visits = 31 WHERE url = './home'")
        assert one(connection, sql, "./home", prepare=True) == 31


def test_pipeline(connection: psycopg.Connection[Any]) -> None:
    with connection.pipeline():
        cursors = [connection.execute("SELECT visits FROM visits WHERE url = %s", [u]) for u in ("./home", "./shop")]
        assert [cursor.fetchone() for cursor in cursors] == [(30,), (20,)]


def test_an_error_in_a_pipeline(connection: psycopg.Connection[Any]) -> None:
    def fail_in_pipeline() -> None:
        with connection.pipeline() as pipeline:
            connection.execute("SELECT 1")
            connection.execute("SELECT * FROM nothing")
            connection.execute("SELECT 2")
            pipeline.sync()

    with pytest.raises(errors.UndefinedTable):
        fail_in_pipeline()
    assert one(connection, "SELECT 3") == 3


def test_server_side_errors(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(errors.UndefinedTable) as caught:
        connection.execute("SELECT 1 FROM nothing")
    diagnostic = caught.value.diag
    assert (diagnostic.severity, diagnostic.sqlstate) == ("ERROR", "42P01")
    assert (diagnostic.message_primary, diagnostic.statement_position) == ('relation "nothing" does not exist', "15")
    with pytest.raises(errors.UndefinedColumn):
        connection.execute("SELECT missing FROM visits WHERE url = %s", ["x"])
    with pytest.raises(errors.SyntaxError):
        connection.execute("SELEC 1")
    with pytest.raises(errors.DivisionByZero):
        connection.execute("SELECT 1 / (visits - visits) FROM visits")
    assert one(connection, "SELECT 1") == 1


def test_client_cursor_and_rows_as_dicts(server: LiveServer) -> None:
    with psycopg.connect(server.conninfo, cursor_factory=psycopg.ClientCursor) as connection:
        cursor = connection.cursor(row_factory=dict_row)
        cursor.execute("SELECT url, visits FROM visits WHERE url = %s; SELECT 2 AS two", ["./home"])
        assert cursor.fetchall() == [{"url": "./home", "visits": 30}]
        assert cursor.nextset()
        assert cursor.fetchall() == [{"two": 2}]


def test_streaming_a_large_result(connection: psycopg.Connection[Any]) -> None:
    total = 0
    for (n,) in connection.cursor().stream("SELECT n FROM numbers ORDER BY n"):
        total += n
    assert total == 99_999 * 100_000 // 2


def test_row_counts_and_tags(connection: psycopg.Connection[Any]) -> None:
    cursor = connection.execute("SELECT url FROM visits")
    assert (cursor.rowcount, cursor.statusmessage) == (3, "SELECT 3")
    assert connection.execute("SET application_name = 'x'").statusmessage == "SET"
    assert connection.info.parameter_status("application_name") == "x"


# --- transactions ---------------------------------------------------------------------------------------------------
def test_transactions_and_isolation(own_server: LiveServer) -> None:
    with psycopg.connect(own_server.conninfo) as connection:
        sql = "SELECT visits FROM visits WHERE url = './home'"
        assert one(connection, sql) == 30
        own_server.change("visits", "UPDATE {} SET visits = 31 WHERE url = './home'")
        assert one(connection, sql) == 31  # READ COMMITTED
        connection.rollback()
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert one(connection, sql) == 31
        own_server.change("visits", "UPDATE {} SET visits = 32 WHERE url = './home'")
        assert one(connection, sql) == 31
        connection.commit()
        assert one(connection, sql) == 32


def test_a_failed_transaction(server: LiveServer) -> None:
    with psycopg.connect(server.conninfo) as connection:
        with pytest.raises(errors.UndefinedTable):
            connection.execute("SELECT * FROM nothing")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with pytest.raises(errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        assert one(connection, "SELECT 1") == 1


def test_nested_transactions_are_savepoints(server: LiveServer) -> None:
    def fail_inside() -> None:
        with connection.transaction():
            connection.execute("SELECT * FROM nothing")

    with psycopg.connect(server.conninfo) as connection, connection.transaction():
        with pytest.raises(errors.UndefinedTable):
            fail_inside()
        assert one(connection, "SELECT 1") == 1


def test_ddl_without_autocommit(own_server: LiveServer) -> None:
    with psycopg.connect(own_server.conninfo) as connection:
        connection.execute("CREATE SCHEMA sales")
        assert own_server.catalog.schemas.find(own_server.catalog.databases.get("postgres").id, "sales") is None
        connection.commit()
        assert one(connection, "SELECT count(*) FROM pg_namespace WHERE nspname = 'sales'") == 1
        connection.rollback()
        with pytest.raises(errors.DuplicateSchema):
            connection.execute("CREATE SCHEMA sales")
        connection.rollback()
        connection.execute("CREATE SCHEMA gone")
        connection.rollback()
        assert one(connection, "SELECT count(*) FROM pg_namespace WHERE nspname = 'gone'") == 0


def test_parameter_values_that_cannot_be_read_fail_the_transaction(server: LiveServer) -> None:
    with psycopg.connect(server.conninfo) as connection:
        with pytest.raises(errors.InvalidTextRepresentation):
            connection.execute("SELECT url FROM visits WHERE visits = %t", ["many"])
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR


# --- stopping -------------------------------------------------------------------------------------------------------
SLOW = "SELECT count(*) FROM numbers a, numbers b WHERE a.n * b.n % 7 = 3"


@pytest.mark.parametrize("sql", [SLOW, "SELECT pg_sleep(20)"])
def test_cancel(connection: psycopg.Connection[Any], sql: str) -> None:
    threading.Timer(0.3, connection.cancel_safe).start()
    started = time.monotonic()
    with pytest.raises(errors.QueryCanceled, match="canceling statement due to user request"):
        connection.execute(sql)
    assert time.monotonic() - started < 0.3 + 2  # a second, and one for a busy machine
    assert one(connection, "SELECT 1") == 1


@pytest.mark.parametrize("sql", [SLOW, "SELECT pg_sleep(20)"])
def test_statement_timeout(connection: psycopg.Connection[Any], sql: str) -> None:
    connection.execute("SET statement_timeout = '200ms'")
    started = time.monotonic()
    with pytest.raises(errors.QueryCanceled, match="canceling statement due to statement timeout"):
        connection.execute(sql)
    assert time.monotonic() - started < 0.2 + 2  # a second, and one for a busy machine
    assert one(connection, "SELECT 1") == 1


def test_idle_in_transaction(server: LiveServer) -> None:
    connection = psycopg.connect(f"{server.conninfo} options='-c idle_in_transaction_session_timeout=100ms'")
    connection.execute("SELECT 1")
    time.sleep(0.5)  # the test is about time passing
    with pytest.raises(errors.IdleInTransactionSessionTimeout):
        connection.execute("SELECT 1")
    assert connection.closed


def test_notices_reach_the_client(own_server: LiveServer) -> None:
    own_server.engine.states[own_server.queries["visits"]] = QueryState.STALLED
    heard: list[tuple[str | None, str | None]] = []
    with psycopg.connect(own_server.conninfo, autocommit=True) as connection:
        connection.add_notice_handler(lambda d: heard.append((d.severity, d.message_primary)))
        for _ in range(2):
            assert connection.execute("SELECT count(*) FROM visits").fetchone() == (3,)
    assert heard == [("WARNING", 'materialized view "visits" is not kept up to date: its query is STALLED')]
