"""The rows that composed queries are asked over: all types, the ends of their ranges, NULLs, and ties."""

from __future__ import annotations

import psycopg

from tests.clients.live_server import LiveServer
from tests.corpus.world import Table, add_tables, add_views, table

_COLUMNS = (
    "id int; i2 smallint; i4 int; i8 bigint; n2 numeric(10,2); n6 numeric(20,6); n38 numeric(38,4); f4 float4; "
    "f8 float8; s text; b bool; d date; c time; ts timestamp; tz timestamptz; y bytea; ai int[]; ta text[]; j text; "
    "u text; e text"
)
_LONG_AGO = "DATE '0001-01-01' - INTERVAL '44 years'"

TABLES: tuple[Table, ...] = (
    table("facts", "id", _COLUMNS,
        "1 | 1 | 10 | 100 | 1.50 | 0.000001 | 1.2500 | 1.5 | 0.1 | 'Tea' | true | '2024-02-29' | '00:00:00' | "
        "'2024-02-29 23:59:59.999999' | '2024-03-31 00:30:00+00' | '\\x01ff' | ARRAY[1, 2, 3] | ARRAY['x', 'y'] | "
        '\'{"a": 1, "b": [1, 2], "c": {"d": "x"}}\' | \'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\' | \'sad\'',
        "2 | -7 | -10 | 9007199254740993 | -1.50 | -0.5 | -99999999999999999999.9999 | -0.25 | -2.5 | 'tea' | false | "
        "'2023-12-31' | '12:34:56.789' | '2023-12-31 00:00:00' | '2024-10-27 00:30:00+00' | '\\x' | ARRAY[3] | "
        "ARRAY['a b', NULL] | '[1, \"p\", null]' | 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11' | 'happy'",
        "3 | 300 | 1000000 | 9007199254740992 | 99999999.99 | 12345678901234.567891 | "
        "99999999999999999999.9999 | 3.4e37 | 1e300 | 'été_1' | true | '1999-01-04' | '23:59:59.999999' "
        "| '1999-01-04 13:05:09.5' | '1999-12-31 23:59:59.5+00' | '\\xdeadbeef' | ARRAY[3, NULL, 1] | "
        "ARRAY['NULL', '', 'q\"r'] | '{\"a\": null, \"n\": 2.5}' | '00000000-0000-0000-0000-000000000000' | 'ok'",
        "4 | -300 | -1000000 | -9007199254740993 | 0.00 | 0 | 0 | 'NaN' | 'NaN' | '' | NULL | 'infinity' | "
        "'06:00:00' | 'infinity' | 'infinity' | '\\x00' | ARRAY[]::INTEGER[] | ARRAY[]::VARCHAR[] | '{}' | NULL | NULL",
        "5 | 0 | 0 | 0 | 0.01 | 99.999999 | 0.0001 | 0 | 'Infinity' | '50%' | false | '-infinity' | '18:30:00' | "
        "'-infinity' | '-infinity' | NULL | ARRAY[1, 2, 3] | ARRAY['x'] | '\"text\"' | "
        "'ffffffff-ffff-ffff-ffff-ffffffffffff' | 'happy'",
        "6 | 1 | 10 | 7 | 2.50 | 2.5 | 2.5 | 2.5 | 2.5 | 'a''b\\c' | true | '2024-03-31' | '00:00:00.000001' | "
        "'2024-03-31 02:30:00' | '2024-07-04 09:15:30+00' | '\\x61' | ARRAY[2, 9] | ARRAY['y', 'x'] | 'true' | "
        "'11111111-2222-3333-4444-555555555555' | 'sad'",
        f"7 | 3 | 42 | -5 | -0.01 | -2.5 | -2.5 | 0.5 | 3.5 | ' x ' | false | {_LONG_AGO} | '12:00:00' | {_LONG_AGO} "
        "| '0800-12-25 00:00:00+00' | '\\xff' | ARRAY[-1] | ARRAY['Z', 'z'] | '[]' | NULL | 'ok'",
        "8" + " | NULL" * 20,
    ),
    table("things", "id",
        "id int; i4 int; i8 bigint; n2 numeric(10,2); f8 float8; s text; b bool; d date; ts timestamp; ai int[]; "
        "e text",
        "1 | 10 | 100 | 1.50 | 2.5 | 'tea' | true | '2024-02-29' | '2024-02-29 12:00:00' | ARRAY[1] | 'sad'",
        "2 | 10 | 7 | 19.99 | 0.1 | 'Tea' | NULL | '2024-01-31' | '2024-01-31 00:00:00' | NULL | 'ok'",
        "3 | NULL | NULL | NULL | NULL | NULL | false | NULL | NULL | ARRAY[2, 3] | NULL",
        "4 | 42 | 0 | 0.00 | -2.5 | 'z' | true | '2024-12-31' | '2024-12-31 23:59:59' | ARRAY[]::INTEGER[] | 'happy'",
        "6 | -10 | -5 | -1.50 | '-0' | 'été_1' | false | '2023-12-31' | '2023-12-31 00:00:00' | ARRAY[3, NULL] | 'sad'",
        "9 | 0 | 9007199254740993 | 100.00 | 1e-7 | '' | true | '2000-01-01' | '2000-01-01 00:00:00' | ARRAY[9] | 'ok'",
    ),
    table("notes", "id",
        "id int; i4 int; s text; n6 numeric(20,6); tz timestamptz; f4 float4; j text",
        "1 | 10 | 'Tea' | 1.5 | '2024-03-31 01:30:00+00' | 0.5 | '{\"a\": 2}'",
        "3 | 0 | NULL | 0.333333 | '2024-10-27 01:30:00+00' | 1.5 | '[2, 1]'",
        "5 | NULL | 'x_y%z' | NULL | NULL | NULL | NULL",
        "7 | 42 | 'B' | -0.5 | '2024-01-01 00:00:00+00' | -0.25 | '{\"a\": \"1\"}'",
        "8 | 10 | 'b' | 2.5 | '2024-07-04 09:15:30+00' | 0.1 | '7'",
    ),
)  # fmt: skip

KINDS = {
    "int": "i4", "smallint": "i2", "bigint": "i8", "float4": "f4", "float8": "f8", "text": "text", "bool": "bool",
    "date": "date", "time": "time", "timestamp": "ts", "timestamptz": "tz", "bytea": "bytea", "int[]": "ai",
    "text[]": "ta",
}  # fmt: skip
_IN_TEXT = {"j": "jsonb", "u": "uuid", "e": "mood"}
"""Columns whose texts are values of a type that views do not have."""
LABELS = ("sad", "ok", "happy")


def columns(each: Table) -> list[tuple[str, str, str]]:
    """By name how a column is written behind the name of its table, with ``{}`` for that, and its kind."""
    found = []
    for name, kind in each.columns:
        if name in _IN_TEXT:
            found.append((name, "{}::" + _IN_TEXT[name], _IN_TEXT[name]))
        else:
            found.append((name, "{}", KINDS.get(kind, "num")))
    return found


def add_to_ours(server: LiveServer) -> None:
    add_views(server, TABLES)


def add_to_theirs(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute("SET TimeZone = 'UTC'")
    add_tables(connection, TABLES)


def add_types(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute(f"CREATE TYPE mood AS ENUM {LABELS}".encode())
