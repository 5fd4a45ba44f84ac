"""asyncpg: binary formats only, types that it looks up, prepared statements, cursors, COPY, pools, time-outs.

What each test sees of our server is what it sees of a real PostgreSQL with the same rows.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import io
import time
import uuid
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import asyncpg
import pytest

from tests.clients.client_world import Address
from tests.clients.live_server import LiveServer

pytestmark = pytest.mark.postgres

UTC = dt.UTC
SLOW = "SELECT count(*) FROM numbers a, numbers b WHERE a.n * b.n % 7 = 3"

Use = Callable[[asyncpg.Connection], Awaitable[Any]]


async def connect(to: Address, **options: Any) -> asyncpg.Connection:
    return await asyncpg.connect(host=to.host, port=to.port, user=to.user, database=to.database, timeout=10, **options)


def seen(to: Address, use: Use) -> Any:
    async def run() -> Any:
        connection = await connect(to)
        try:
            return await use(connection)
        finally:
            await connection.close(timeout=10)

    return asyncio.run(run())


def same(ours: Address, theirs: Address, use: Use) -> Any:
    """What both servers show."""
    found = seen(ours, use)
    assert found == seen(theirs, use)
    return found


def tuples(records: Any) -> list[tuple[Any, ...]]:
    return [tuple(record) for record in records]


def test_every_type_comes_back_binary(ours: Address, theirs: Address) -> None:
    async def rows(connection: asyncpg.Connection) -> Any:
        return tuples(await connection.fetch("SELECT * FROM typed ORDER BY id"))

    found = same(ours, theirs, rows)
    assert found[0][:4] == (1, True, 2, 9007199254740993)
    assert found[1] == (2, *[None] * 12)


PARAMETERS = [
    ("int2", -5), ("int4", 2**31 - 1), ("int8", -(2**63)), ("float4", 1.5), ("float8", 1e300), ("float8", float("inf")),
    ("numeric(12, 3)", Decimal("-123456789.125")), ("text", "ü\t'"), ("varchar", "x"), ("bytea", b"\0\xff"),
    ("bool", True), ("date", dt.date(1, 1, 1)), ("date", dt.date.max), ("time", dt.time(23, 59, 59, 999999)),
    ("timestamp", dt.datetime(1, 1, 1)), ("timestamptz", dt.datetime(2024, 1, 2, 3, tzinfo=UTC)),
    ("interval", dt.timedelta(days=40, seconds=3, microseconds=5)), ("uuid", uuid.UUID(int=77)), ("json", '{"a": 1}'),
    ("jsonb", '{"a": 1}'), ("oid", 4294967295), ("name", "abc"),
    ("int4[]", [1, None, 3]), ("int4[]", []), ("int8[]", [-1]), ("text[]", ["a", 'b"c,{}', None, "NULL", ""]),
    ("float8[]", [1.5, float("-inf")]), ("bool[]", [True, False, None]), ("uuid[]", [uuid.UUID(int=3)]),
    ("timestamptz[]", [dt.datetime(2024, 1, 2, 3, tzinfo=UTC)]), ("date[]", [dt.date(2024, 1, 1)]),
    ("bytea[]", [b"x", b""]), ("oid[]", [1, 2]), ("numeric(6, 2)[]", [Decimal("1.50")]),
]  # fmt: skip


"""DuckDB has one type for each of these pairs."""


@pytest.mark.parametrize(("declared", "value"), PARAMETERS, ids=[f"{p[0]} {p[1]}"[:30] for p in PARAMETERS])
def test_parameters_come_back(ours: Address, theirs: Address, declared: str, value: Any) -> None:
    async def echo(connection: asyncpg.Connection) -> Any:
        statement = await connection.prepare(f"SELECT $1::{declared} AS x")
        types = [statement.get_parameters()[0].name, statement.get_attributes()[0].type.name]
        return [*types, await statement.fetchval(value)]

    found, expected = seen(ours, echo), seen(theirs, echo)
    assert found == [*expected[:2], value]
    assert expected[2] == value


def test_descriptions_of_prepared_statements(ours: Address, theirs: Address) -> None:
    async def described(connection: asyncpg.Connection) -> Any:
        statement = await connection.prepare("SELECT url, visits FROM visits WHERE url = $1 AND visits > $2")
        return (
            [kind.name for kind in statement.get_parameters()],
            [(each.name, each.type.name) for each in statement.get_attributes()],
            tuples(await statement.fetch("./home", 3)),
            tuples(await statement.fetch("./home", 30)),
            statement.get_statusmsg(),
        )

    assert same(ours, theirs, described)[2:] == ([("./home", 30)], [], "SELECT 0")


def test_cursors(ours: Address, theirs: Address) -> None:
    async def read(connection: asyncpg.Connection) -> Any:
        steps: list[Any] = []
        async with connection.transaction():
            cursor = await connection.cursor("SELECT n FROM numbers WHERE n >= $1 ORDER BY n", 10)
            steps.append(tuples(await cursor.fetch(3)))
            steps.append(await cursor.forward(5))  # MOVE, on the protocol's portal
            steps.append(tuple(await cursor.fetchrow()))
            steps.append(await cursor.forward(1_000_000))
            steps.append(await cursor.fetchrow())
            steps.append(await cursor.fetch(2))
            total = 0
            async for (n,) in connection.cursor("SELECT n FROM numbers", prefetch=30_000):
                total += n
            steps.append(total)
        return steps

    assert same(ours, theirs, read) == [[(10,), (11,), (12,)], 5, (18,), 99_981, None, [], 4_999_950_000]


def test_a_portal_is_a_cursor(ours: Address, theirs: Address) -> None:
    """FETCH, MOVE, CLOSE and pg_cursors know the protocol's portals."""

    async def read(connection: asyncpg.Connection) -> Any:
        steps: list[Any] = []
        async with connection.transaction():
            cursor = await connection.cursor("SELECT n FROM numbers ORDER BY n")
            (name,) = [each["name"] for each in await connection.fetch("SELECT name FROM pg_cursors WHERE name <> ''")]
            steps.append(tuples(await connection.fetch(f'FETCH 2 FROM "{name}"')))
            steps.append(tuples(await cursor.fetch(2)))
            steps.append(await connection.execute(f'MOVE FORWARD 3 IN "{name}"'))
            steps.append(tuples(await cursor.fetch(1)))
            facts = await connection.fetch(
                f"SELECT statement, is_holdable, is_binary, is_scrollable FROM pg_cursors WHERE name = '{name}'"
            )
            steps.append(tuples(facts))
            steps.append(await connection.execute(f'CLOSE "{name}"'))
            try:
                async with connection.transaction():
                    await cursor.fetch(1)
            except asyncpg.PostgresError as error:
                steps.append(error.sqlstate)
        return steps

    assert same(ours, theirs, read)[0] == [(0,), (1,)]


