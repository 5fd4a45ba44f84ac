"""Enum types answer as a real PostgreSQL's: values, order, errors, the catalog's rows, what drivers learn of them."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.types.enum import EnumInfo, register_enum

from tests.clients.live_server import LiveServer

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]

MAKING = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE TYPE \"Odd one\" AS ENUM ('b', '', 'it''s', 'a,b \"c\"')",
    "CREATE TYPE other AS ENUM ('sad', 'ok')",
    "ALTER TYPE mood ADD VALUE 'so-so' BEFORE 'ok'",
    "ALTER TYPE mood ADD VALUE IF NOT EXISTS 'ok'",
    "ALTER TYPE mood ADD VALUE 'glad' AFTER 'ok'",
    "ALTER TYPE mood ADD VALUE 'elated'",
    "ALTER TYPE mood ADD VALUE 'dead' BEFORE 'sad'",
    "ALTER TYPE mood RENAME VALUE 'elated' TO 'ecstatic'",
    "COMMENT ON TYPE mood IS 'how one feels'",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    server = LiveServer(tmp_path_factory.mktemp("enums"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def ours(server: LiveServer) -> Iterator[Connection]:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        for statement in MAKING:
            connection.execute(statement)
        yield connection


@pytest.fixture(scope="module")
def theirs(postgres_server: Any) -> Iterator[Connection]:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
        admin.execute("CREATE DATABASE enums")
    with psycopg.connect(postgres_server.database_dsn("enums"), autocommit=True) as connection:
        for statement in MAKING:
            connection.execute(statement)
        yield connection


def answer(connection: Connection, text: str, parameters: Any = None, *, binary: bool = False) -> Any:
    try:
        cursor = connection.execute(text, parameters, binary=binary)
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary
    result = cursor.pgresult
    assert result is not None
    names = [bytes(result.fname(column) or b"").decode() for column in range(result.nfields)]
    rows = [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]
    return names, [[None if cell is None else _without_oids(connection, bytes(cell)) for cell in row] for row in rows]


def _without_oids(connection: Connection, cell: bytes) -> bytes:
    """A binary array names the type of its elements by oid, which each server gives as its types are made."""
    for name in ("mood", '"Odd one"', "other"):
        (oid,) = connection.execute("SELECT %s::regtype::oid", [name]).fetchone() or (0,)
        cell = cell.replace(oid.to_bytes(4, "big"), f"<{name}>".encode())
    return cell


MOODS = "(VALUES ('ok'::mood, 1), ('happy', 2), ('dead', 3), (NULL, 4), ('ok', 5)) AS t (m, n)"
QUERIES = (
    "SELECT 'happy'::mood",
    "SELECT 'happy'::public.mood, CAST('' AS \"Odd one\"), 'a,b \"c\"'::\"Odd one\", 'it''s'::\"Odd one\"",
    "SELECT NULL::mood",
    f"SELECT m, n FROM {MOODS} ORDER BY m, n",
    f"SELECT m, n FROM {MOODS} ORDER BY m DESC NULLS LAST, n",
    f"SELECT min(m), max(m), count(DISTINCT m) FROM {MOODS}",
    f"SELECT m, count(*) FROM {MOODS} GROUP BY m ORDER BY m",
    f"SELECT n FROM {MOODS} WHERE m < 'ok' ORDER BY n",
    f"SELECT n FROM {MOODS} WHERE m >= 'ok' ORDER BY n",
    f"SELECT n FROM {MOODS} WHERE 'ok' < m ORDER BY n",
    f"SELECT n FROM {MOODS} WHERE m IN ('ok', 'dead') ORDER BY n",
    f"SELECT n FROM {MOODS} WHERE m BETWEEN 'sad' AND 'glad' ORDER BY n",
    f"SELECT n FROM {MOODS} WHERE m IS DISTINCT FROM 'ok' ORDER BY n",
    f"SELECT n FROM {MOODS} WHERE m = ANY('{{ok,happy}}'::mood[]) ORDER BY n",
    f"SELECT n FROM {MOODS} WHERE m = ANY(ARRAY['ok', 'happy']::mood[]) ORDER BY n",
    f"SELECT n, coalesce(m, 'sad'), nullif(m, 'ok') FROM {MOODS} ORDER BY n",
    f"SELECT n, CASE m WHEN 'ok' THEN 'sad' ELSE m END FROM {MOODS} ORDER BY n",
    f"SELECT n, greatest(m, 'sad'), least(m, 'sad') FROM {MOODS} ORDER BY n",
    f"SELECT array_agg(m ORDER BY m) FROM {MOODS}",
    f"SELECT string_agg(m::text, ',' ORDER BY m) FROM {MOODS}",
    f"SELECT m::text || '!', length(m::text), m || '?' FROM {MOODS} ORDER BY n",
    f"SELECT a.n, b.n FROM {MOODS} JOIN {MOODS.replace('AS t', 'AS b')} ON t.m < b.m ORDER BY 1, 2".replace(
        "a.n", "t.n"
    ),
    "SELECT '{happy,sad,NULL}'::mood[], ARRAY['ok'::mood, 'sad'], '{}'::mood[]",
    "SELECT ('{happy,sad}'::mood[])[2]",
    "SELECT unnest('{happy,sad}'::mood[])",
    'SELECT \'{"a,b \\"c\\"",b,""}\'::"Odd one"[]',
    "SELECT enum_first(NULL::mood), enum_last(NULL::mood), enum_range(NULL::mood)",
    "SELECT enum_range('sad'::mood, 'glad'::mood), enum_range(NULL, 'ok'::mood), enum_range('happy'::mood, NULL)",
    "SELECT unnest(enum_range(NULL::mood)) AS label",
    "SELECT pg_typeof('ok'::mood)::text, pg_typeof('{ok}'::mood[])::text",
    "SELECT 'cheerful'::mood",
    "SELECT ARRAY['cheerful']::mood[]",
    f"SELECT n FROM {MOODS} WHERE m = 'cheerful'",
    "SELECT 'ok'::mood = 'ok'::other",
    "SELECT 'ok'::mood = 'ok'::text",
    "SELECT 'ok'::nowhere.mood",
    "SELECT 'ok'::moody",
    "SELECT 'mood'::regtype::text, 'mood[]'::regtype::text, "
    "to_regtype('public.mood') = 'mood'::regtype, to_regtype('moody')",
    "SELECT typname, typlen, typbyval, typtype, typcategory, typdelim, typalign, typstorage, typinput::text, "
    "typreceive::text FROM pg_type WHERE oid = 'mood'::regtype",
    "SELECT a.typname, a.typtype, a.typcategory, a.typelem = t.oid, a.typinput::text FROM pg_type t "
    "JOIN pg_type a ON a.oid = t.typarray WHERE t.typname = 'mood'",
    "SELECT enumlabel FROM pg_enum WHERE enumtypid = 'mood'::regtype ORDER BY enumsortorder",
    "SELECT format_type(oid, NULL), format_type(typarray, NULL) FROM pg_type WHERE typname = 'mood'",
    "SELECT obj_description('mood'::regtype, 'pg_type')",
)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("text", QUERIES)
def test_answers_are_postgresqls(ours: Connection, theirs: Connection, text: str, binary: bool) -> None:
    mine, wanted = answer(ours, text, binary=binary), answer(theirs, text, binary=binary)
    if binary and "[]" in text:  # arrays name the oid of their elements' type
        mine, wanted = [_without_element_oid(cells, c) for cells, c in ((mine, ours), (wanted, theirs))]
    assert mine == wanted


def _without_element_oid(found: Any, connection: Connection) -> Any:
    row = connection.execute("SELECT oid FROM pg_type WHERE typname IN ('mood', 'Odd one') ORDER BY 1").fetchall()
    if not isinstance(found[0], list):
        return found
    rows = found[1]
    for (oid,) in row:
        rows = [[None if cell is None else cell.replace(oid.to_bytes(4), b"....") for cell in cells] for cells in rows]
    return found[0], rows


STATEMENTS = (
    "CREATE TYPE mood AS ENUM ('x')",
    "CREATE TYPE nowhere.mood AS ENUM ('x')",
    "CREATE TYPE twice AS ENUM ('x', 'x')",
    f"CREATE TYPE long AS ENUM ('{'x' * 64}')",
    "ALTER TYPE mood ADD VALUE 'ok'",
    "ALTER TYPE mood ADD VALUE 'x' BEFORE 'y'",
    "ALTER TYPE moody ADD VALUE 'x'",
    "ALTER TYPE mood RENAME VALUE 'y' TO 'x'",
    "ALTER TYPE mood RENAME VALUE 'ok' TO 'sad'",
    "ALTER TYPE mood RENAME TO other",
    "DROP TYPE moody",
    "DROP TYPE IF EXISTS moody",
    "CREATE TYPE empty AS ENUM ()",
    "DROP TYPE empty, moody",
    "DROP TYPE empty RESTRICT",
)


def test_statements_fail_as_postgresqls(ours: Connection, theirs: Connection) -> None:
    def outcome(connection: Connection, text: str) -> Any:
        try:
            return connection.execute(text).statusmessage
        except psycopg.Error as error:
            return error.sqlstate, error.diag.message_primary

    assert [outcome(ours, text) for text in STATEMENTS] == [outcome(theirs, text) for text in STATEMENTS]


def test_parameters_are_labels(ours: Connection, theirs: Connection) -> None:
    for binary in (False, True):
        for text, parameters in (
            ("SELECT %s::mood", ["glad"]),
            ("SELECT %s::mood[]", [["glad", None]]),
            (f"SELECT n FROM {MOODS} WHERE m > %s ORDER BY n", ["glad"]),
            (f"SELECT n FROM {MOODS} WHERE m = ANY(%s::mood[]) ORDER BY n", [["ok", "dead"]]),
            ("SELECT %s::mood", ["cheerful"]),
        ):
            placeholders = text.replace("%s", "%b") if binary else text
            mine, wanted = answer(ours, placeholders, parameters), answer(theirs, placeholders, parameters)
            assert mine == wanted, text


class Mood(enum.Enum):
    DEAD, SAD, SO_SO, OK, GLAD, HAPPY, ECSTATIC = "dead", "sad", "so-so", "ok", "glad", "happy", "ecstatic"


def test_psycopg_learns_the_type(ours: Connection) -> None:
    info = EnumInfo.fetch(ours, "mood")
    assert info is not None
    assert info.labels == [each.value for each in Mood]
    register_enum(info, ours, Mood, mapping={each: each.value for each in Mood})
    for binary in (False, True):
        cursor = ours.execute(
            "SELECT %s, %s, %s::mood > 'ok'", [Mood.GLAD, [Mood.SAD, Mood.OK], Mood.HAPPY], binary=binary
        )
        assert cursor.fetchone() == (Mood.GLAD, [Mood.SAD, Mood.OK], True)


def test_asyncpg_learns_the_type(server: LiveServer, ours: Connection) -> None:
    async def ask() -> Any:
        connection = await asyncpg.connect(**_address(server))
        try:
            return await connection.fetchrow("SELECT $1::mood AS m, $2::mood[] AS a", "glad", ["sad", "ok"])
        finally:
            await connection.close()

    row = asyncio.run(ask())
    assert (row["m"], row["a"]) == ("glad", ["sad", "ok"])


def _address(server: LiveServer) -> dict[str, Any]:
    parts = psycopg.conninfo.conninfo_to_dict(server.conninfo)
    return {"host": parts["host"], "port": int(str(parts["port"])), "user": parts["user"], "database": parts["dbname"]}
