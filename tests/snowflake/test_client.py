"""Tables of an account: listed, described, printed, made, compared, dropped; and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from mvserver.errors import SqlError
from spark_sinks.base import TableShape
from spark_sinks.snowflake.columns import check_columns, described
from spark_sinks.snowflake.options import SnowflakeOptions
from tests.services.snowflake import SnowflakeEmulator
from tests.snowflake.places import Account, keys_of, table_of

pytestmark = pytest.mark.snowflake

SHAPE = TableShape(pa.schema([pa.field("k", pa.int32(), False), ("v", pa.string())]), ("k",))


def refused(account: Account, name: str, shape: TableShape) -> SqlError:
    with pytest.raises(SqlError) as caught:
        account.client.check_table(name, shape, {})
    return caught.value


def test_a_table_is_made_described_printed_and_dropped(account: Account) -> None:
    client, name = account.client, account.name("t")
    client.check()
    assert not client.check_table(name, SHAPE, {})
    client.create_table(name, SHAPE, {})
    assert client.check_table(name, SHAPE, {})
    sink = account.sink(name, SHAPE)
    sink.committed_position()
    sink.write(table_of(SHAPE, [{"k": 1, "v": "a"}, {"k": 2, "v": None}]), keys_of(SHAPE), {"seq": 1})
    details = dict(client.describe_entity(name).details)
    assert (details["kind"], details["rows"], details["query q"]) == ("TABLE", "2", '{"seq": 1}')
    assert (details["column K"], details["column V"]) == ("NUMBER(10,0) NOT NULL", "VARCHAR(16777216)")
    (record,) = client.print_entity(name, from_beginning=True, limit=1, stopped=lambda: False)
    assert record.position == "row:0"
    assert json.loads(record.value or b"") in ({"K": 1, "V": "a"}, {"K": 2, "V": None})
    assert len(list(client.print_entity(name, from_beginning=False, limit=None, stopped=lambda: False))) == 2
    assert not list(client.print_entity(name, from_beginning=True, limit=None, stopped=lambda: True))
    assert [entity.name for entity in client.list_entities()] == [name]  # not the table of positions
    client.drop_entity(name, {})
    assert not client.entity_exists(name)
    assert account.run("SHOW TABLES IN DATABASE {db}") == []


def test_a_row_that_is_shown_can_be_inserted(account: Account) -> None:
    """Bytes, numbers and what is nested as INSERT INTO ENTITY takes them."""
    shape = TableShape(
        pa.schema(
            [("k", pa.int32()), ("d", pa.decimal128(10, 2)), ("y", pa.binary()),
             ("m", pa.map_(pa.string(), pa.int32())), ("a", pa.list_(pa.float64())), ("at", pa.timestamp("us", "UTC"))]
        )
    )  # fmt: skip
    client, name = account.client, account.name("t")
    client.create_table(name, shape, {})
    given = (
        '{"K": 1, "D": 12.50, "Y": "/wA=", "M": {"p": 2}, "A": [1.5, null], "AT": "2024-05-17 01:02:03.000004+00:00"}'
    )

    def shown() -> list[str]:
        records = client.print_entity(name, from_beginning=True, limit=9, stopped=lambda: False)
        return [(record.value or b"").decode() for record in records]

    client.insert_record(name, given, None, {})
    assert shown() == [given]
    client.insert_record(name, shown()[0], None, {})
    assert shown() == [given, given]


def test_tables_are_listed_by_database_and_schema(snowflake: SnowflakeEmulator, account: Account) -> None:
    account.run('CREATE SCHEMA {db}."web"')
    for name in ("PUBLIC.B", "PUBLIC.A", '"web"."Clicks"', '"web"."a.b"'):
        account.run(f"CREATE TABLE {{db}}.{name} (K INT)")

    def listed(**more: str) -> list[str]:
        properties = {**snowflake.properties(), **more}
        client = type(account.client)("snow", SnowflakeOptions.from_properties(properties, []), timeout_s=5)
        return [entity.name for entity in client.list_entities()]

    db = account.database
    every = [f'{db}."web"."Clicks"', f'{db}."web"."a.b"', f"{db}.PUBLIC.A", f"{db}.PUBLIC.B"]
    assert listed(**{"snowflake.db.name": db}) == every
    assert [name for name in listed() if name.startswith(db)] == every
    assert listed(**{"snowflake.db.name": db, "snowflake.schema.name": '"web"'}) == every[:2]
    for name in every:
        assert account.client.entity_exists(name)


@pytest.mark.parametrize("name", ["{db}.PUBLIC.NOPE", "{db}.NOPE.T", "NOPE.PUBLIC.T", "t", "{db}.public.t", "a.b.c.d"])
def test_what_is_not_there_is_named(account: Account, name: str) -> None:
    account.client.create_table(account.name("t"), SHAPE, {})
    name = name.replace("{db}", account.database)
    assert not account.client.entity_exists(name)
    for attempt in (
        lambda: account.client.describe_entity(name),
        lambda: account.client.drop_entity(name, {}),
        lambda: list(account.client.print_entity(name, from_beginning=True, limit=1, stopped=lambda: False)),
        lambda: account.sink(name, SHAPE),
    ):
        with pytest.raises(SqlError) as caught:
            attempt()
        assert (caught.value.sqlstate, caught.value.message) == (
            "42704", f'entity "{name}" does not exist in store "snow"',
        )  # fmt: skip


def test_a_database_that_is_not_there(account: Account) -> None:
    with pytest.raises(SqlError) as caught:
        account.client.create_table("NOPE.PUBLIC.T", SHAPE, {})
    assert caught.value.sqlstate == "42704"


def test_names_are_kept_as_they_are(account: Account) -> None:
    shape = TableShape(
        pa.schema([("n", pa.int64()), ("Mixed", pa.string()), ('a "b"', pa.string()), ("select", pa.int64())])
    )
    name = f'{account.database}.PUBLIC."Odd ""name"""'
    account.client.create_table(name, shape, {})
    sink = account.sink(name, shape)
    sink.committed_position()
    sink.write(table_of(shape, [{"n": 1, "Mixed": "x", 'a "b"': "y", "select": 2}]), keys_of(shape), {"seq": 1})
    assert account.run(f'SELECT N, "Mixed", "a ""b""", "SELECT" FROM {name}') == [(1, "x", "y", 2)]
    twice = TableShape(pa.schema([("n", pa.int64()), ("N", pa.string())]))
    error = refused(account, account.name("other"), twice)
    assert (error.sqlstate, error.message) == (
        "0A000", 'two columns have the name "N", to which names fold in Snowflake',
    )  # fmt: skip