def test_copy(ours: Address, theirs: Address) -> None:
    async def copied(connection: asyncpg.Connection) -> Any:
        found = []
        query = "SELECT url, visits FROM visits WHERE visits > $1 ORDER BY url"
        for options in ({}, {"format": "csv", "header": True, "delimiter": ";"}, {"format": "binary"}):
            out = io.BytesIO()
            tag = await connection.copy_from_query(query, 10, output=out, **options)
            found.append((tag, out.getvalue()))
        out = io.BytesIO()
        found.append((await connection.copy_from_table("visits", columns=["visits"], output=out), out.getvalue()))
        return found

    assert same(ours, theirs, copied)[0] == ("COPY 2", b"./home\t30\n./shop\t20\n")


async def error_of(awaited: Awaitable[Any]) -> tuple[str, str]:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await awaited
    return caught.value.sqlstate, caught.value.args[0].partition("\n")[0]  # without the hint


def test_errors(ours: Address, theirs: Address) -> None:
    async def errors(connection: asyncpg.Connection) -> Any:
        return [
            await error_of(connection.fetch("SELECT * FROM nothing")),
            await error_of(connection.fetch("SELECT missing FROM visits WHERE url = $1", "x")),
            await error_of(connection.fetch("SELECT 1 / $1::int", 0)),
            await error_of(connection.fetch("SELECT FROM WHERE")),
            await error_of(connection.execute("SELECT 1; SELECT * FROM nothing; SELECT 2")),
            await error_of(connection.fetch("SELECT 1; SELECT 2 WHERE $1", True)),
            await connection.fetchval("SELECT 1"),
        ]

    assert [each[0] for each in same(ours, theirs, errors)[:-1]] == [
        "42P01", "42703", "22012", "42601", "42P01", "42601",
    ]  # fmt: skip


