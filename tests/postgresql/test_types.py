"""Values of all sorts of types: rows that were there and changes have what the server itself says of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgresql.running import Source, running
from tests.services.postgres import LogicalPostgres

pytestmark = pytest.mark.postgres

# By column: its type, and values of it. None is tried with each.
VALUES: dict[str, tuple[str, list[str]]] = {
    "i2": ("smallint", ["-32768", "0", "32767"]),
    "i4": ("integer", ["-2147483648", "2147483647"]),
    "i8": ("bigint", ["-9223372036854775808", "9223372036854775807"]),
    "f4": ("real", ["0.1", "-0", "1e-45", "3.4028235e38", "NaN", "-Infinity"]),
    "f8": ("double precision", ["0.1", "-0", "5e-324", "1.7976931348623157e308", "NaN", "Infinity", "1e15", "1e16"]),
    "dec": ("numeric(9, 2)", ["-9999999.99", "0.00", "NaN"]),
    "num": ("numeric", ["1.50", "1e-30", "-123456789012345678901234567890.123", "NaN", "Infinity", "-Infinity"]),
    "wide": ("numeric(50, 10)", ["1234567890123456789012345678901234567890.0123456789"]),
    "cents": ("numeric(4, -2)", ["123400"]),
    "b": ("boolean", ["t", "f"]),
    "txt": ("text", ["", "plain", "NULL", 'a "b" \\ c', "\x01\x1f\t\n\r", "ä€𝄞\u2028", "{}", "\\x00"]),
    "vc": ("varchar(5)", ["äöü"]),
    "ch": ("char(4)", ["a", "ab  ", ""]),
    "one": ('"char"', ["x", ""]),
    "nm": ("name", ["a name"]),
    "raw": ("bytea", ["\\x", "\\x00ff5c22", "abc"]),
    "d": ("date", ["2024-02-29", "0001-01-01", "infinity", "-infinity", "0044-03-15 BC", "5874897-12-31"]),
    "t": ("time", ["00:00", "23:59:59.999999", "24:00"]),
    "tz": ("timetz", ["12:00+05:30"]),
    "ts": ("timestamp", ["2024-05-17 12:00:00.123456", "infinity", "-infinity", "0044-03-15 12:00 BC"]),
    "tstz": ("timestamptz", ["2024-05-17 12:00:00.1+02", "infinity", "-infinity", "1850-01-01 00:00 Europe/Berlin"]),
    "iv": ("interval", ["1 year 2 mons -3 days 04:05:06.7", "-1 hour", "infinity"]),
    "u": ("uuid", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    "j": ("json", ['{"b": 1, "a": [1, null, "x\\u00e4\\n"]}', "null", '"text"']),
    "jb": ("jsonb", ['{"b": 1, "a": [1.50, null, "x\\u00e4"]}', "null", "12345678901234567890.5"]),
    "jp": ("jsonpath", ["$.a[*]"]),
    "ints": ("integer[]", ["{1,NULL,3}", "{}", "[2:3]={1,2}", "{{1,2},{3,4}}"]),
    "texts": ("text[]", ['{"a b","c\\"d",NULL,"NULL",""}']),
    "stamps": ("timestamptz[]", ['{"2024-05-17 12:00+02",infinity}']),
    "raws": ("bytea[]", ['{"\\\\x00ff"}']),
    "floats": ("double precision[]", ["{0.1,NaN,1e300}"]),
    "days": ("date[]", ["{2024-01-31}"]),
    "r": ("int4range", ["[1,5)", "empty", "(,)"]),
    "dr": ("daterange", ["[2024-01-01,2024-12-31]"]),
    "tr": ("tstzrange", ["[2024-01-01 00:00+00,)"]),
    "mr": ("int4multirange", ["{[1,3),[5,8)}"]),
    "bits": ("bit(4)", ["1010"]),
    "vbits": ("bit varying", ["1", ""]),
    "cash": ("money", ["1234.50", "-1.00"]),
    "net": ("inet", ["10.0.0.1/8", "::1"]),
    "cid": ("cidr", ["10.0.0.0/8"]),
    "mac": ("macaddr", ["08:00:2b:01:02:03"]),
    "pt": ("point", ["(1.5,-2)"]),
    "bx": ("box", ["(1,1),(0,0)"]),
    "tsv": ("tsvector", ["'a':1 'b''c':2"]),
    "tsq": ("tsquery", ["'a' & 'b'"]),
    "lsn": ("pg_lsn", ["16/B374D848"]),
    "xid": ("xid8", ["18446744073709551615"]),
    "o": ("oid", ["4294967295"]),
    "cls": ("regclass", ["t", "pg_class"]),
    "typ": ("regtype", ["integer", "mood"]),
    "mood": ("mood", ["sad", 'o\'k "so"']),
    "moods": ("mood[]", ["{sad,sad}"]),
    "amount": ("amount", ["12.34"]),
    "code": ("code", ["ab"]),
    "codes": ("code[]", ["{ab,cd}"]),
    "deep": ("deep", ["5"]),
    "pair": ("pair", ['(1,"a ""b""")', "(,)"]),
    "kv": ("hstore", ['a=>1, b=>NULL, "c d"=>"e\\"f"']),
    "ci": ("citext", ["MiXed"]),
    "tree": ("ltree", ["a.b.c"]),
}
ADDED = """
    CREATE EXTENSION hstore; CREATE EXTENSION citext; CREATE EXTENSION ltree;
    CREATE TYPE mood AS ENUM ('sad', 'o''k "so"');
    CREATE DOMAIN amount AS numeric(9, 2) CHECK (VALUE >= 0);
    CREATE DOMAIN code AS text CHECK (length(VALUE) = 2);
    CREATE DOMAIN deep1 AS integer; CREATE DOMAIN deep AS deep1;
    CREATE TYPE pair AS (a int, b text);
"""
# As connections to stores have them, whatever the database has.
SETTINGS = "SET datestyle = ISO; SET timezone = 'UTC'; SET search_path = pg_catalog; SET bytea_output = hex"


