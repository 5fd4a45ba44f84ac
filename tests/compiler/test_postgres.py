"""The examples' answers, asked of a real PostgreSQL: what the table says of PostgreSQL is what PostgreSQL does."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from mvserver.compiler.capabilities import all_capabilities
from mvserver.compiler.capabilities.cast_examples import CAST_EXAMPLES

EXAMPLES = [
    *((entry.name, each) for entry in all_capabilities() for each in entry.examples if each.postgres),
    *(("cast", each) for each in CAST_EXAMPLES if each.postgres),
]


@pytest.mark.postgres
def test_postgresql_agrees_with_every_example(postgres_server: Any) -> None:
    wrong: list[str] = []
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, example in EXAMPLES:
            try:
                row = connection.execute(f"SELECT CAST(({example.sql}) AS text)").fetchone()
            except psycopg.Error as error:
                if error.sqlstate != example.error:
                    wrong.append(f"{name}: {example.sql} failed with {error.sqlstate} {error}")
                continue
            value = row[0] if row else None
            if example.error is not None or value != example.expected:
                wrong.append(f"{name}: {example.sql} gave {value!r}, not {example.error or example.expected!r}")
    assert not wrong, "\n".join(wrong)
