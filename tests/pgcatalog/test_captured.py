"""Statements that real clients sent to a real PostgreSQL 15 (psql 15, pgjdbc 42.7, SQLAlchemy 2.1, psycopg 3.3).

All run, with PostgreSQL's column names. Where ``rows`` is recorded, they are PostgreSQL's answer and ours is the same;
where it is not, the two catalogs differ by nature (tables against streams, sizes, comments).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pgcatalog.world import CatalogWorld

QUERIES: list[dict[str, Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("captured_queries.jsonl").read_text(encoding="utf-8").splitlines()
]


def _shown(rows: list[Any]) -> list[list[str | None]]:
    return [[None if value is None else str(value) for value in row] for row in rows]


@pytest.mark.parametrize(
    "query", [pytest.param(query, id=f"{number}:{query['command']}") for number, query in enumerate(QUERIES)]
)
def test_captured(world: CatalogWorld, query: dict[str, Any]) -> None:
    fields, rows = world.ask(query["sql"], query["parameters"])
    assert [field.name for field in fields] == query["names"]
    if "rows" in query:
        assert sorted(_shown(rows), key=str) == sorted(query["rows"], key=str)


def test_most_answers_are_compared() -> None:
    assert len(QUERIES) >= 150
    assert sum("rows" in query for query in QUERIES) >= 85
