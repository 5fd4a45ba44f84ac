"""psycopg2: libpq's simple protocol, named cursors, COPY, transactions by default.

What each test sees of our server is what it sees of a real PostgreSQL with the same rows.
"""

from __future__ import annotations

import datetime as dt
import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import psycopg2
import psycopg2.extensions
import psycopg2.extras
import pytest

from tests.clients.client_world import Address

pytestmark = pytest.mark.postgres

Connection = Any
Use = Callable[[Connection], Any]


@contextmanager
def connected(to: Address, **options: Any) -> Iterator[Connection]:
    connection = psycopg2.connect(to.conninfo, connect_timeout=10, **options)
    try:
        yield connection
    finally:
        connection.close()


def same(ours: Address, theirs: Address, use: Use) -> Any:
    """What both servers show."""
    with connected(ours) as mine, connected(theirs) as real:
        found = use(mine)
        assert found == use(real)
    return found


def rows(connection: Connection, sql: str, *parameters: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)
        return list(cursor.fetchall())


def test_every_type_comes_back(ours: Address, theirs: Address) -> None:
    def typed(connection: Connection) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM typed ORDER BY id")
            found = [tuple(bytes(v) if isinstance(v, memoryview) else v for v in row) for row in cursor]
            described = [(c.name, c.type_code, c.internal_size, c.precision, c.scale) for c in cursor.description]
            return found, described, cursor.rowcount, cursor.statusmessage

    found = same(ours, theirs, typed)
    assert found[0][1] == (2, *[None] * 12)
    assert found[2:] == (2, "SELECT 2")


PARAMETERS = [
    ("id = %s", 1), ("flag = %s", True), ("big = %s", 9007199254740993), ("real8 = %s", 0.1),
    ("amount = %s", Decimal("12.30")), ("name = %s", "näme 'x'"), ("bytes = %s", b"\0\xff"),
    ("day = %s", dt.date(2024, 2, 29)), ("clock = %s", dt.time(23, 59, 59, 123456)),
    ("moment = %s", dt.datetime(2024, 1, 2, 3, 4, 5, 678901)),
    ("instant = %s", dt.datetime(2024, 1, 2, 4, 4, 5, tzinfo=dt.timezone(dt.timedelta(hours=1)))),
    ("id = ANY(%s)", [1, 5]), ("name = ANY(%s)", ["näme 'x'", None]), ("id IN %s", (1, 7)),
    ("moment - day < %s", dt.timedelta(days=1)), ("name LIKE %s", "n%m_ %"),
    ("name = %s", "back\\slash"),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "value"), PARAMETERS, ids=[p[0].split(" %")[0] for p in PARAMETERS])
def test_every_parameter_type(ours: Address, theirs: Address, condition: str, value: Any) -> None:
    same(ours, theirs, lambda connection: rows(connection, f"SELECT id FROM typed WHERE {condition}", value))


def test_constants_of_other_types(ours: Address, theirs: Address) -> None:
    def constants(connection: Connection) -> Any:
        return rows(
            connection,
            "SELECT '{\"a\": [1, null]}'::json, '{\"a\": 1}'::jsonb, ARRAY[1, NULL, 3], ARRAY['x,y', '\"'], "
            "interval '1 day 02:03:04', 'infinity'::float8, '5f3c1f2e-0000-0000-0000-000000000001'::uuid, NULL, "
            "timestamp '2024-01-01', ARRAY[date '2024-01-01'], 1::int2",
        )

    psycopg2.extras.register_uuid()
    assert same(ours, theirs, constants)[0][:4] == ({"a": [1, None]}, {"a": 1}, [1, None, 3], ["x,y", '"'])


def test_named_cursors(ours: Address, theirs: Address) -> None:
    def read(connection: Connection) -> Any:
        found: list[Any] = []
        with connection.cursor("forward") as cursor:
            cursor.itersize = 10_000
            cursor.execute("SELECT n FROM numbers WHERE n >= %s ORDER BY n", (10,))
            found += [cursor.fetchone(), cursor.fetchmany(3), cursor.rowcount]
            found.append(sum(n for (n,) in cursor))
        with connection.cursor("back", scrollable=True) as cursor:
            cursor.execute("SELECT n FROM numbers ORDER BY n")
            cursor.scroll(5)
            found.append(cursor.fetchone())
            cursor.scroll(-3)
            found.append(cursor.fetchone())
            cursor.scroll(99_999, mode="absolute")
            found += [cursor.fetchone(), cursor.fetchone(), [c.name for c in cursor.description]]
        with connection.cursor("held", withhold=True) as cursor:
            cursor.execute("SELECT url FROM visits ORDER BY url")
            connection.commit()
            found += [cursor.fetchall(), rows(connection, "SELECT name, is_holdable FROM pg_cursors")]
        cursor = connection.cursor("plain")
        cursor.execute("SELECT 1")
        connection.commit()
        try:
            cursor.fetchone()
        except psycopg2.ProgrammingError as error:
            found.append((error.pgcode, str(error)))
        return found

    assert same(ours, theirs, read)[3] == 99_999 * 100_000 // 2 - sum(range(14))