def test_a_table_that_is_there_is_compared_column_by_column(account: Account) -> None:
    name = account.name("t")
    account.run("CREATE TABLE {db}.PUBLIC.T (K NUMBER(19,0) NOT NULL, V VARCHAR, MADE INT DEFAULT 7)")
    assert account.client.check_table(name, SHAPE, {})
    sink = account.sink(name, SHAPE)
    sink.committed_position()
    sink.write(table_of(SHAPE, [{"k": 1, "v": "a"}]), keys_of(SHAPE), {"seq": 1})
    assert account.rows(name, "K, V") == [(1, "a")]
    assert refused(account, name, TableShape(pa.schema([("k", pa.string())]))).message == (
        f'column "K" of entity "{name}" is of type NUMBER(19,0), but the query\'s is of type VARCHAR'
    )
    missing = refused(account, name, TableShape(pa.schema([("z", pa.string())])))
    assert (missing.sqlstate, missing.detail) == ("42703", "Its columns are K, V, MADE.")
    assert refused(account, name, TableShape(pa.schema([("k", pa.int64()), ("v", pa.string())]))).message == (
        f'column "K" of entity "{name}" takes no NULL, but the query\'s may be one'
    )
    assert refused(account, name, TableShape(pa.schema([("v", pa.string())]))).message == (
        f'column "K" of entity "{name}" takes no NULL, and the query has no such column'
    )


ROOM: list[tuple[pa.DataType, list[str], list[str]]] = [
    (
        pa.int16(),
        ["NUMBER(5,0)", "NUMBER(38,0)", "NUMBER(10,3)"],
        ["NUMBER(4,0)", "NUMBER(5,1)", "FLOAT", "VARCHAR(5)"],
    ),
    (pa.decimal128(10, 2), ["NUMBER(10,2)", "NUMBER(38,10)"], ["NUMBER(10,1)", "NUMBER(10,3)", "FLOAT"]),
    (pa.float32(), ["FLOAT"], ["NUMBER(38,10)", "VARCHAR(16777216)"]),
    (pa.string(), ["VARCHAR(16777216)", "VARCHAR(134217728)", "TEXT"], ["VARCHAR(255)", "VARIANT", "BINARY(8388608)"]),
    (pa.binary(), ["BINARY(8388608)"], ["BINARY(10)", "VARCHAR(16777216)"]),
    (pa.bool_(), ["BOOLEAN"], ["NUMBER(1,0)"]),
    (pa.date32(), ["DATE"], ["TIMESTAMP_NTZ(9)"]),
    (pa.time64("us"), ["TIME(6)", "TIME(9)"], ["TIME(3)"]),
    (pa.timestamp("us"), ["TIMESTAMP_NTZ(6)", "TIMESTAMP_NTZ(9)"], ["TIMESTAMP_NTZ(0)", "TIMESTAMP_LTZ(9)", "DATE"]),
    (pa.timestamp("us", "UTC"), ["TIMESTAMP_LTZ(9)", "TIMESTAMP_TZ(6)"], ["TIMESTAMP_NTZ(9)", "TIMESTAMP_TZ(3)"]),
    (pa.list_(pa.int64()), ["ARRAY", "VARIANT"], ["OBJECT", "VARCHAR(16777216)"]),
    (pa.map_(pa.string(), pa.int64()), ["OBJECT", "VARIANT"], ["ARRAY"]),
    (pa.struct([("x", pa.int64())]), ["OBJECT", "VARIANT"], ["ARRAY"]),
]


