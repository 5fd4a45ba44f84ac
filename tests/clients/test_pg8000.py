"""pg8000: the protocol in pure Python, extended for each statement, text formats, batches.

What each test sees of our server is what it sees of a real PostgreSQL with the same rows.
"""

from __future__ import annotations

import datetime as dt
import io
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pg8000.dbapi
import pg8000.native
import pytest

from tests.clients.client_world import Address

pytestmark = pytest.mark.postgres

UTC = dt.UTC


def _where(to: Address) -> dict[str, Any]:
    if to.host.startswith("/"):
        return {"unix_sock": str(Path(to.host) / f".s.PGSQL.{to.port}")}
    return {"host": to.host, "port": to.port}


@contextmanager
def native(to: Address) -> Iterator[pg8000.native.Connection]:
    connection = pg8000.native.Connection(to.user, database=to.database, timeout=20, **_where(to))
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def dbapi(to: Address) -> Iterator[pg8000.dbapi.Connection]:
    connection = pg8000.dbapi.connect(to.user, database=to.database, timeout=20, **_where(to))
    try:
        yield connection
    finally:
        connection.close()


def same(ours: Address, theirs: Address, use: Callable[[Any], Any], how: Any = native) -> Any:
    """What both servers show."""
    with how(ours) as mine, how(theirs) as real:
        found = use(mine)
        assert found == use(real)
    return found


def test_every_type_comes_back(ours: Address, theirs: Address) -> None:
    def typed(connection: Any) -> Any:
        found = connection.run("SELECT * FROM typed ORDER BY id")
        described = [(c["name"], c["type_oid"], c["type_size"], c["type_modifier"]) for c in connection.columns]
        return found, described, connection.row_count

    assert same(ours, theirs, typed)[0][1] == [2, *[None] * 12]


PARAMETERS = [
    ("int4", -5), ("int8", 2**62), ("float8", 1e-300), ("numeric(12, 2)", Decimal("1.50")), ("text", "ü'\\"),
    ("bool", False), ("bytea", b"\0\xff"), ("date", dt.date(2024, 2, 29)), ("time", dt.time(1, 2, 3, 4)),
    ("timestamp", dt.datetime(2024, 1, 2, 3, 4, 5, 6)), ("timestamptz", dt.datetime(2024, 1, 2, tzinfo=UTC)),
    ("uuid", uuid.UUID(int=5)), ("json", {"a": [1, None]}), ("jsonb", {"b": "x"}), ("text", None),
    ("interval", dt.timedelta(days=3, seconds=4)), ("int4[]", [1, None]), ("text[]", ["a,b", '"', ""]),
    ("float8[]", [1.5]), ("bool[]", [True]),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "value"), PARAMETERS, ids=[f"{p[0]} {p[1]}"[:30] for p in PARAMETERS])
def test_parameters_come_back(ours: Address, theirs: Address, declared: str, value: Any) -> None:
    def echo(connection: Any) -> Any:
        return connection.run(f"SELECT CAST(:x AS {declared}) AS x, CAST(:x AS {declared}) IS NULL", x=value)

    assert same(ours, theirs, echo) == [[value, value is None]]


def test_parameters_whose_type_is_inferred(ours: Address, theirs: Address) -> None:
    def asked(connection: Any) -> Any:
        return [
            connection.run("SELECT visits FROM visits WHERE url = :url AND visits > :least", url="./home", least=3),
            connection.run("SELECT count(*) FROM numbers WHERE n BETWEEN :low AND :high", low=3, high=9),
            connection.run("SELECT id FROM typed WHERE moment < :at", at=dt.datetime(2030, 1, 1)),
            connection.run("SELECT url FROM visits WHERE url LIKE :like ORDER BY 1 LIMIT :n", like="./%", n=2),
        ]

    assert same(ours, theirs, asked) == [[[30]], [[7]], [[1]], [["./cart"], ["./home"]]]


def test_prepared_statements(ours: Address, theirs: Address) -> None:
    def prepared(connection: Any) -> Any:
        statement = connection.prepare("SELECT visits FROM visits WHERE url = :url")
        found = [statement.run(url=url) for url in ("./home", "./shop", "none")]
        statement.close()
        return found

    assert same(ours, theirs, prepared) == [[[30]], [[20]], []]


def test_statements_and_their_errors(ours: Address, theirs: Address) -> None:
    def errors(connection: Any) -> Any:
        found: list[Any] = []
        for sql in ("SELECT * FROM nothing", "SELEC", "SELECT 1/0", "SELECT missing FROM visits"):
            try:
                connection.run(sql)
            except pg8000.native.DatabaseError as error:
                found.append({code: text for code, text in error.args[0].items() if code in "SVCP"})
        found.append(connection.run("SELECT 1; SELECT 2, 3"))
        found.append(connection.run("SET application_name TO 'x'"))
        found.append(connection.run("SHOW application_name"))
        found.append(connection.parameter_statuses["application_name"])
        return found

    assert same(ours, theirs, errors)[0] == {"S": "ERROR", "V": "ERROR", "C": "42P01", "P": "15"}


def test_dbapi_transactions_and_batches(ours: Address, theirs: Address) -> None:
    def steps(connection: Any) -> Any:
        cursor = connection.cursor()
        cursor.execute("SELECT url, visits FROM visits WHERE visits > %s ORDER BY visits", (10,))
        found = [[d[:2] for d in cursor.description], cursor.rowcount, cursor.fetchone(), cursor.fetchall()]
        connection.commit()
        try:
            cursor.execute("SELECT * FROM nothing")
        except pg8000.dbapi.DatabaseError as error:
            found.append(error.args[0]["C"])
        try:
            cursor.execute("SELECT 1")
        except pg8000.dbapi.DatabaseError as error:
            found.append(error.args[0]["C"])
        connection.rollback()
        cursor.executemany("SELECT CAST(%s AS int)", [(1,), (2,), (3,)])
        found.append(cursor.rowcount)
        cursor.execute("DECLARE c CURSOR FOR SELECT n FROM numbers ORDER BY n")
        cursor.execute("MOVE 10 IN c")
        cursor.execute("FETCH 3 FROM c")
        found.append(cursor.fetchall())
        connection.rollback()
        return found

    found = same(ours, theirs, steps, dbapi)
    assert found[4:6] == ["42P01", "25P02"]
    assert found[7] == ([10], [11], [12]) or found[7] == [[10], [11], [12]]


def test_copy_out(ours: Address, theirs: Address) -> None:
    def copied(connection: Any) -> Any:
        out = io.BytesIO()
        connection.run("COPY (SELECT url, visits FROM visits ORDER BY url) TO STDOUT WITH (FORMAT csv)", stream=out)
        return out.getvalue()

    assert same(ours, theirs, copied) == b"./cart,10\n./home,30\n./shop,20\n"


def test_many_rows(ours: Address) -> None:
    with native(ours) as connection:
        assert sum(n for (n,) in connection.run("SELECT n FROM numbers")) == 4_999_950_000
