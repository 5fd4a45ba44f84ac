"""The rows of the corpus: the same tables in a real PostgreSQL and as views of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from catalog.model import Column
from tests.clients import dialect_rows
from tests.clients.live_server import LiveServer

_DUCK = {
    "int": "INTEGER", "bigint": "BIGINT", "smallint": "SMALLINT", "text": "VARCHAR", "bool": "BOOLEAN", "date": "DATE",
    "time": "TIME", "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ", "float4": "FLOAT", "float8": "DOUBLE",
    "bytea": "BLOB", "text[]": "VARCHAR[]", "int[]": "INTEGER[]", "numeric(10,2)": "DECIMAL(10, 2)",
    "numeric(20,6)": "DECIMAL(20, 6)", "numeric(12,4)": "DECIMAL(12, 4)", "numeric(38,4)": "DECIMAL(38, 4)",
}  # fmt: skip
_OURS = {
    "int": "INTEGER", "text": "VARCHAR", "bool": "BOOLEAN", "timestamptz": "TIMESTAMP_LTZ", "float4": "FLOAT",
    "float8": "DOUBLE", "bytea": "VARBINARY", "text[]": "ARRAY<VARCHAR>", "int[]": "ARRAY<INTEGER>",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Its columns as ``name type`` with PostgreSQL's types, and rows whose values both servers read alike."""

    name: str
    key: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]


def table(name: str, key: str, columns: str, *rows: str) -> Table:
    """Parts of the key are separated by blanks, columns by semicolons, values by bars."""
    parted = tuple((each.split()[0], each.split()[1]) for each in columns.split("; "))
    return Table(name, tuple(key.split()), parted, tuple(tuple(row.split(" | ")) for row in rows))


