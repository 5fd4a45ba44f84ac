"""Entities of a PostgreSQL store, against a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from mvserver.errors import SqlError
from spark_sinks.postgresql.client import PostgresClient
from spark_sinks.postgresql.options import PostgresOptions
from tests.services.postgres import LogicalPostgres

pytestmark = pytest.mark.postgres


def options_of(server: LogicalPostgres, **more: str) -> PostgresOptions:
    return PostgresOptions.from_properties({"uris": server.uris, "postgres.username": "postgres", **more})


@pytest.fixture(scope="module")
def client(logical_postgres: LogicalPostgres) -> PostgresClient:
    return PostgresClient("pg", options_of(logical_postgres), timeout_s=5.0)


@pytest.fixture(scope="module", autouse=True)
def tables(logical_postgres: LogicalPostgres) -> Iterator[None]:
    with logical_postgres.connect() as connection:
        connection.execute("""
            CREATE SCHEMA shop;
            CREATE DOMAIN shop.amount AS numeric(9, 2);
            CREATE TYPE shop.mood AS ENUM ('sad', 'ok');
            CREATE TABLE shop.orders (id bigint PRIMARY KEY, total shop.amount,
              twice numeric GENERATED ALWAYS AS (total * 2) STORED,
              note text, at timestamptz, raw bytea, ok boolean, mood shop.mood, tags text[], n numeric);
            INSERT INTO shop.orders VALUES
              (1, 9.50, DEFAULT, 'a "note"', '2024-05-17 12:00:00+02', '\\x00ff', true, 'ok', '{x,y}', 'NaN');
            INSERT INTO shop.orders VALUES (2);
            CREATE TABLE shop.loose (a int);
            CREATE TABLE shop.parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
            CREATE TABLE shop.parts_1 PARTITION OF shop.parts FOR VALUES FROM (0) TO (100);
            CREATE TABLE clicks (id int PRIMARY KEY, url varchar(10));
        """)
        yield
        connection.execute("DROP SCHEMA shop CASCADE; DROP TABLE clicks")


def test_a_server_that_does_not_log_changes_is_refused(client: PostgresClient) -> None:
    client.check()


def test_tables_are_listed_and_partitions_are_not(client: PostgresClient) -> None:
    assert [e.name for e in client.list_entities()] == ["public.clicks", "shop.loose", "shop.orders", "shop.parts"]


def test_a_table_is_described(client: PostgresClient) -> None:
    details = dict(client.describe_entity("shop.orders").details)
    assert (details["key"], details["replica identity"]) == ("id", "primary key")
    assert details["column at"] == "timestamp with time zone"
    assert client.entity_exists("clicks")
    assert not client.entity_exists("shop.parts_1")
    with pytest.raises(SqlError, match="does not exist in store") as caught:
        client.describe_entity("shop.none")
    assert caught.value.sqlstate == "42704"


def test_rows_are_printed(client: PostgresClient) -> None:
    first, second = client.print_entity("shop.orders", from_beginning=True, limit=2, stopped=lambda: False)
    assert (first.key, first.position) == (b'{"id":1}', "row:0")
    assert first.value == (
        b'{"id":1,"total":9.50,"note":"a \\"note\\"","at":"2024-05-17 10:00:00+00","raw":"AP8=","ok":true,"mood":"ok",'
        b'"tags":"{x,y}","n":"NaN"}'
    )
    assert b'"total":null' in (second.value or b"")


def test_changes_are_printed_and_leave_nothing_behind(
    client: PostgresClient, logical_postgres: LogicalPostgres
) -> None:
    got: list[bytes] = []

    def read() -> None:
        records = client.print_entity("clicks", from_beginning=False, limit=2, stopped=lambda: False)
        got.extend(record.value or b"" for record in records)

    thread = threading.Thread(target=read)
    thread.start()
    with logical_postgres.connect() as connection:
        n = 0
        while thread.is_alive():
            n += 1
            connection.execute("INSERT INTO clicks VALUES (%s, 'x')", (n,))
            thread.join(0.05)
        assert got[0].startswith(b'{"op":"c","before":null,"after":{"id":')
        names = "SELECT slot_name FROM pg_replication_slots UNION SELECT pubname FROM pg_publication"
        assert connection.execute(names).fetchall() == []


def test_columns_are_those_of_the_table(client: PostgresClient) -> None:
    found = [(c.name, c.type, c.key) for c in client.columns("shop.orders", changelog=True)]
    assert found == [
        ("id", "BIGINT", True), ("total", "DECIMAL(9, 2)", False), ("note", "VARCHAR", False),
        ("at", "TIMESTAMP_LTZ", False), ("raw", "VARBINARY", False), ("ok", "BOOLEAN", False),
        ("mood", "VARCHAR", False), ("tags", "VARCHAR", False), ("n", "VARCHAR", False),
    ]  # fmt: skip
    assert [c.name for c in client.columns("shop.parts", changelog=False)] == [
        "op",
        "before",
        "after",
        "source",
        "ts_ms",
    ]


@pytest.mark.parametrize(
    ("fields", "key", "sqlstate", "message"),
    [
        ({"id": (), "nothing": ()}, ("id",), "42703", 'entity "shop.orders" has no column "nothing"'),
        ({"id": (), "twice": ()}, ("id",), "0A000",
         'column "twice" of entity "shop.orders" is generated, and its changes are not sent'),
        ({"id": (), "note": ()}, ("note",), "42P16", 'the primary key differs from that of entity "shop.orders"'),
        ({"after": ("id", "gone")}, None, "42703", 'entity "shop.orders" has no column "gone"'),
    ],
)  # fmt: skip
def test_what_a_table_does_not_have_cannot_be_declared(
    client: PostgresClient, fields: dict[str, tuple[str, ...]], key: tuple[str, ...] | None, sqlstate: str, message: str
) -> None:
    with pytest.raises(SqlError) as caught:
        client.check_declared("shop.orders", fields, key)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


def test_a_table_without_identity_is_refused_and_stays_usable(
    client: PostgresClient, logical_postgres: LogicalPostgres
) -> None:
    for changelog in (False, True):
        with pytest.raises(SqlError, match="has no replica identity") as caught:
            client.columns("shop.loose", changelog=changelog)
        assert caught.value.sqlstate == "55000"
    with logical_postgres.connect() as connection:
        connection.execute("INSERT INTO shop.loose VALUES (1); UPDATE shop.loose SET a = 2")


def test_one_is_warned_of_what_the_log_does_not_have(client: PostgresClient) -> None:
    large, before = client.check_declared("shop.orders", {"op": ()}, None)
    assert "large values of note, raw, tags " in large
    assert '"before" has the columns (id) alone' in before
    assert client.check_declared("clicks", {"id": ()}, ("id",)) == []


def test_what_does_not_answer_is_said(logical_postgres: LogicalPostgres) -> None:
    with pytest.raises(SqlError, match='could not connect to store "pg"') as caught:
        PostgresClient("pg", options_of(logical_postgres, uris="127.0.0.1:1/postgres"), timeout_s=2.0).check()
    assert caught.value.sqlstate == "08006"
    with pytest.raises(SqlError) as caught:
        PostgresClient(
            "pg", options_of(logical_postgres, uris=f"127.0.0.1:{logical_postgres.port}/none"), timeout_s=2.0
        ).check()
    assert caught.value.detail == 'database "none" does not exist.'


def test_a_user_who_may_not_replicate_is_told(logical_postgres: LogicalPostgres) -> None:
    with logical_postgres.connect() as connection:
        connection.execute("CREATE ROLE reader LOGIN")
    client = PostgresClient("pg", options_of(logical_postgres, **{"postgres.username": "reader"}), timeout_s=2.0)
    with pytest.raises(SqlError, match="may not read changes") as caught:
        client.check()
    assert caught.value.sqlstate == "42501"


def test_nothing_is_written(client: PostgresClient) -> None:
    for call in (
        lambda: client.insert_record("clicks", "{}", None, {}),
        lambda: client.create_entity("new", {}),
        lambda: client.drop_entity("clicks", {}),
        lambda: client.write_records([]),
    ):
        with pytest.raises(SqlError) as caught:
            call()
        assert caught.value.sqlstate == "0A000"
        assert caught.value.hint is not None


def test_the_name_of_an_entity_may_be_hostile(client: PostgresClient, logical_postgres: LogicalPostgres) -> None:
    name = "a\"b'c;--"
    with logical_postgres.connect() as connection:
        connection.execute(psycopg.sql.SQL("CREATE TABLE {} (id int PRIMARY KEY)").format(psycopg.sql.Identifier(name)))
        connection.execute(psycopg.sql.SQL("INSERT INTO {} VALUES (5)").format(psycopg.sql.Identifier(name)))
        (only,) = client.print_entity(name, from_beginning=True, limit=1, stopped=lambda: False)
        assert only.value == b'{"id":5}'
        connection.execute(psycopg.sql.SQL("DROP TABLE {}").format(psycopg.sql.Identifier(name)))
