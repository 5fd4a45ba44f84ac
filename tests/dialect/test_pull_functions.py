"""The table of pull queries' functions: its examples are PostgreSQL's answers and ours, and its lowerings are there."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import psycopg
import pytest

from mvserver.pgcatalog.macros import STATEMENTS
from mvserver.sql.pull_functions import GROUPS, table
from mvserver.sql.pull_table.model import PullFunction
from mvserver.sql.worked_examples import Example
from tests.services.postgres import PostgresServer
from tests.serving.world import World

_EXAMPLES = [(function, example) for function in table().values() for example in function.examples]
_THE_SESSIONS_OWN = frozenset({"Session and server", "Catalog"})
_WITHOUT = frozenset({
    "_pg_expandarray", "aclexplode", "current_time", "enum_first", "enum_last", "enum_range",
    "localtime", "pg_options_to_table", "pg_partition_ancestors", "pg_partition_tree", "ts_token_type",
})  # fmt: skip
"""Of other kinds: they need a type of the user's, a catalog, or a type that ours has not."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("functions"))
    yield made
    made.close()


def test_each_function_stands_there_once() -> None:
    names = [function.name for group in GROUPS.values() for function in group]
    assert len(names) == len(set(names)) == len(table()) > 300


def test_each_function_of_values_has_an_example() -> None:
    listed = [each for title, group in GROUPS.items() if title not in _THE_SESSIONS_OWN for each in group]
    assert {each.name for each in listed if not each.examples} == _WITHOUT


@pytest.mark.parametrize(("function", "example"), _EXAMPLES, ids=lambda each: getattr(each, "name", "is"))
def test_an_example_is_answered_as_it_says(world: World, function: PullFunction, example: Example) -> None:
    assert world.value(f"SELECT ({example.sql})::text AS x") == example.expected


@pytest.mark.postgres
def test_the_examples_are_postgresqls_own(postgres_server: PostgresServer) -> None:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        wrong = []
        for function, example in _EXAMPLES:
            row = connection.execute(f"SELECT ({example.sql})::text").fetchone()  # type: ignore[arg-type]
            if row != (example.expected,):
                wrong.append((function.name, example, row))
    assert wrong == []


def test_lowerings_to_another_name_name_what_duckdb_or_a_macro_is() -> None:
    with duckdb.connect() as connection:
        known = {name for (name,) in connection.execute("SELECT function_name FROM duckdb_functions()").fetchall()}
    macros = {text.removeprefix("CREATE OR REPLACE MACRO {system}.fn.").partition("(")[0] for text in STATEMENTS}
    assert [each for each in table().values() if each.duckdb and each.duckdb not in known | macros] == []


def test_a_macro_is_said_once() -> None:
    names = [
        text.removeprefix("CREATE OR REPLACE MACRO {system}.fn.").partition("(")[0]
        for text in STATEMENTS
        if text.startswith("CREATE OR REPLACE MACRO")
    ]
    assert sorted({name for name in names if names.count(name) > 1}) == []