def test_copy_expert(ours: Address, theirs: Address) -> None:
    def copied(connection: Connection) -> Any:
        found = []
        for sql in (
            "COPY visits TO STDOUT",
            "COPY (SELECT url, visits FROM visits ORDER BY visits) TO STDOUT WITH CSV HEADER",
            "COPY (SELECT name, bytes, amount FROM typed ORDER BY id) TO STDOUT (FORMAT csv, NULL '-', QUOTE '|')",
        ):
            out = io.StringIO()
            with connection.cursor() as cursor:
                cursor.copy_expert(sql, out)
                found.append((out.getvalue(), cursor.rowcount))
        out = io.StringIO()
        with connection.cursor() as cursor:
            cursor.copy_to(out, "visits", sep="|", columns=("visits", "url"))
        return [*found, out.getvalue()]

    assert same(ours, theirs, copied)[3] == "30|./home\n20|./shop\n10|./cart\n"


def test_transactions_begin_by_themselves(ours: Address, theirs: Address) -> None:
    def steps(connection: Connection) -> Any:
        found = [connection.status, connection.get_transaction_status()]
        rows(connection, "SELECT 1")
        found += [connection.status, connection.get_transaction_status()]
        for sql in ("SELECT * FROM nothing", "SELECT 1"):
            try:
                rows(connection, sql)
            except psycopg2.Error as error:
                found += [error.pgcode, type(error).__name__, error.diag.message_primary, error.diag.severity]
        found.append(connection.get_transaction_status())
        connection.rollback()
        found.append(connection.get_transaction_status())
        with connection, connection.cursor() as cursor:
            cursor.execute("SAVEPOINT a")
            cursor.execute("SELECT 1; SELECT 2 AS b")
            found += [cursor.fetchall(), cursor.statusmessage]
            cursor.execute("ROLLBACK TO SAVEPOINT a")
        connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
        found.append(rows(connection, "SHOW transaction_isolation") + rows(connection, "SHOW transaction_read_only"))
        connection.rollback()
        connection.set_session(isolation_level="DEFAULT", readonly=False, autocommit=True)
        found += [rows(connection, "SELECT 3"), connection.get_transaction_status()]
        return found

    same(ours, theirs, steps)


def test_row_factories_and_batches(ours: Address, theirs: Address) -> None:
    def steps(connection: Connection) -> Any:
        with connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
            cursor.execute("SELECT url, count(*), sum(visits) FROM visits GROUP BY url ORDER BY url")
            found: list[Any] = [dict(row) for row in cursor]
        with connection.cursor(cursor_factory=psycopg2.extras.NamedTupleCursor) as cursor:
            cursor.execute("SELECT url, visits AS v FROM visits ORDER BY visits LIMIT 1")
            found.append(cursor.fetchone().v)
        with connection.cursor() as cursor:
            psycopg2.extras.execute_batch(cursor, "SELECT %s::int AS n", [(n,) for n in range(5)], page_size=5)
            found.append(cursor.fetchall())
            found.append(cursor.mogrify("SELECT %s", ("a'b\\c",)))
        return found

    assert same(ours, theirs, steps)[3:5] == [10, [(4,)]]


def test_the_connection_says_what_it_is(ours: Address, theirs: Address) -> None:
    def facts(connection: Connection) -> Any:
        names = (
            "client_encoding", "DateStyle", "IntervalStyle", "TimeZone", "standard_conforming_strings",
            "integer_datetimes", "server_encoding", "application_name", "is_superuser", "session_authorization",
        )  # fmt: skip
        shown = [connection.get_parameter_status(name) for name in names]
        return [*shown, connection.encoding, connection.info.protocol_version, connection.info.error_message]

    same(ours, theirs, facts)


CANCEL = """
import sys, threading, time, psycopg2
connection = psycopg2.connect(sys.argv[1])
connection.autocommit = True
cursor = connection.cursor()
threading.Timer(0.3, connection.cancel).start()
started = time.monotonic()
try:
    cursor.execute("SELECT count(*) FROM numbers a, numbers b WHERE a.n * b.n % 7 = 3")
except psycopg2.errors.QueryCanceled as error:
    print(error.pgcode, error, end="")
assert time.monotonic() - started < 0.3 + 2
cursor.execute("SELECT 1")
print(cursor.fetchall())
"""


def test_cancel(ours: Address) -> None:
    """In a process of its own: ``cancel`` waits for the server without letting other threads run."""
    done = subprocess.run(
        [sys.executable, "-c", CANCEL, ours.conninfo], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "57014 canceling statement due to user request\n[(1,)]\n"


def test_notices(ours: Address, theirs: Address) -> None:
    def heard(connection: Connection) -> Any:
        connection.autocommit = True
        rows(connection, "SELECT 1")
        with connection.cursor() as cursor:
            cursor.execute("COMMIT")
        return connection.notices

    assert same(ours, theirs, heard) == ["WARNING:  there is no transaction in progress\n"]


def test_asynchronous_use(ours: Address) -> None:
    """As gevent and eventlet drive it: by poll."""
    connection = psycopg2.connect(ours.conninfo, async_=True)
    psycopg2.extras.wait_select(connection)
    cursor = connection.cursor()
    cursor.execute("SELECT sum(n) FROM numbers")
    psycopg2.extras.wait_select(connection)
    assert cursor.fetchall() == [(4_999_950_000,)]
    connection.close()
