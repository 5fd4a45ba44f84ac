"""DROP ... IF EXISTS of what is not there: the notices, tags and errors of a real PostgreSQL."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.clients.client_world import Address

_STATEMENTS = (
    "DROP SEQUENCE IF EXISTS nosuch",
    "DROP SEQUENCE IF EXISTS public.nosuch, other.seq CASCADE",
    'DROP SEQUENCE IF EXISTS "No such" RESTRICT',
    "DROP FUNCTION IF EXISTS nosuch",
    "DROP FUNCTION IF EXISTS nosuch()",
    "DROP FUNCTION IF EXISTS nosuch(integer, text) CASCADE",
    "DROP FUNCTION IF EXISTS public.nosuch(a character varying(10), numeric(10, 2), timestamp(3) with time zone)",
    "DROP FUNCTION IF EXISTS nosuch(nosuchtype)",
    "DROP FUNCTION IF EXISTS nosuch(other.mood)",
    "DROP FUNCTION IF EXISTS other.nosuch(int[])",
    "DROP FUNCTION IF EXISTS nosuch(int[], pg_catalog.text, VARIADIC xs text[], double precision)",
    "DROP FUNCTION IF EXISTS a(int), b(IN x text, OUT y int, INOUT z bigint)",
    "DROP PROCEDURE IF EXISTS nosuch",
    "DROP PROCEDURE IF EXISTS nosuch(int)",
    "DROP ROUTINE IF EXISTS nosuch(int)",
    "DROP AGGREGATE IF EXISTS nosuch(int)",
    "DROP AGGREGATE IF EXISTS nosuch(*)",
    "DROP DOMAIN IF EXISTS nosuch",
    "DROP DOMAIN IF EXISTS public.nosuch, other.nosuch CASCADE",
    "DROP TRIGGER IF EXISTS t ON nosuch",
    "DROP TRIGGER IF EXISTS t ON visits",
    "DROP TRIGGER IF EXISTS t ON public.visits",
    "DROP TRIGGER IF EXISTS t ON pg_class",
    "DROP TRIGGER IF EXISTS t ON other.nosuch CASCADE",
    "DROP RULE IF EXISTS r ON nosuch",
    "DROP RULE IF EXISTS r ON visits",
    "DROP POLICY IF EXISTS p ON visits",
    "DROP EXTENSION IF EXISTS nosuch",
    'DROP EXTENSION IF EXISTS "uuid-ossp", postgis CASCADE',
    "DROP FOREIGN TABLE IF EXISTS nosuch",
    "DROP SERVER IF EXISTS nosuch CASCADE",
    "DROP PUBLICATION IF EXISTS nosuch",
    "DROP SUBSCRIPTION IF EXISTS nosuch",
    "DROP EVENT TRIGGER IF EXISTS nosuch",
    "DROP STATISTICS IF EXISTS nosuch, public.other",
    "DROP TYPE IF EXISTS nosuch",
    "DROP VIEW IF EXISTS nosuch",
    "DROP MATERIALIZED VIEW IF EXISTS public.nosuch",
    "DROP VIEW IF EXISTS other.nosuch",
    "DROP INDEX IF EXISTS other.nosuch, public.nosuch",
    "DROP TYPE IF EXISTS other.nosuch, public.nosuch",
    "DROP INDEX IF EXISTS nosuch",
    "DROP SCHEMA IF EXISTS nosuch",
    "DROP ROLE IF EXISTS nosuch",
    "DROP DATABASE IF EXISTS nosuch",
    # wrong ones
    "DROP SEQUENCE IF EXISTS",
    "DROP SEQUENCE IF EXISTS a b",
    "DROP TRIGGER IF EXISTS t",
    "DROP FUNCTION IF EXISTS nosuch(int",
    "DROP FUNCTION IF EXISTS nosuch(,)",
    "DROP EXTENSION IF EXISTS a.b",
)


def _told(connection: psycopg.Connection[Any], statement: str) -> Any:
    notices: list[tuple[str | None, ...]] = []

    def hear(notice: psycopg.errors.Diagnostic) -> None:
        notices.append((notice.severity, notice.sqlstate, notice.message_primary))

    connection.add_notice_handler(hear)
    try:
        return connection.execute(statement).statusmessage, notices
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary, error.diag.statement_position, notices
    finally:
        connection.remove_notice_handler(hear)


@pytest.mark.parametrize("statement", _STATEMENTS)
def test_what_is_not_there_is_passed_over(ours: Address, theirs: Address, statement: str) -> None:
    found = []
    for address in (ours, theirs):
        with psycopg.connect(address.conninfo, autocommit=True) as connection:
            found.append(_told(connection, statement))
    assert found[0] == found[1]


def test_it_is_told_at_once_in_a_transaction(ours: Address, theirs: Address) -> None:
    found = []
    for address in (ours, theirs):
        with psycopg.connect(address.conninfo) as connection:
            found.append([_told(connection, "DROP SEQUENCE IF EXISTS nosuch"), connection.info.transaction_status])
            connection.rollback()
            connection.read_only = True
            found[-1].append(_told(connection, "DROP SEQUENCE IF EXISTS nosuch"))
    assert found[0] == found[1]
    assert found[0][0] == (
        "DROP SEQUENCE", [("NOTICE", "00000", 'sequence "nosuch" does not exist, skipping')]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("DROP SEQUENCE nosuch", "0A000", "DROP SEQUENCE is not supported"),
        ("DROP EVENT TRIGGER nosuch", "0A000", "DROP EVENT TRIGGER is not supported"),
        ("DROP FUNCTION nosuch(int)", "42883", "function nosuch(integer) does not exist"),
        ("DROP FUNCTION IF EXISTS lower(text)", "0A000", "DROP FUNCTION of a built-in function is not supported"),
        ("DROP SEQUENCE IF EXISTS visits", "42809", '"visits" is not a sequence'),
        ("DROP FOREIGN TABLE IF EXISTS public.visits", "42809", '"visits" is not a foreign table'),
    ],
)
def test_what_is_something_else_or_unconditional_is_refused(
    ours: Address, statement: str, sqlstate: str, message: str
) -> None:
    with psycopg.connect(ours.conninfo, autocommit=True) as connection:
        assert _told(connection, statement)[:2] == (sqlstate, message)
