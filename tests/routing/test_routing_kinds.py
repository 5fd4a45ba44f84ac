"""Every statement class has one row, and a handler's fields are those of its result."""

from __future__ import annotations

import pytest
from routing_fakes import Bench

from mvserver.errors import SqlError
from mvserver.routing.kinds import ROWS, Kind
from mvserver.sql import parse_one
from mvserver.sql.statements.base import Statement

CLASSES = Statement.__subclasses__()


def test_every_statement_has_a_row_and_every_row_a_statement() -> None:
    assert set(ROWS) == set(CLASSES)
    assert len(CLASSES) > 45


def test_the_session_room_has_its_own_and_nothing_else() -> None:
    for row in ROWS.values():
        assert (row.handler is None) == (row.kind in (Kind.SESSION, Kind.PULL))


@pytest.mark.parametrize(
    "text",
    [
        "LIST STORES", "DESCRIBE STORE k", "LIST ENTITIES IN STORE k", "DESCRIBE ENTITY clicks IN STORE k",
        "LIST DATABASES", "LIST SCHEMAS", "LIST RELATIONS", "DESCRIBE RELATION clicks",
        "DESCRIBE RELATION COLUMNS clicks", "LIST QUERIES", "EXPLAIN SELECT 1",
        "PRINT ENTITY clicks IN STORE k LIMIT 1", "DESCRIBE CREATE MATERIALIZED VIEW v AS SELECT url FROM clicks",
    ],
)  # fmt: skip
def test_described_fields_are_the_fields_of_the_result(filled: Bench, text: str) -> None:
    fields = filled.router.fields(parse_one(text), filled.context)
    result = filled.result(text)
    assert fields is not None
    assert result.fields == fields


def test_statements_of_the_session_are_not_the_routers(filled: Bench) -> None:
    assert filled.router.kind(parse_one("SHOW ALL")) is Kind.SESSION
    assert filled.router.kind(parse_one("SELECT 1")) is Kind.PULL
    assert filled.router.fields(parse_one("CREATE DATABASE d"), filled.context) is None
    with pytest.raises(SqlError, match="XX000"):
        filled.router.execute(parse_one("SHOW ALL"), filled.context)
