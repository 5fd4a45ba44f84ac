"""The rows over which pull queries are compared with a real PostgreSQL: one view here, one table there."""

from __future__ import annotations

import psycopg

from catalog.model import Column
from tests.clients.live_server import LiveServer

COLUMNS = (
    Column("id", "INTEGER"), Column("name", "VARCHAR"), Column("amount", "DECIMAL(12, 2)"), Column("ratio", "DOUBLE"),
    Column("small", "SMALLINT"), Column("big", "BIGINT"), Column("day", "DATE"), Column("moment", "TIMESTAMP"),
    Column("instant", "TIMESTAMP_LTZ"), Column("flag", "BOOLEAN"), Column("doc", "VARCHAR"),
    Column("tags", "ARRAY<VARCHAR>"), Column("marks", "ARRAY<INTEGER>"),
)  # fmt: skip

ROWS = (
    ("1", "'Tea'", "4.50", "1.5", "3", "9007199254740993", "'2024-02-29'", "'2024-02-29 23:59:59.123456'",
     "'2024-03-31 00:30:00+00'", "true", """'{"a": 1, "b": {"c": "x", "d": [1, 2]}, "e": null}'""",
     "ARRAY['x', 'y']", "ARRAY[1, 2, 3]"),
    ("2", "'mug_b'", "-12.00", "-0.25", "-7", "-5", "'2023-12-31'", "'2023-12-31 00:00:00'",
     "'2024-10-27 00:30:00+00'", "false", """'{"a": "1", "list": ["p", "q", 3], "key with.dot": true}'""",
     "ARRAY['a b', 'NULL', NULL]", "ARRAY[5]"),
    ("3", "'été'", "1234567.89", "1e20", "0", "0", "'1999-01-04'", "'1999-01-04 13:05:09.5'",
     "'1999-01-04 13:05:09+00'", "true", "'[1, \"p\", null]'", "ARRAY['x']", "ARRAY[2, 9]"),
    ("4", "'50%'", "0.00", "2.5", "15", "42", "'2026-11-21'", "'2026-11-21 12:00:00'",
     "'2026-11-21 12:00:00+00'", "NULL", """'{"a": 1.0}'""", "ARRAY[]::text[]", "ARRAY[]::integer[]"),
    ("5", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL"),
)  # fmt: skip

_POSTGRES = ("int", "text", "numeric(12,2)", "float8", "int2", "int8", "date", "timestamp", "timestamptz", "bool",
             "text", "text[]", "int[]")  # fmt: skip
_DUCK = ("INTEGER", "VARCHAR", "DECIMAL(12, 2)", "DOUBLE", "SMALLINT", "BIGINT", "DATE", "TIMESTAMP", "TIMESTAMPTZ",
         "BOOLEAN", "VARCHAR", "VARCHAR[]", "INTEGER[]")  # fmt: skip


def add_view(server: LiveServer) -> None:
    selects = [
        "SELECT "
        + ", ".join(
            f"CAST({value.replace('ARRAY[]::text[]', '[]').replace('ARRAY[]::integer[]', '[]')} AS {kind}) "
            f'AS "{column.name}"'
            for value, kind, column in zip(row, _DUCK, COLUMNS, strict=True)
        )
        for row in ROWS
    ]
    server.add_view("shop", COLUMNS, ("id",), " UNION ALL ".join(selects))


def add_table(connection: psycopg.Connection[tuple[object, ...]], *, temporary: bool = True) -> None:
    """A temporary one where the database is shared with other tests."""
    columns = ", ".join(f'"{column.name}" {kind}' for column, kind in zip(COLUMNS, _POSTGRES, strict=True))
    connection.execute(f"CREATE {'TEMPORARY ' if temporary else ''}TABLE shop ({columns})")
    for row in ROWS:
        connection.execute(f"INSERT INTO shop VALUES ({', '.join(row)})")
