"""The same bytes to our whole server and to a real PostgreSQL: the answers, message by message and field by field.

Left out of the comparison is what is each server's own: reported parameters, an error's file, line and routine, the
oids of relations. Everything else is compared as bytes: descriptions, rows, tags, states, messages, positions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.wire.client import (
    FLUSH,
    SYNC,
    TERMINATE,
    RawClient,
    bind,
    close,
    describe,
    error_fields,
    execute,
    message,
    parse,
    query,
    split,
)
from tests.wire.test_postgres import SocketClient

pytestmark = pytest.mark.postgres

Heard = list[tuple[str, Any]]
SERIES = "SELECT g::int4 AS g, g || 'x' AS t FROM generate_series(1, 10) g"
FAILS = "SELECT 1 / (g::int4 - 1) FROM generate_series(1, 1) g"  # when it runs, not when it is planned
TYPED = (
    "SELECT 1::int2 AS a, 2::int4 AS b, 3::int8 AS c, 1.5::float4 AS d, 0.1::float8 AS e, 12.30::numeric(12, 2) AS f, "
    "true AS g, 'x'::text AS h, '2024-02-29'::date AS j, '23:59:59.5'::time AS k, "
    "'2024-01-02 03:04:05.6'::timestamp AS l, '2024-01-02 03:04:05+00'::timestamptz AS m, "
    "'1 mon 2 days 03:04:05'::interval AS n, '\\x00ff'::bytea AS o, "
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS p, NULL::int4 AS q, ARRAY[1, 2]::int4[] AS r, "
    "ARRAY['a', NULL]::text[] AS s"
)


def both(*messages: bytes) -> list[bytes]:
    return list(messages)


TRANSCRIPTS: dict[str, list[bytes]] = {
    # simple queries
    "rows": both(query(SERIES)),
    "types as text": both(query(TYPED)),
    "several statements": both(query("SELECT 1; SELECT 'a' AS x, 2; SELECT 3 WHERE false")),
    "error in the middle": both(query("SELECT 1; SELECT 1/0; SELECT 2"), query("SELECT 3")),
    "syntax error anywhere": both(query("SELECT 1; SELEC 2")),
    "empty": both(query(""), query(";"), query(" ; ; "), query("-- nothing"), query("/* nothing */;")),
    "implicit transaction": both(query("SELECT 1; BEGIN; SELECT 2"), query("SELECT 3"), query("COMMIT; SELECT 4")),
    "implicit transaction fails": both(query("BEGIN; SELECT 1/0; SELECT 2"), query("SELECT 3"), query("ROLLBACK")),
    "rollback of what is none": both(query("SELECT 1; ROLLBACK; SELECT 2"), query("COMMIT"),
                                     query("BEGIN; BEGIN; COMMIT")),
    "commit of a failed block": both(query("BEGIN"), query("SELECT nope"), query("SELECT 1"), query("COMMIT")),
    "savepoints": both(
        query("BEGIN; SAVEPOINT s"), query("SELECT 1/0"), query("ROLLBACK TO s"), query("SELECT 1"),
        query("RELEASE s"), query("ROLLBACK TO s"), query("ROLLBACK"),
    ),
    "savepoint outside": both(query("SAVEPOINT s"), query("RELEASE s"), query("ROLLBACK TO s")),
    "settings": both(
        query("SET extra_float_digits = 3; SHOW extra_float_digits; RESET extra_float_digits"),
        query("SET nonsense = 1"), query("SET TimeZone = 'nowhere'"), query("SHOW nonsense"),
        query("BEGIN; SET LOCAL statement_timeout = '5s'; SHOW statement_timeout; ROLLBACK; SHOW statement_timeout"),
    ),
    "names that are not there": both(
        query("SELECT * FROM nope"), query("SELECT nope FROM generate_series(1, 2)"), query("SELECT nope(1)"),
        query("SELECT 1::nope"), query('SELECT 1 FROM "No ""such"" one"'),
    ),
    "data errors": both(
        query("SELECT 'x'::int4"), query("SELECT 99999999999::int4"), query("SELECT '2024-13-01'::date"),
        query("SELECT 1.5::numeric / 0"), query("SELECT 'x'::bool"), query("SELECT 32767::int2 + 1::int2"),
    ),
    "values": both(query("VALUES (1, 'a'), (2, NULL)"), query("SELECT 'it''s', E'a\\nb', U&'\\00e9'")),
    # extended queries
    "rows, extended": both(parse(SERIES), bind(), describe("P"), execute(), SYNC),
    "types as binary": both(parse(TYPED), bind(results=[1]), describe("P"), execute(), SYNC),
    "types mixed": both(parse("SELECT 1, 'a', 2.5"), bind(results=[1, 0, 1]), describe("P"), execute(), SYNC),
    "described, not run": both(parse("SELECT 1 / (g::int4 - 1) AS x FROM generate_series(1, 1) g"), describe("S"),
                               bind(), describe("P"), SYNC),
    "parameter types are inferred": both(
        parse("SELECT $1::int4 + 1 AS a, $2::text AS b, $3::numeric AS c, $4::timestamptz AS d"), describe("S"), SYNC
    ),
    "an untyped parameter is text": both(parse("SELECT $1"), describe("S"), bind([b"x"]), execute(), SYNC),
    "declared types": both(parse("SELECT $1 AS a, $2 AS b", oids=[20, 1082]), describe("S"),
                           bind([b"5", b"2024-02-29"]), describe("P"), execute(), SYNC),
    "binary parameters": both(
        parse("SELECT $1::int8 AS a, $2::bool AS b, $3::float8 AS c, $4::text AS d"),
        bind([struct.pack("!q", -7), b"\1", struct.pack("!d", 2.5), "é".encode()], formats=[1], results=[1]),
        execute(), SYNC,
    ),
    "null parameters": both(parse("SELECT $1::int4 AS a, $2::text AS b"), bind([None, None]), execute(), SYNC),
    "rows in parts": both(parse(SERIES), bind(), execute(3), execute(7), execute(5), SYNC),
    "parts over syncs": both(
        query("BEGIN"), parse(SERIES), bind(portal="p"), execute(4, "p"), SYNC, execute(4, "p"), SYNC, execute(4, "p"),
        close("P", "p"), SYNC, query("COMMIT"),
    ),
    "a portal ends with its transaction": both(parse(SERIES), bind(portal="p"), execute(2, "p"), SYNC,
                                               execute(2, "p"), SYNC),
    "statement names": both(parse("SELECT 1", "s"), SYNC, parse("SELECT 2", "s"), SYNC, close("S", "s"),
                            parse("SELECT 3", "s"), bind(statement="s"), execute(), SYNC),
    "sql and protocol share names": both(
        query("PREPARE s (int) AS SELECT $1 + 1 AS n"), describe("S", "s"), bind([b"4"], statement="s"), execute(),
        SYNC,
        parse("SELECT 7", "t"), SYNC, query("EXECUTE t"), query("DEALLOCATE s"), bind(statement="s"), SYNC,
    ),
    "no data": both(parse("SET application_name TO y"), describe("S"), bind(), describe("P"), execute(), SYNC),
    "empty, extended": both(parse(""), describe("S"), bind(), describe("P"), execute(), SYNC),
    "two statements are too many": both(parse("SELECT 1; SELECT 2"), bind(), SYNC),
    "skip until sync": both(parse("SELECT nope"), bind(), execute(), close("S"), FLUSH, query("SELECT 1"), SYNC,
                            query("SELECT 2")),
    "pipeline": both(*[parse("SELECT $1::int4"), bind([b"1"]), execute()] * 3, SYNC),
    "pipeline with an error": both(
        parse("SELECT 1"), bind(), execute(), parse(FAILS), bind(), execute(), parse("SELECT 3"), bind(),
        execute(), SYNC, parse("SELECT 4"), bind(), execute(), SYNC,
    ),
    "flush": both(parse("SELECT 1"), FLUSH, bind(), FLUSH, execute(), FLUSH, SYNC),
    "wrong numbers of parameters": both(parse("SELECT $1::int4"), bind(), SYNC, bind([b"1", b"2"]), SYNC),
    "wrong formats": both(
        parse("SELECT $1::int4"), bind([b"1"], formats=[7]), SYNC, bind([b"1"], formats=[0, 0]), SYNC,
        bind([b"1"], results=[0, 0]), SYNC,
    ),
    "wrong values": both(
        parse("SELECT $1::int4"), bind([b"x"]), SYNC, bind([b"12345"], formats=[1]), SYNC, bind([b"\xff"]), SYNC,
    ),
    "bytes that are no text": both(message(b"Q", b"SELECT '\xff'\0"), message(b"Q", b"SELECT '\xc3'\0"),
                                   message(b"Q", b"SELECT '\xed\xa0\x80'\0")),
    "begin, extended": both(parse("BEGIN"), bind(), execute(), SYNC, parse(FAILS), bind(), execute(), SYNC,
                            parse("SELECT 1"), SYNC, parse("ROLLBACK"), bind(), execute(), SYNC),
    "cursors": both(
        query(f"BEGIN; DECLARE c SCROLL CURSOR FOR {SERIES}"), query("FETCH 2 FROM c"),
        query("FETCH BACKWARD 1 FROM c"),
        query("MOVE 3 IN c"), query("FETCH ABSOLUTE 9 FROM c"), query("CLOSE c"), query("FETCH c"), query("ROLLBACK"),
        query("DECLARE d CURSOR FOR SELECT 1"),
    ),
    "copy out": both(query(f"COPY ({SERIES}) TO STDOUT"), query("COPY (SELECT 1, NULL, 'a,b') TO STDOUT CSV HEADER"),
                     query("COPY (SELECT 1::int4, 'x'::text) TO STDOUT (FORMAT binary)")),
    "copy out, extended": both(parse("COPY (SELECT 1) TO STDOUT"), describe("S"), bind(), describe("P"), execute(),
                               SYNC),
    "left-over messages": both(message(b"d", b"x"), message(b"c"), message(b"f", b"x\0"), query("SELECT 1")),
}  # fmt: skip

# Fields of errors that differ, and why: without these the transcript is compared.
KNOWN: dict[str, str] = {
    "names that are not there": "H",  # DuckDB suggests a column where PostgreSQL finds none near enough
}


def answer(client: RawClient, messages: list[bytes], **login: str) -> Heard:
    with client:
        client.log_in(**login)
        client.send(*messages, TERMINATE)
        return [part for kind, body in split(client.rest()) if (part := comparable(kind, body)) is not None]


def comparable(kind: str, body: bytes) -> tuple[str, Any] | None:
    if kind == "S":
        return None
    if kind in "EN":
        fields = error_fields(body)
        return kind, {code: text for code, text in fields.items() if code not in "FLR"}
    return kind, body


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from tests.clients.live_server import LiveServer  # all rooms, which the other tests here do not need

    made = LiveServer(tmp_path_factory.mktemp("transcripts"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def theirs(postgres_server: Any) -> str:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("ALTER DATABASE postgres SET timezone TO 'UTC'")
    return str(postgres_server.dsn)


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_answers_are_postgresqls(ours: Any, theirs: str, name: str) -> None:
    login = {"user": "postgres", "database": "postgres"}
    expected = answer(SocketClient(theirs), TRANSCRIPTS[name], **login)
    found = answer(RawClient(ours.port), TRANSCRIPTS[name], **login)
    left_out = KNOWN.get(name, "")
    if left_out:
        for _, body in (*expected, *found):
            if isinstance(body, dict):
                for code in left_out:
                    body.pop(code, None)
    assert found == expected
