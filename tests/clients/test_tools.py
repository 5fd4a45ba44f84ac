"""The sequences by which DBeaver, Metabase, Grafana, Power BI and Tableau connect and browse, replayed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.clients import tool_queries as q
from tests.clients.live_server import LiveServer, with_views

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    server = with_views(LiveServer(tmp_path_factory.mktemp("tools")))
    server.start()
    (server.files / "shop" / "clicks").mkdir(parents=True)
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("CREATE STORE shop WITH ('type' = FILE, 'uris' = 'shop')")
        connection.execute(
            "CREATE STREAM clicks (url VARCHAR, at BIGINT, price DECIMAL(10, 2)) "
            "WITH ('store' = 'shop', 'topic' = 'clicks', 'value.format' = 'json')"
        )
    yield server
    server.stop()


@pytest.fixture
def connection(world: LiveServer) -> Iterator[Connection]:
    with psycopg.connect(world.conninfo, autocommit=True, cursor_factory=psycopg.RawCursor) as made:
        yield made


def rows(connection: Connection, sql: str, *parameters: Any) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(sql, parameters or None)
        return cursor.fetchall()


def run_all(connection: Connection, statements: tuple[str, ...]) -> list[list[tuple[Any, ...]]]:
    found = []
    for sql in statements:
        cursor = connection.execute(sql)
        found.append(cursor.fetchall() if cursor.description else [])
    return found


def test_dbeaver(connection: Connection) -> None:
    answers = run_all(connection, q.DBEAVER_CONNECT)
    assert answers[2] == [("public", "postgres")]
    assert "select" in answers[6][0][0].split(",")
    types = {row["typname"] for row in rows(connection, q.DBEAVER_CONNECT[-1])}
    assert {"int4", "text", "numeric", "timestamptz", "_int4", "json"} <= types
    assert [row["datname"] for row in rows(connection, q.DBEAVER_DATABASES)] == ["postgres"]
    schemas = {row["nspname"]: row["oid"] for row in rows(connection, q.DBEAVER_SCHEMAS)}
    assert {"public", "pg_catalog", "information_schema"} <= set(schemas)
    relations = {row["relname"]: row for row in rows(connection, q.DBEAVER_RELATIONS, schemas["public"])}
    assert {name: row["relkind"] for name, row in relations.items()} == {
        "visits": "m", "typed": "m", "numbers": "m", "clicks": "f",
    }  # fmt: skip
    visits = relations["visits"]["oid"]
    columns = rows(connection, q.DBEAVER_COLUMNS, visits)
    assert [(row["attname"], row["atttypid"], row["def_value"]) for row in columns] == [
        ("url", 25, None), ("visits", 20, None),
    ]  # fmt: skip
    assert rows(connection, q.DBEAVER_CONSTRAINTS, visits) == []
    (index,) = rows(connection, q.DBEAVER_INDEXES, visits)
    assert (index["relname"], index["tabrelname"], index["indisunique"], index["keys"]) == (
        "visits_key", "visits", True, "1",
    )  # fmt: skip
    sizes = rows(connection, q.DBEAVER_SIZES, schemas["public"])
    assert {row["oid"] for row in sizes} >= {row["oid"] for row in relations.values()}
    assert [row[1] for row in run_all(connection, q.DBEAVER_REST)[0]] == ["postgres"]
    assert connection.execute("SELECT x.* FROM public.visits x").fetchmany(200) != []


def test_metabase(connection: Connection) -> None:
    answers = run_all(connection, q.METABASE_CONNECT)
    assert answers[1] == [("read uncommitted",)]
    assert ("public", None) in answers[4]
    privileges = {row["table"]: row for row in rows(connection, q.METABASE_PRIVILEGES)}
    assert {"visits", "typed", "numbers"} <= set(privileges)
    assert (privileges["visits"]["select"], privileges["visits"]["schema"]) == (True, "public")
    tables = [(row["name"], row["type"], row["description"]) for row in rows(connection, q.METABASE_TABLES)]
    assert tables == [
        ("clicks", "FOREIGN TABLE", None), ("numbers", "MATERIALIZED VIEW", None),
        ("typed", "MATERIALIZED VIEW", None), ("visits", "MATERIALIZED VIEW", None),
    ]  # fmt: skip
    fields = rows(connection, q.METABASE_FIELDS)
    assert [(row["name"], row["database-type"], row["database-position"]) for row in fields] == [
        ("url", "text", 0), ("visits", "int8", 1),
    ]  # fmt: skip
    assert connection.execute(q.METABASE_CHART).fetchall() == [(dt.date(2024, 1, 1), 1, Decimal("12.30"), 1)]


def test_grafana(connection: Connection) -> None:
    answers = run_all(connection, q.GRAFANA_CONNECT)
    assert answers == [[(1,)], [(1500,)], []]
    assert ("clicks",) in connection.execute(q.GRAFANA_TABLES).fetchall()
    assert connection.execute(q.GRAFANA_COLUMNS).fetchall() == [
        ("url", "text"), ("at", "bigint"), ("price", "numeric"),
    ]  # fmt: skip
    (series,) = connection.execute(q.GRAFANA_SERIES).fetchall()
    assert (int(series[0]), series[1], series[2]) == (1704164640, "näme 'x'", 0.1)


def test_power_bi(connection: Connection) -> None:
    types = {row["typname"]: row for row in rows(connection, q.NPGSQL_TYPES)}
    assert (types["int4"]["type"], types["int4"]["oid"], types["int4"]["ord"]) == ("b", 23, 0)
    assert (types["_int4"]["type"], types["_int4"]["elem"], types["_int4"]["ord"]) == ("a", 23, 3)
    assert {"text", "bool", "numeric", "timestamp", "timestamptz", "uuid", "bytea", "json"} <= set(types)
    assert run_all(connection, q.NPGSQL_REST) == [[], [], [("UTF8",)]]
    tables = connection.execute(q.POWER_BI_TABLES).fetchall()
    assert ("public", "clicks", "FOREIGN") in tables
    assert connection.execute(q.POWER_BI_COLUMNS).fetchall() == [
        ("url", 1, "YES", "text"), ("at", 2, "YES", "bigint"), ("price", 3, "YES", "numeric"),
    ]  # fmt: skip
    assert connection.execute(q.POWER_BI_KEYS).fetchall() == []
    assert connection.execute(q.POWER_BI_DATA).fetchall() == [("./home", 30), ("./shop", 20)]
    connection.execute("DISCARD ALL")  # as Npgsql's pool


def test_tableau(world: LiveServer) -> None:
    with psycopg.connect(world.conninfo, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        relations = connection.execute(q.TABLEAU_RELATIONS).fetchall()
        assert relations == [
            ("clicks", "public", "f"), ("numbers", "public", "m"), ("typed", "public", "m"), ("visits", "public", "m"),
        ]  # fmt: skip
        columns = connection.execute(q.TABLEAU_COLUMNS).fetchall()
        assert [(row[2], row[4], row[5]) for row in columns] == [("url", "text", 1), ("visits", "int8", 2)]
        assert connection.execute(q.TABLEAU_KEYS).fetchall() == []
        cursor = connection.execute(q.TABLEAU_CHART)
        while cursor.nextset():
            pass
        assert sorted(cursor.fetchall()) == [("./home", 30), ("./shop", 20)]
        assert connection.execute('fetch 2048 in "SQL_CUR0x5581"').fetchall() == []
        connection.execute('close "SQL_CUR0x5581"')
        connection.execute("COMMIT")
        times = connection.execute(q.TABLEAU_TIME).fetchall()
        assert times == [(dt.datetime(2024, 1, 1), 12.3, None), (None, None, None)]
        with pytest.raises(psycopg.errors.FeatureNotSupported):  # from it Tableau learns to do without
            connection.execute(
                'CREATE LOCAL TEMPORARY TABLE "#Tableau_1_Connect" ("COL" INTEGER) ON COMMIT PRESERVE ROWS'
            )