@pytest.fixture
def source(own_postgres: LogicalPostgres) -> Iterator[Source]:
    with own_postgres.connect() as made:
        made.execute(ADDED)
        columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in VALUES.items())
        made.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns})")
        # A database whose users like to see values in other ways.
        made.execute(
            "ALTER DATABASE postgres SET datestyle = 'German'; ALTER DATABASE postgres SET timezone = 'Asia/Tokyo'; "
            "ALTER DATABASE postgres SET bytea_output = 'escape'; ALTER DATABASE postgres SET extra_float_digits = 0; "
            "ALTER DATABASE postgres SET intervalstyle = 'iso_8601'"
        )
        yield made
        made.execute("ALTER DATABASE postgres RESET ALL; DROP TABLE t; DROP EXTENSION hstore, citext, ltree")
        made.execute("DROP TYPE mood, pair; DROP DOMAIN amount, code, deep, deep1")


def rows() -> list[list[str | None]]:
    most = max(len(values) for _, values in VALUES.values())
    return [[values[at] if at < len(values) else None for _, values in VALUES.values()] for at in range(most)]


def insert(source: Source, first: int) -> None:
    places = ", ".join(["%s", *(f"%s::text::{kind}" for kind, _ in VALUES.values())])
    for number, row in enumerate(rows(), first):
        source.execute(f"INSERT INTO public.t VALUES ({places})", (number, *row))


def wanted(server: LogicalPostgres) -> dict[int, dict[str, str | None]]:
    """Each value by its type's output function, from another connection."""
    with server.connect() as connection:
        connection.execute(SETTINGS)
        connection.execute("SET intervalstyle = postgres; SET extra_float_digits = 3")
        shown = ", ".join(f'CASE WHEN num_nonnulls("{name}") = 1 THEN format(\'%s\', "{name}") END' for name in VALUES)
        found = connection.execute(f"SELECT id, {shown} FROM public.t").fetchall()
    return {int(row[0]): dict(zip(VALUES, row[1:], strict=True)) for row in found}


def shown(name: str, value: Any) -> str | None:
    """A value of a record as the server writes it."""
    if value is None:
        return None
    if name == "b":
        assert isinstance(value, bool)
        return "t" if value else "f"
    if name == "raw":
        return "\\x" + base64.b64decode(value).hex()
    assert isinstance(value, str), (name, value)
    return "-0" if name in ("f4", "f8") and value == "-0.0" else value  # JSON's integers have no such zero


def read(value: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(value, parse_int=str, parse_float=str, parse_constant=lambda word: 1 / 0)
    return found


def test_values_are_what_the_server_says(own_postgres: LogicalPostgres, source: Source, tmp_path: Path) -> None:
    insert(source, 0)
    with running(own_postgres, tmp_path, "t") as run:
        raw: list[bytes] = []
        run.take = lambda table: raw.extend(table["value"].to_pylist())  # type: ignore[method-assign]
        insert(source, 100)
        run.catch_up()
        records = {int(record.pop("id")): record for record in map(read, raw)}
    expected = wanted(own_postgres)
    assert sorted(records) == sorted(expected)
    assert len(expected) == 2 * len(rows())
    # A parser of JSON leaves out digits of numbers that are texts for it; the others are numbers, if they are any.
    plain = [json.loads(value) for value in raw]
    assert all(
        isinstance(row[name], str) for row in plain for name in ("num", "wide", "cents") if row[name] is not None
    )
    assert [type(row["amount"]) for row in plain if row["amount"] is not None] == [float, float]
    assert {type(row["dec"]) for row in plain if row["dec"] not in (None, "NaN")} == {float}
    for number, record in records.items():
        found = {name: shown(name, record[name]) for name in VALUES}
        assert found == expected[number], number
