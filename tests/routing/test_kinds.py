"""Every statement class has one row, and a handler's fields are those of its result."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from mvserver.routing.handler_rows import ROWS
from mvserver.sql import parse_one
from mvserver.sql.statements.base import Kind, Statement
from tests.routing.fakes import Bench


def _below(known: type[Statement]) -> list[type[Statement]]:
    return [found for each in known.__subclasses__() for found in (each, *_below(each))]


CLASSES = _below(Statement)


def test_every_statement_has_a_row_except_those_of_the_session_room() -> None:
    assert set(ROWS) == {each for each in CLASSES if each.kind_of_statement not in (Kind.SESSION, Kind.PULL)}
    assert len(CLASSES) > 45


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
    assert parse_one("SHOW ALL").kind_of_statement is Kind.SESSION
    assert parse_one("SELECT 1").kind_of_statement is Kind.PULL
    assert filled.router.fields(parse_one("CREATE DATABASE d"), filled.context) is None
    with pytest.raises(SqlError, match="XX000"):
        filled.router.execute(parse_one("SHOW ALL"), filled.context)