def test_transactions(ours: Address, theirs: Address) -> None:
    async def steps(connection: asyncpg.Connection) -> Any:
        found: list[Any] = []
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            found.append(await connection.fetchval("SHOW transaction_isolation"))
            found.append(await connection.fetchval("SHOW transaction_read_only"))
            try:
                async with connection.transaction():
                    await connection.fetch("SELECT * FROM nothing")
            except asyncpg.UndefinedTableError:
                found.append(connection.is_in_transaction())
            found.append(await connection.fetchval("SELECT 1"))
        found.append(connection.is_in_transaction())
        found.append(await connection.fetchmany("SELECT $1::int + 1", [(1,), (2,)]))
        found.append(await connection.executemany("SELECT $1::int", [(1,), (2,)]))
        return found

    assert same(ours, theirs, steps)[:4] == ["repeatable read", "on", True, 1]


def test_a_time_out_cancels_the_query(ours: Address) -> None:
    async def slow(connection: asyncpg.Connection) -> Any:
        started = time.monotonic()
        with pytest.raises(asyncio.TimeoutError):
            await connection.fetchval(SLOW, timeout=0.3)
        taken = time.monotonic() - started
        return taken, await connection.fetchval("SELECT 7")

    taken, after = seen(ours, slow)
    assert taken < 0.3 + 2
    assert after == 7


def test_codecs_and_records(ours: Address, theirs: Address) -> None:
    async def decoded(connection: asyncpg.Connection) -> Any:
        await connection.set_type_codec("json", encoder=str, decoder=lambda text: ("own", text), schema="pg_catalog")
        await connection.reload_schema_state()
        return [await connection.fetchval("SELECT '[1]'::json"), connection.get_server_pid() > 0]

    assert same(ours, theirs, decoded) == [("own", "[1]"), True]


def test_a_pool_resets_what_it_takes_back(ours: Address) -> None:
    async def pooled() -> Any:
        async with asyncpg.create_pool(
            host=ours.host, port=ours.port, user=ours.user, database=ours.database, min_size=2, max_size=4
        ) as pool:

            async def one(n: int) -> int:
                async with pool.acquire() as connection:
                    await connection.execute(f"SET application_name = 'a{n}'")
                    return int(await connection.fetchval("SELECT n FROM numbers WHERE n = $1", n))

            total = sum(await asyncio.gather(*map(one, range(40))))
            async with pool.acquire() as connection:
                return total, await connection.fetchval("SHOW application_name")

    assert asyncio.run(pooled()) == (780, "")


def test_the_settings_of_a_connection(ours: Address, theirs: Address) -> None:
    async def shown(to: Address) -> Any:
        connection = await connect(to, server_settings={"application_name": "probe", "search_path": "public"})
        try:
            return [
                await connection.fetchval("SHOW application_name"),
                await connection.fetchval("SELECT current_schemas(false)"),
                connection.get_settings().TimeZone,
            ]
        finally:
            await connection.close()

    assert asyncio.run(shown(ours)) == asyncio.run(shown(theirs)) == ["probe", ["public"], "UTC"]


def test_statements_that_are_prepared(own_server: LiveServer) -> None:
    async def listed(connection: asyncpg.Connection) -> Any:
        kept = await connection.prepare("SELECT url FROM visits WHERE visits > $1 AND url <> $2", name="mine")
        await connection.execute("PREPARE other (int, text) AS SELECT $1, $2")
        assert kept.get_name() == "mine"
        return tuples(
            await connection.fetch(
                "SELECT name, statement, parameter_types::text[], from_sql, prepare_time <= now() "
                "FROM pg_prepared_statements WHERE name IN ('mine', 'other') ORDER BY name"
            )
        )

    assert seen(Address("127.0.0.1", own_server.port), listed) == [
        ("mine", "SELECT url FROM visits WHERE visits > $1 AND url <> $2", ["bigint", "text"], False, True),
        ("other", "PREPARE other (int, text) AS SELECT $1, $2", ["integer", "text"], True, True),
    ]
