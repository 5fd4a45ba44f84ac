"""Parameters whose types are left to the server: their types, those of the columns and the rows, as PostgreSQL's."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from tests.clients.dialect_rows import add_view
from tests.clients.live_server import LiveServer
from tests.clients.parameter_statements import ASKED, DESCRIBED
from tests.clients.untyped_client import Answered, Described, UntypedClient
from tests.services.postgres import PostgresServer

pytestmark = pytest.mark.postgres

OPEN = "a parameter whose type nothing decides is a text"
LENIENT = "a text is compared with a number"
WIDER = "the result's type, whatever is a parameter"
MISSING = "not supported, whatever is a parameter"

KNOWN = {
    OPEN: (
        "SELECT $1 is null FROM shop", "SELECT concat(name, $1) FROM shop", "SELECT concat($1, $2) FROM shop",
        "SELECT concat_ws($1, name, $2) FROM shop", "SELECT jsonb_build_object($1, id) FROM shop",
        "SELECT jsonb_build_object('a', $1) FROM shop", "SELECT count($1) FROM shop",
        "SELECT id FROM shop WHERE ($1 IS NULL OR name = $1)",
    ),
    LENIENT: (
        "SELECT $1 between $2 and amount FROM shop",
        "SELECT case $1 when 1 then 'a' end FROM shop", "SELECT id = (select $1) FROM shop",
    ),
    WIDER: (
        "SELECT power(amount, $1) FROM shop", "SELECT pg_typeof($1::int) FROM shop", "SELECT to_regclass($1) FROM shop",
        "SELECT generate_series(1, $1) FROM shop", "SELECT g FROM generate_series(1, $1) g",
    ),
    MISSING: ("SELECT substring(name from $1 for $2) FROM shop",),
}  # fmt: skip
"""By reason, as docs/sql/postgresql.md has them."""


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UntypedClient]:
    server = LiveServer(tmp_path_factory.mktemp("parameters"))
    add_view(server)
    server.start()
    with UntypedClient(server.conninfo) as client:
        yield client
    server.stop()


@pytest.fixture(scope="module")
def theirs(postgres_server: PostgresServer, their_shop: psycopg.Connection[Any]) -> Iterator[UntypedClient]:
    their_shop.execute("CREATE TABLE IF NOT EXISTS public.shop AS SELECT * FROM pg_temp.shop")
    with UntypedClient(postgres_server.database_dsn("shop")) as client:
        yield client
    their_shop.execute("DROP TABLE public.shop")


def _kind(described: Described) -> object:
    return described.error[:5] or described


def test_the_types_are_postgresqls(ours: UntypedClient, theirs: UntypedClient) -> None:
    known = {text for texts in KNOWN.values() for text in texts}
    found = {text: (ours.describe(text), theirs.describe(text)) for text in DESCRIBED}
    different = {text: pair for text, pair in found.items() if _kind(pair[0]) != _kind(pair[1])}
    assert {text: pair for text, pair in different.items() if text not in known} == {}
    assert known <= different.keys(), "these are equal now: take them from the list and the documents"


def _cells(answered: Answered) -> object:
    return answered.error[:5] or [[_number(cell) for cell in row] for row in answered.rows]


def _number(cell: str | None) -> object:
    """Scales of numeric differ, as the documents say."""
    try:
        return cell if cell is None else float(cell)
    except ValueError:
        return cell


def test_the_answers_are_postgresqls(ours: UntypedClient, theirs: UntypedClient) -> None:
    found = {(text, values): (ours.ask(text, values), theirs.ask(text, values)) for text, values in ASKED}
    assert {key: pair for key, pair in found.items() if _cells(pair[0]) != _cells(pair[1])} == {}


def test_a_statement_is_planned_anew_with_each_constant(ours: UntypedClient) -> None:
    text = "SELECT date_trunc($1, moment), id + $2 FROM shop WHERE id = $3"
    for _ in range(2):
        assert ours.ask(text, ("year", "1", "1")).rows == (("2024-01-01 00:00:00", "2"),)
        assert ours.ask(text, ("month", "2", "1")).rows == (("2024-02-01 00:00:00", "3"),)
    assert ours.ask(text, ("it's", "1", "1")).error.startswith("22023")


def test_a_constant_is_a_value_and_no_text_of_the_query(ours: UntypedClient) -> None:
    for value in ("x'; SELECT 1; --", "a\\'b", "$2", "-- x", "%s"):
        assert ours.ask("SELECT format($1)", (value.replace("%s", "%%s"),)).rows == ((value,),)
        assert ours.ask("SELECT name SIMILAR TO $1 FROM shop WHERE id = $2", (value, "1")).rows == (("f",),)


def test_prepare_and_execute_give_constants_too(our_shop: psycopg.Connection[Any]) -> None:
    our_shop.execute("PREPARE constants AS SELECT round(amount, $1), date_trunc($2, moment) FROM shop WHERE id = $3")
    for digits in (1, 0):
        (row,) = our_shop.execute(f"EXECUTE constants({digits}, 'day', 1)").fetchall()
        assert (float(row[0]), str(row[1])) == (round(4.5, digits) if digits else 5.0, "2024-02-29 00:00:00")
    our_shop.execute("DEALLOCATE constants")


def test_binary_values_and_cursors_give_constants_too(our_shop: psycopg.Connection[Any]) -> None:
    cursor = our_shop.cursor(binary=True)
    asked = "SELECT date_trunc(%s, moment) FROM shop WHERE id = %b"
    assert str(cursor.execute(asked, ("year", 1)).fetchall()[0][0]) == "2024-01-01 00:00:00"
    with our_shop.transaction(), our_shop.cursor("named") as named:
        named.execute("SELECT round(amount, %b) FROM shop ORDER BY id LIMIT %s", (1, 2))
        assert [float(row[0]) for row in named] == [4.5, -12.0]


def test_numerics_keep_their_digits(our_shop: psycopg.Connection[Any], their_shop: psycopg.Connection[Any]) -> None:
    values = ("1.123456789012345", "0.0100000000001", "1e-20", "12345678901234567890123456789.5", "-4.50", "1e30", "7")
    statements = (
        "SELECT %s::numeric", "SELECT id, amount * %s FROM shop WHERE id < 3 ORDER BY id",
        "SELECT id FROM shop WHERE amount = %s ORDER BY id", "SELECT id FROM shop WHERE amount > %s ORDER BY id",
        "SELECT amount / %s FROM shop WHERE id = 1",
    )  # fmt: skip
    for value in map(Decimal, values):
        for text in statements:
            for binary in (False, True):
                own, other = (_rows(connection, text, value, binary=binary) for connection in (our_shop, their_shop))
                assert own in (other, "22003"), (text, value)
                assert own != "22003" or "*" in text, (text, value)


def _rows(connection: psycopg.Connection[Any], text: str, value: Decimal, *, binary: bool) -> Any:
    """Or the SQLSTATE: a product may have more digits than there are."""
    try:
        return connection.cursor(binary=binary).execute(text, (value,)).fetchall()
    except psycopg.Error as error:
        return error.sqlstate


def test_a_numeric_of_too_many_digits_is_refused(our_shop: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        our_shop.execute("SELECT %s::numeric", (Decimal("1." + "1" * 40),))


def test_copies_and_cursors_have_the_digits_of_quotients(
    our_shop: psycopg.Connection[Any], their_shop: psycopg.Connection[Any]
) -> None:
    query = "SELECT id, amount / 7, ratio::numeric FROM shop ORDER BY 2"
    found = []
    for connection in (our_shop, their_shop):
        with connection.cursor().copy(f"COPY ({query}) TO STDOUT") as copy:
            copied = b"".join(bytes(data) for data in copy)
        with connection.transaction(), connection.cursor("named") as named:
            named.execute(query)
            found.append((copied, named.fetchall()))
    assert found[0] == found[1]
