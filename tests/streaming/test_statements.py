"""Statements gathered to one: their parameters, the names of their rows, and what a rollback leaves."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from spark_sinks.duckdb.statements import Statements, Together


@pytest.fixture
def cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("CREATE TABLE a (x BIGINT, y VARCHAR); CREATE TABLE b (x BIGINT, y VARCHAR)")
        made.execute("CREATE TABLE c (k VARCHAR PRIMARY KEY, n BIGINT); INSERT INTO c VALUES ('one', 1), ('two', 2)")
        yield made


def rows(*numbers: int) -> pa.Table:
    return pa.table({"x": pa.array(numbers, pa.int64())})


def of(cursor: duckdb.DuckDBPyConnection, table: str) -> list[tuple[object, ...]]:
    return cursor.execute(f"FROM {table} ORDER BY ALL").fetchall()


def test_each_statement_has_its_own_parameters_and_rows(cursor: duckdb.DuckDBPyConnection) -> None:
    together = Together(Statements(cursor))
    for turn in range(3):
        together.add(f"INSERT INTO a SELECT x, $1 FROM {together.name(rows(turn, 10))}", [f"a{turn}"])
        together.add(f"INSERT INTO b SELECT x + $2, $1 FROM {together.name(rows(20 + turn))}", ["b", 100])
        together.add("UPDATE c SET n = n + $2 WHERE k = $1", ["two", 5])
        together.execute()
    together.execute()  # nothing more
    assert of(cursor, "a") == [(0, "a0"), (1, "a1"), (2, "a2"), (10, "a0"), (10, "a1"), (10, "a2")]
    assert of(cursor, "b") == [(120, "b"), (121, "b"), (122, "b")]
    assert of(cursor, "c") == [("one", 1), ("two", 17)]


def test_what_is_forgotten_is_written_by_nobody(cursor: duckdb.DuckDBPyConnection) -> None:
    statements = Statements(cursor)
    together = Together(statements)
    cursor.execute("BEGIN")
    together.add(f"INSERT INTO a SELECT x, $1 FROM {together.name(rows(1))}", ["gone"])
    cursor.execute("ROLLBACK")
    together.forget()
    statements.forget_names()
    cursor.execute("BEGIN")
    together.add(f"INSERT INTO a SELECT x, $1 FROM {together.name(rows(2))}", ["there"])
    together.add("INSERT INTO b VALUES ($1, NULL)", [3])
    together.execute()
    cursor.execute("COMMIT")
    assert of(cursor, "a") == [(2, "there")]
    assert of(cursor, "b") == [(3, None)]


def test_an_error_undoes_all_and_is_not_tried_again(cursor: duckdb.DuckDBPyConnection) -> None:
    together = Together(Statements(cursor))
    together.add("INSERT INTO a VALUES ($1, 'x')", [1])
    together.add("INSERT INTO c VALUES ($1, 3)", ["one"])
    with pytest.raises(duckdb.ConstraintException):
        together.execute()
    together.add("INSERT INTO b VALUES ($1, 'x')", [1])
    together.execute()
    assert of(cursor, "a") == []
    assert of(cursor, "b") == [(1, "x")]


def test_names_in_use_are_given_to_nobody_else(cursor: duckdb.DuckDBPyConnection) -> None:
    """More tables of different columns than names are kept for."""
    statements = Statements(cursor)
    together = Together(statements)
    together.add(f"INSERT INTO a SELECT x, 'first' FROM {together.name(rows(7))}", [])
    for number in range(250):
        with statements.named(pa.table({f"other_{number}": [1]})) as name:
            assert cursor.execute(f"FROM {name}").fetchall() == [(1,)]
    together.add("INSERT INTO b VALUES (8, NULL)", [])
    together.execute()
    assert of(cursor, "a") == [(7, "first")]
