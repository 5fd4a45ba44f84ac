"""Finishing functions: DuckDB's answer is Spark's, over seeded values of every type they take, edges included."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from mvserver.compiler import lower_duckdb, lower_spark
from mvserver.compiler.capabilities.spark_text import identifier
from mvserver.compiler.expressions import (
    Call,
    Case,
    Cast,
    ColumnReference,
    Expression,
    KeyReference,
    children,
)
from mvserver.compiler.plans import ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.sql import types as t
from tests.compiler.harness import bound

SEED = int(os.environ.get("MVSERVER_TEST_SEED", "20240517"))
COLUMNS = (
    ScanColumn("k", t.INTEGER),
    ScanColumn("c", t.BIGINT),  # a count: never zero
    ScanColumn("i", t.INTEGER),
    ScanColumn("l", t.BIGINT),
    ScanColumn("n", t.decimal(38, 2)),  # SUM(numeric(10,2))
    ScanColumn("h", t.decimal(38, 0)),  # SUM(bigint)
    ScanColumn("a", t.decimal(38, 6)),  # AVG
    ScanColumn("p", t.decimal(12, 4)),
    ScanColumn("f", t.DOUBLE),
    ScanColumn("r", t.FLOAT),
    ScanColumn("b", t.BOOLEAN),
    ScanColumn("s", t.VARCHAR),
    ScanColumn("d", t.DATE),
)
RELATION = RelationShape("0", "postgres.public.v", "stream", COLUMNS)
EXPRESSIONS = [
    "i + 1", "i - l", "l * 2", "i / 7", "-i / 7", "l / c", "i % 7", "-l % c", "- i", "abs(l)", "n + a", "h - n",
    "n * p", "a * 1.5",
    "n / c", "h / c", "n * 1.0 / c", "a / p", "h * 1.0 / h", "p / nullif(n, 0)", "i * 1.0 / c", "1.00 / c",
    "100.0 * i / c",
    "round(n * 1.0 / c, 2)", "round(a, 3)", "round(p)", "ceil(p)", "floor(p)", "ceil(n)", "floor(-a)", "abs(n)", "-p",
    "f + 1", "f * i", "f / c", "f - r", "r * r", "r / nullif(r * r, 0)", "round(f)", "round(f, 2)", "round(f, 0)",
    "ceil(f)", "floor(f)", "abs(f)", "-f",
    "sqrt(abs(f))", "sqrt(c)", "i = c", "n > p", "f < i", "s = 'b'", "s >= 'a'", "d < DATE '2024-03-01'", "b AND i > 0",
    "b OR NOT b",
    "b IS TRUE", "b IS NOT FALSE", "i IS NULL", "f IS NOT NULL", "i IS DISTINCT FROM l", "n IS NOT DISTINCT FROM p",
    "i BETWEEN -10 AND c", "i IN (1, 2, NULL)", "s NOT IN ('a', 'b')", "coalesce(i, l, 0)", "coalesce(n, p)",
    "nullif(i, 0)",
    "greatest(i, l, 5)", "least(n, p, 1.5)", "greatest(f, 0)", "if(b, i, l)", "nvl(f, 0)",
    "CASE WHEN i > 0 THEN n WHEN i < 0 THEN p ELSE 0 END", "CASE i WHEN 1 THEN 'one' ELSE s END",
    "CAST(p AS integer)", "CAST(f AS bigint)", "CAST(r AS smallint)", "CAST(i AS double precision)",
    "CAST(n AS double precision)",
    "CAST(p AS decimal(10, 1))", "CAST(c AS decimal(20, 3))", "CAST(p AS real)", "isnan(f)",
]  # fmt: skip


def _row(rng: random.Random, index: int) -> tuple[object, ...]:
    def maybe(value: object) -> object:
        return None if rng.random() < 0.1 else value

    digits = 10 ** rng.randint(0, 9)
    doubles = [0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 0.005, 2.345, 1.005, 1e-7, 123456789.125, -33.335]
    return (
        index,
        rng.randint(1, digits),
        maybe(rng.choice([0, 1, -1, 7, rng.randint(-30000, 30000)])),
        maybe(rng.randint(-digits * 1000, digits * 1000)),
        maybe(Decimal(rng.randint(-digits * 100, digits * 100)).scaleb(-2)),
        maybe(Decimal(rng.choice([1, -1]) * rng.randint(1, digits * 10**6))),
        maybe(Decimal(rng.randint(-digits * 10**6, digits * 10**6)).scaleb(-6)),
        maybe(Decimal(rng.choice([1, -1]) * rng.randint(1, 320_000_000)).scaleb(-4)),
        maybe(rng.choice([*doubles, rng.uniform(-1000, 1000)])),
        maybe(rng.choice([0.5, 2.5, -1.5, rng.randint(-4000, 4000) / 8])),
        maybe(rng.random() < 0.5),
        maybe(rng.choice(["a", "b", "é", ""])),
        maybe(dt.date(2024, rng.randint(1, 12), 1)),
    )


def _as_keys(node: Expression) -> Expression:
    """Columns as keys: what a finishing expression sees."""
    names = [column.name for column in COLUMNS]
    if isinstance(node, ColumnReference):
        return KeyReference(node.type, names.index(node.name))
    if isinstance(node, Call):
        return Call(node.type, node.function, tuple(map(_as_keys, node.arguments)))
    if isinstance(node, Cast):
        return Cast(node.type, _as_keys(node.operand), node.safe)
    if isinstance(node, Case):
        return Case(
            node.type,
            tuple((_as_keys(test), _as_keys(value)) for test, value in node.branches),
            _as_keys(node.otherwise) if node.otherwise is not None else None,
        )
    assert not children(node)
    return node


def _same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and left == right


@pytest.mark.spark
def test_duckdb_finishes_as_spark_computes(spark: Any) -> None:
    print("seed", SEED)
    rng = random.Random(SEED)
    rows = [_row(rng, index) for index in range(200)]
    trees = [bound(text, RELATION) for text in EXPRESSIONS]
    schema = ", ".join(f"`{column.name}` {lower_spark.spark_type(column.type)}" for column in COLUMNS)
    frame = spark.createDataFrame(rows, schema)
    texts = [f"{lower_spark.lower(tree, identifier)} AS c{i}" for i, tree in enumerate(trees)]
    expected = frame.selectExpr("`k`", *texts).orderBy("k").collect()

    connection = duckdb.connect()
    names = [f'"{column.name}"' for column in COLUMNS]
    declared = ", ".join(
        f"{name} {lower_duckdb.duckdb_type(column.type)}" for name, column in zip(names, COLUMNS, strict=True)
    )
    connection.execute(f"CREATE TABLE v ({declared})")
    connection.executemany(f"INSERT INTO v VALUES ({', '.join('?' * len(COLUMNS))})", rows)
    wrong: list[str] = []
    for index, (text, tree) in enumerate(zip(EXPRESSIONS, trees, strict=True)):
        lowered = lower_duckdb.lower(_as_keys(tree), names.__getitem__, str)
        cursor = connection.execute(f"SELECT {lowered}, typeof({lowered}) FROM v ORDER BY k")
        for row, (value, type_) in zip(expected, cursor.fetchall(), strict=True):
            if type_.replace(" ", "") != lower_duckdb.duckdb_type(tree.type).replace("REAL", "FLOAT"):
                wrong.append(f"{text} has type {type_}, not {tree.type}")
                break
            if not _same(row[index + 1], value):
                wrong.append(f"{text} of {rows[row[0]]}: Spark {row[index + 1]!r}, DuckDB {value!r}")
                break
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "sqlstate"), [("i / 0", "22012"), ("p / 0", "22012"), ("f / 0", "22012"), ("i % 0", "22012"), ("sqrt(-1)",
    "2201F")]
)  # fmt: skip
def test_failures_in_duckdb_are_named(text: str, sqlstate: str) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE v AS SELECT 5::INTEGER i, 1.5::DECIMAL(12,4) p, 1::DOUBLE f")
    names = {"i": "i", "p": "p", "f": "f"}
    index = [column.name for column in COLUMNS]
    lowered = lower_duckdb.lower(_as_keys(bound(text, RELATION)), lambda at: names[index[at]], str)
    with pytest.raises(duckdb.Error, match=f"mvserver:{sqlstate}:"):
        connection.execute(f"SELECT {lowered} FROM v").fetchall()


@pytest.mark.parametrize("sql", ["upper(s)", "n % 3", "CAST(f AS decimal(10, 2))", "round(f, 9)", "CAST(i AS varchar)"])
def test_what_duckdb_cannot_finish_is_refused(sql: str) -> None:
    from mvserver.errors import SqlError

    with pytest.raises(SqlError) as caught:
        lower_duckdb.lower(_as_keys(bound(sql, RELATION)), str, str)
    assert caught.value.sqlstate == "0A000"


@pytest.mark.parametrize(
    ("type_", "sign"),
    [(type_, "/") for type_ in ("integer", "bigint", "numeric(10,2)", "real", "double precision")] + [("bigint", "%")],
)
def test_null_by_zero_is_null(type_: str, sign: str) -> None:
    """As of the sum over no rows by their count; PostgreSQL's operators are strict."""
    text = lower_duckdb.lower(bound(f"CAST(NULL AS {type_}) {sign} CAST(0 AS {type_})"), str, str)
    assert duckdb.execute(f"SELECT {text}").fetchall() == [(None,)]


def test_a_product_of_short_decimals_is_longer() -> None:
    text = lower_duckdb.lower(bound("2147483647 * CAST(99999999.99 AS numeric(10,2))"), str, str)
    assert duckdb.execute(f"SELECT {text}").fetchall() == [(Decimal("214748364678525163.53"),)]
