"""What DuckDB is given for a pull query, as texts to read. Other tests compare the meaning with PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from mvserver.errors import SqlError
from tests.golden import check
from tests.serving.world import World

REWRITES = Path(__file__).with_name("rewrites.txt")


def test_the_texts_for_duckdb(world: World) -> None:
    def made(statement: str) -> str:
        try:
            return world.plan(statement).sql
        except SqlError as error:
            return f"{error.sqlstate} {error.message}"

    check(REWRITES, made)