@pytest.mark.parametrize(("kind", "wide", "narrow"), ROOM, ids=[str(kind) for kind, _, _ in ROOM])
def test_a_column_takes_all_values_of_the_query_or_none(kind: pa.DataType, wide: list[str], narrow: list[str]) -> None:
    shape = TableShape(pa.schema([("v", kind)]))

    def takes(type_: str) -> bool:
        row = {"name": "V", "type": type_, "kind": "COLUMN", "null?": "Y", "default": None}
        try:
            check_columns(described([row]), shape, "D.S.T")
        except SqlError as error:
            if error.sqlstate != "42804":
                raise
            return False
        return True

    assert ([takes(each) for each in wide], [takes(each) for each in narrow]) == (
        [True] * len(wide), [False] * len(narrow),
    )  # fmt: skip


def test_a_row_is_inserted(account: Account) -> None:
    """Each value as it was given; a column that is left out has its default."""
    account.run(
        'CREATE TABLE {db}.PUBLIC.T (K INT NOT NULL, D NUMBER(38, 20), S VARCHAR, "s2" VARCHAR, F FLOAT, B BOOLEAN, '
        "DAY DATE, T TIME(6), SEEN TIMESTAMP_NTZ(6), RAW BINARY, J VARIANT, N INT DEFAULT 7)"
    )
    name, client = account.name("t"), account.client
    client.insert_record(
        name,
        '{"k": 1, "d": 0.10000000000000000001, "s": "it\'s \\"x\\"", "s2": "y", "f": 1.5, "b": false, '
        '"day": "2024-05-17", "t": "01:02:03.000004", "seen": "2024-05-17 01:02:03.000004", '
        '"raw": "/wA=", "j": {"a": [1, "x", null]}}',
        None,
        {},
    )
    client.insert_record(name, '{"K": 2}', None, {})
    found = account.rows(f"{account.database}.PUBLIC.T", 'K, D::VARCHAR, S, "s2", F, B, DAY::VARCHAR, N')
    assert found == [
        (1, "0.10000000000000000001", 'it\'s "x"', "y", 1.5, False, "2024-05-17", 7),
        (2, None, None, None, None, None, None, 7),
    ]
    more = account.rows(f"{account.database}.PUBLIC.T", "T::VARCHAR, SEEN::VARCHAR, HEX_ENCODE(RAW), J:a[1]::VARCHAR")
    assert more[0][2:] == ("FF00", "x")
    assert more[0][0].startswith("01:02:03.000004")
    assert more[0][1].startswith("2024-05-17 01:02:03.000004")
    for value, sqlstate in (
        ('{"k": 1.5}', "22P02"),
        ('{"k": null}', "23502"),
        ('{"s": "x"}', "23502"),
        ('{"k": 1, "none": 2}', "42703"),
        ('{"k": 1, "d": 0.123456789012345678901}', "22P02"),
        ("[1]", "22P02"),
    ):
        with pytest.raises(SqlError) as error:
            client.insert_record(name, value, None, {})
        assert error.value.sqlstate == sqlstate, value
    assert account.rows(f"{account.database}.PUBLIC.T", "COUNT(*)") == [(2,)]


def test_what_such_a_store_does_not_do(account: Account) -> None:
    attempts: list[Callable[[], Any]] = [
        lambda: account.client.create_entity("A.B.C", {}),
        lambda: account.client.write_records([]),
        lambda: account.client.position("A.B.C", "earliest"),
    ]
    for attempt in attempts:
        with pytest.raises(SqlError, match="0A000"):
            attempt()