TABLES = (
    table("customers", "id",
        "id int; name text; email text; city text; joined date; score float8; vip bool; tags text[]; profile text",
        "1 | 'Ada Lovelace' | 'ada@example.com' | 'London' | '2020-02-29' | 9.5 | true | ARRAY['math', 'early'] | "
        '\'{"age": 36, "langs": ["en", "fr"], "address": {"zip": "W1", "geo": [51.5, -0.1]}}\'',
        "2 | 'Björk' | 'bjork@example.is' | 'Reykjavík' | '2021-12-31' | 7.25 | false | ARRAY['music'] | "
        '\'{"age": null, "langs": [], "vip": false}\'',
        "3 | 'Chen Wei' | NULL | 'Shanghai' | '2022-01-01' | -3 | true | ARRAY['a b', 'c,d', NULL] | "
        '\'{"age": 41.50, "langs": ["zh"], "nested": {"a": {"b": {"c": [1, 2, {"d": "deep"}]}}}}\'',
        "4 | 'd''Artagnan' | 'dart@example.fr' | 'Paris' | '1999-07-14' | 1e10 | NULL | ARRAY[]::VARCHAR[] | '{}'",
        "5 | '' | 'x_y%z@example.com' | 'London' | '2024-06-15' | 0.1 | false | NULL | NULL",
        "6 | NULL | NULL | NULL | NULL | NULL | NULL | NULL | '[1, \"two\", null, {\"three\": 3}]'",
    ),
    table("orders", "id",
        "id bigint; customer int; placed timestamp; shipped timestamptz; total numeric(10,2); status text; note text",
        "101 | 1 | '2024-01-01 00:00:00' | '2024-01-02 12:00:00+00' | 19.99 | 'shipped' | 'first'",
        "102 | 1 | '2024-01-31 23:59:59.999999' | '2024-02-02 00:00:00.5+00' | 100.00 | 'shipped' | NULL",
        "103 | 2 | '2024-02-29 12:30:15.25' | NULL | 0.01 | 'open' | 'gift; wrap'",
        "104 | 3 | '2024-03-31 01:30:00' | '2024-03-31 01:30:00+00' | -5.50 | 'returned' | ''",
        "105 | 3 | '2024-03-31 03:00:00' | '2024-10-27 00:30:00+00' | 12345.67 | 'shipped' | 'a''b'",
        "106 | NULL | '2023-12-31 18:00:00' | '2024-10-27 01:30:00+00' | 50.50 | 'open' | 'no customer'",
        "107 | 9 | '2024-07-04 09:15:30' | NULL | NULL | NULL | 'unknown customer'",
        "108 | 4 | '2024-07-04 09:15:30' | '2024-07-05 00:00:00+00' | 100.00 | 'open' | 'tie'",
    ),
    table("lines", "order_id line",
        "order_id bigint; line smallint; product int; quantity int; price numeric(12,4); discount float4",
        "101 | 1 | 1 | 1 | 19.9900 | 0", "102 | 1 | 2 | 3 | 25.0000 | 0.1", "102 | 2 | 1 | 2 | 12.5000 | 0.25",
        "103 | 1 | 3 | 1 | 0.0100 | NULL", "104 | 1 | 1 | -1 | 5.5000 | 0", "105 | 1 | 2 | 100 | 100.1234 | 0.5",
        "105 | 2 | 4 | 7 | 333.3333 | 0.333", "106 | 1 | 3 | 5 | 10.1000 | 0.05", "108 | 1 | 2 | 4 | 25.0000 | 1",
    ),
    table("products", "id",
        "id int; name text; category text; price numeric(10,2); weight float4; attributes text; sizes int[]; "
        "code bytea",
        '1 | \'Tea\' | \'food\' | 4.50 | 0.25 | \'{"color": "green", "organic": true, "n": 1}\' | ARRAY[1, 2, 3] | '
        "'\\x01ff'",
        "2 | 'Mug' | 'kitchen' | 12.00 | 1.5 | '{\"color\": \"blue\", \"n\": 2.50, \"parts\": [{\"id\": 1, \"q\": 2},"
        ' {"id": 2, "q": 5}]}\' | ARRAY[5] | \'\\x\'',
        "3 | 'Kettle' | 'kitchen' | 39.90 | 2.75 | '{\"color\": null, \"n\": \"3\"}' | ARRAY[]::INTEGER[] | '\\xdead'",
        "4 | 'tea strainer' | NULL | 3.00 | NULL | NULL | ARRAY[3, NULL, 1] | NULL",
    ),
    table("events", "id",
        "id bigint; kind text; at timestamptz; clock time; payload text; amount numeric(20,6); ratio float8",
        "1 | 'click' | '2024-03-31 00:59:59+00' | '00:00:00' | '{\"a\": 1, \"b\": [1, 2]}' | 1.234567 | 0.5",
        "2 | 'click' | '2024-03-31 01:00:00+00' | '12:34:56.789' | '{\"a\": 2, \"c\": null}' | 12345678901234.567891 | "
        "-1.5",
        "3 | 'view' | '2024-10-27 00:30:00+00' | '23:59:59.999999' | '[3, 1, 2]' | 0.000001 | 1e-7",
        "4 | 'view' | '2024-12-31 23:59:59.5+00' | '06:00:00' | '\"text\"' | -0.5 | 1e20",
        "5 | 'buy' | '1999-12-31 23:00:00+00' | '18:30:00' | '{\"a\": {\"a\": {\"a\": 3}}}' | 99.999999 | 3.14159",
        "6 | NULL | NULL | NULL | NULL | NULL | NULL",
    ),
)  # fmt: skip


def add_views(server: LiveServer, tables: Sequence[Table] = TABLES) -> None:
    dialect_rows.add_view(server)
    for each in tables:
        selects = [
            "SELECT "
            + ", ".join(
                f'CAST({value} AS {_DUCK[kind]}) AS "{name}"'
                if kind != "bytea" or value == "NULL"
                else f"from_hex('{value.strip(chr(39)).removeprefix(chr(92) + 'x')}') AS \"{name}\""
                for value, (name, kind) in zip(row, each.columns, strict=True)
            )
            for row in each.rows
        ]
        columns = tuple(Column(name, _OURS.get(kind, kind.upper())) for name, kind in each.columns)
        columns = tuple(Column(one.name, one.type.replace("NUMERIC", "DECIMAL")) for one in columns)
        server.add_view(each.name, columns, each.key, " UNION ALL ".join(selects))


def add_tables(connection: psycopg.Connection[tuple[object, ...]], tables: Sequence[Table] = TABLES) -> None:
    dialect_rows.add_table(connection, temporary=False)
    for each in tables:
        columns = ", ".join(f"{name} {kind}" for name, kind in each.columns)
        connection.execute(f"CREATE TABLE {each.name} ({columns})")
        for row in each.rows:
            values = [
                f"CAST({value.replace('VARCHAR[]', 'text[]')} AS {kind})"
                for value, (_, kind) in zip(row, each.columns, strict=True)
            ]
            connection.execute(f"INSERT INTO {each.name} VALUES ({', '.join(values)})")
