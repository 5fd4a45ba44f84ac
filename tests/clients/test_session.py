"""What a session promises over the wire: settings, PREPARE in SQL, set_config, names, definitions in transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.clients.live_server import LiveServer


@pytest.fixture
def connection(server: LiveServer) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.conninfo, autocommit=True, connect_timeout=10) as made:
        yield made


def value(connection: psycopg.Connection[Any], sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]


def test_prepare_and_execute_in_sql(connection: psycopg.Connection[Any]) -> None:
    connection.execute("PREPARE by_url(text, int) AS SELECT visits + $2 AS n FROM visits WHERE url = $1")
    assert value(connection, "EXECUTE by_url('./home', 1 + 1)") == 32
    assert value(connection, "EXECUTE by_url(lower('./SHOP'), -5)") == 15
    assert connection.execute("EXECUTE by_url(NULL, 1)").fetchall() == []
    with pytest.raises(errors.SyntaxError, match="wrong number of parameters"):
        connection.execute("EXECUTE by_url('./home')")
    connection.execute("DEALLOCATE by_url")
    with pytest.raises(errors.InvalidSqlStatementName):
        connection.execute("EXECUTE by_url('./home', 1)")


def test_settings_in_sql_functions(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET application_name = 'mine'")
    assert value(connection, "SELECT current_setting('application_name')") == "mine"
    assert value(connection, "SELECT set_config('application_name', 'other', false)") == "other"
    assert value(connection, "SHOW application_name") == "other"
    assert connection.info.parameter_status("application_name") == "other"
    connection.execute("SET app.tenant = '7'")
    assert value(connection, "SELECT current_setting('app.tenant')") == "7"
    assert value(connection, "SELECT current_setting('idle_in_transaction_session_timeout')") == "1min"


def test_the_session_time_zone(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    assert value(connection, "SELECT instant::text FROM typed WHERE id = 1") == "2024-01-02 12:04:05+09"
    moment = value(connection, "SELECT instant FROM typed WHERE id = 1")
    assert moment.isoformat() == "2024-01-02T12:04:05+09:00"
    assert value(connection, "SELECT count(*) FROM typed WHERE instant = '2024-01-02 12:04:05'") == 1


def test_the_search_path(own_server: LiveServer) -> None:
    with psycopg.connect(own_server.conninfo, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA sales")
        connection.execute("USE SCHEMA sales")
        assert value(connection, "SELECT current_schema()") == "sales"
        assert value(connection, "SHOW search_path") == "sales"
        with pytest.raises(errors.UndefinedTable):
            connection.execute("SELECT count(*) FROM visits")
        connection.execute("SET search_path TO sales, public")
        assert value(connection, "SELECT count(*) FROM visits") == 3
        connection.execute("RESET ALL")
        assert value(connection, "SELECT current_schema()") == "public"
        with pytest.raises(errors.InvalidSchemaName):
            connection.execute("USE SCHEMA missing")


def test_databases_are_apart(own_server: LiveServer) -> None:
    with psycopg.connect(own_server.conninfo, autocommit=True) as connection:
        connection.execute("CREATE DATABASE clicks")
    with psycopg.connect(f"{own_server.conninfo} dbname=clicks", autocommit=True) as connection:
        assert value(connection, "SELECT current_database()") == "clicks"
        with pytest.raises(errors.UndefinedTable):
            connection.execute("SELECT count(*) FROM visits")
        assert value(connection, "SELECT count(*) FROM postgres.public.visits") == 3


def test_ddl_in_one_text_takes_effect_statement_by_statement(own_server: LiveServer) -> None:
    with psycopg.connect(own_server.conninfo, autocommit=True) as connection:
        with pytest.raises(errors.UndefinedTable):
            connection.execute("CREATE SCHEMA a; SELECT * FROM nothing; CREATE SCHEMA b")
        schemas = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname IN ('a', 'b')").fetchall()
        assert schemas == [("a",)]


def test_several_definitions_in_one_transaction_are_one(own_server: LiveServer) -> None:
    count = "SELECT count(*) FROM pg_database WHERE datname IN ('one', 'two')"
    with psycopg.connect(own_server.conninfo) as connection:
        connection.execute("CREATE DATABASE one")
        connection.execute("CREATE SCHEMA one.inside")  # builds on what waits
        connection.execute("CREATE DATABASE two")
        with pytest.raises(errors.DuplicateDatabase):
            connection.execute("CREATE DATABASE one")
        connection.rollback()
        assert value(connection, count) == 0
        connection.execute("CREATE DATABASE one")
        connection.execute("CREATE DATABASE two")
        connection.commit()
        assert value(connection, count) == 2


def test_a_view_is_defined_without_autocommit(own_server: LiveServer) -> None:
    """What a psycopg program writes that knows nothing of this server: execute, execute, commit."""
    (own_server.files / "shop").mkdir()
    view = "SELECT count(*) FROM pg_matviews WHERE matviewname = 'per_url'"
    with psycopg.connect(own_server.conninfo) as connection:
        connection.execute("CREATE STORE shop WITH ('type' = FILE, 'uris' = 'shop')")
        connection.execute("CREATE ENTITY clicks IN STORE shop")
        connection.execute(
            "CREATE STREAM clicks (url VARCHAR, at BIGINT) "
            "WITH ('store' = 'shop', 'topic' = 'clicks', 'value.format' = 'json')"
        )
        connection.commit()
        create = "CREATE MATERIALIZED VIEW per_url AS SELECT url, count(*) AS n FROM clicks GROUP BY url"
        connection.execute(create)
        with pytest.raises(errors.ActiveSqlTransaction, match="cannot be read before COMMIT"):
            connection.execute("SELECT * FROM per_url")
        connection.rollback()
        assert value(connection, view) == 0
        cursor = connection.execute(create)
        assert cursor.statusmessage == "CREATE MATERIALIZED VIEW"
        reconciled = own_server.engine.reconciled
        connection.commit()
        assert value(connection, view) == 1
        assert own_server.engine.reconciled > reconciled
        connection.rollback()
        with pytest.raises(errors.DuplicateTable):
            connection.execute(create)
        connection.rollback()
        with pytest.raises(errors.ActiveSqlTransaction):
            connection.execute("DROP ENTITY clicks IN STORE shop")
        connection.rollback()
        connection.execute("DROP MATERIALIZED VIEW per_url")
        connection.execute("DROP STREAM clicks")
        connection.commit()
        assert value(connection, view) == 0


def test_read_only(own_server: LiveServer) -> None:
    with psycopg.connect(own_server.conninfo) as connection:
        connection.read_only = True
        with pytest.raises(errors.ReadOnlySqlTransaction):
            connection.execute("CREATE SCHEMA a")


def test_two_portals_at_once(own_server: LiveServer) -> None:
    """libpq's single-row mode on one connection, and a second connection's change in between."""
    with psycopg.connect(own_server.conninfo) as first, psycopg.connect(own_server.conninfo) as second:
        first.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        sql = "SELECT sum(visits) FROM visits"
        assert value(first, sql) == 60
        own_server.change("visits", "UPDATE {} SET visits = visits + 1")
        assert value(second, sql) == 63
        assert value(first, sql) == 60
        assert value(first, "SELECT count(*) FROM visits WHERE visits = 31") == 0


def test_errors_keep_the_session(connection: psycopg.Connection[Any]) -> None:
    for sql, sqlstate in [
        ("SELECT", "42601"),
        ("SELECT 1/0", "22012"),
        ("SELECT 'x'::int", "22P02"),
        ("SELECT nothing()", "42883"),
        ("SELECT * FROM missing.nothing", "42P01"),
        ("INSERT INTO visits VALUES (1)", "0A000"),
        ("SET nonsense = 1", "42704"),
        ("SET server_version = '9'", "55P02"),
        ("SHOW nonsense", "42704"),
        ("ROLLBACK TO SAVEPOINT s", "25P01"),
        ("DEALLOCATE nothing", "26000"),
        ("DROP SCHEMA missing", "3F000"),
        ("COPY visits FROM STDIN", "42809"),
        ("DECLARE c CURSOR FOR SELECT 1", "25P01"),
    ]:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(sql)
        assert caught.value.diag.sqlstate == sqlstate, (sql, caught.value)
    assert value(connection, "SELECT 1") == 1


def test_explain_shows_the_plan_of_this_session(connection: psycopg.Connection[Any]) -> None:
    def plan(text: str) -> str:
        return "\n".join(line for (line,) in connection.execute(f"EXPLAIN {text}").fetchall())

    connection.execute("SET application_name = 'explained'")
    assert "explained" in plan("SELECT current_setting('application_name') AS x")
    own = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert own is not None
    assert str(own[0]) in plan("SELECT pg_backend_pid() AS x")
    connection.execute("SET search_path = elsewhere, public")
    assert "Pull query" in plan("SELECT url FROM visits")


def test_discard_all_ends_all_that_a_pooler_passes_on(server: LiveServer) -> None:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        for _ in range(2):  # with and without something to end
            connection.execute("SET application_name = 'left'")
            connection.execute("PREPARE left_over AS SELECT 1")
            connection.execute("BEGIN")
            connection.execute("DECLARE held CURSOR WITH HOLD FOR SELECT 1")
            with pytest.raises(psycopg.errors.ActiveSqlTransaction):
                connection.execute("DISCARD ALL")
            connection.execute("ROLLBACK")
            connection.execute("discard all ;")
            assert connection.execute("SHOW application_name").fetchone() == ("",)
            assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        connection.execute("DECLARE held CURSOR WITH HOLD FOR SELECT 1")
        connection.execute("DISCARD ALL")
        with pytest.raises(psycopg.errors.InvalidCursorName):
            connection.execute("FETCH held")
