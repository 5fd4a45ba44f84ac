"""UNNEST: the names that it gives, what EXPLAIN says of it, and what is refused in PostgreSQL's words."""

from __future__ import annotations

import pytest

from mvserver.compiler.changelogs import result_key
from mvserver.compiler.compile import compile_select
from mvserver.compiler.explain import explain
from mvserver.compiler.expressions import Case, Literal
from mvserver.compiler.lower_spark import lower
from mvserver.compiler.plans import ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.dialect import parse_select
from tests.compiler.harness import EVERYTHING, compiled

ITEMS = RelationShape(
    "4",
    "postgres.public.baskets",
    "stream",
    (
        ScanColumn("id", t.INTEGER),
        ScanColumn("items", t.array(t.struct(("sku", t.VARCHAR), ("n", t.INTEGER)))),
        ScanColumn("unnest(0).0", t.INTEGER),
    ),
)
ROWS = RelationShape(
    "5", "postgres.public.rows", "changelog", EVERYTHING.columns, timestamp="ts", primary_key=("i4",), key_format="json"
)


def _names(sql: str) -> list[tuple[str, str]]:
    return [(column.name, str(column.type)) for column in compiled(sql).outputs]


def _over(relation: RelationShape, sql: str) -> object:
    return compile_select(parse_select(sql), lambda parts, position: relation, default_starting="earliest")


@pytest.mark.parametrize(
    ("source", "select", "names"),
    [
        (", UNNEST(e.arr) AS t(x)", "t.x", [("x", "INTEGER")]),
        (", UNNEST(arr) AS x", "x", [("x", "INTEGER")]),
        (", UNNEST(arr) x", "x.x", [("x", "INTEGER")]),
        (", UNNEST(arr)", "unnest", [("unnest", "INTEGER")]),
        (" CROSS JOIN UNNEST(arr) WITH ORDINALITY", "unnest.*", [("unnest", "INTEGER"), ("ordinality", "BIGINT")]),
        (" CROSS JOIN UNNEST(arr) WITH ORDINALITY AS t(x, o)", "o, x", [("o", "BIGINT"), ("x", "INTEGER")]),
        (" LEFT JOIN UNNEST(arr, ARRAY['a']) AS t(x, y) ON true", "t.*", [("x", "INTEGER"), ("y", "VARCHAR")]),
        (", LATERAL UNNEST(m) AS t", "key, value", [("key", "VARCHAR"), ("value", "INTEGER")]),
        (", UNNEST(m) AS t(a)", "t.*", [("a", "VARCHAR"), ("value", "INTEGER")]),
        (", UNNEST(arr) AS x, UNNEST(ARRAY[x, x + 1]) AS y", "y", [("y", "INTEGER")]),
        (", UNNEST(ARRAY[st]) AS i", "a, (i.inner).x AS x", [("a", "INTEGER"), ("x", "VARCHAR")]),
        (", UNNEST(arr) AS x", "rowtime() AS at, x", [("at", "BIGINT"), ("x", "INTEGER")]),
    ],
)
def test_columns(source: str, select: str, names: list[tuple[str, str]]) -> None:
    assert _names(f"SELECT {select} FROM everything AS e{source}") == names


def test_explain_shows_what_is_unnested() -> None:
    plan = compiled("SELECT s, x FROM everything LEFT JOIN UNNEST(arr) AS x ON true WHERE x > 1")
    assert "    Outer unnest of `arr` as `unnest(0).0` INTEGER" in explain(plan)
    assert "  Filter, by Spark:" in explain(plan)


def test_a_column_of_the_stream_keeps_its_name() -> None:
    plan = _over(ITEMS, 'SELECT "unnest(0).0" AS own, sku, n FROM baskets, UNNEST(items)')
    assert plan.scan.unnests[0].elements[0].name == "unnest(0).0."  # type: ignore[attr-defined]
    assert [str(output.type) for output in plan.outputs] == ["INTEGER", "VARCHAR", "INTEGER"]  # type: ignore[attr-defined]


def test_the_key_of_a_changelogs_elements() -> None:
    numbered = "SELECT i4, o, x FROM rows, UNNEST(arr) WITH ORDINALITY AS t(x, o)"
    assert result_key(_over(ROWS, numbered)) == ("i4", "o")  # type: ignore[arg-type]
    assert result_key(_over(ROWS, "SELECT i4, x FROM rows, UNNEST(arr) AS x")) == ()  # type: ignore[arg-type]
    outer = numbered.replace("rows,", "rows LEFT JOIN") + " ON true"
    assert result_key(_over(ROWS, outer)) == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "sqlstate", "message"),
    [
        ("everything, UNNEST(i4) AS t", "42883", "function unnest(integer) does not exist"),
        ("everything, UNNEST(nope) AS t", "42703", 'column "nope" does not exist'),
        ("everything, UNNEST(count(*)) AS t", "42803", "aggregate functions are not allowed in functions in FROM"),
        ("everything, UNNEST(arr) AS t(a, b)", "42P10", 'table "t" has 1 columns available but 2 columns specified'),
        ("everything AS t, UNNEST(arr) AS t", "42712", 'table name "t" specified more than once'),
        ("everything RIGHT JOIN UNNEST(arr) AS t ON true", "42P10", "invalid reference to FROM-clause entry"),
        ("everything LEFT JOIN UNNEST(arr) AS t ON t > 1", "0A000", "LEFT JOIN UNNEST with a condition is not"),
        ("everything JOIN UNNEST(arr) AS t USING (i4)", "0A000", "USING is not supported"),
        ("everything JOIN UNNEST(arr) AS t WITHIN 1 MINUTE ON true", "42601", "WITHIN is not allowed"),
        ("UNNEST(ARRAY[1]) AS t, everything", "0A000", "UNNEST without a stream before it"),
        ("everything, LATERAL (SELECT 1) AS t", "0A000", "LATERAL is only supported before UNNEST"),
        ("everything, LATERAL clicks", "0A000", "LATERAL is only supported before UNNEST"),
        ("everything, UNNEST() AS t", "42601", "syntax error"),
        (
            "(SELECT s, array_agg(i4) AS a FROM everything GROUP BY s) AS q, UNNEST(a) AS t",
            "0A000",
            "UNNEST over a sub",
        ),
    ],
)
def test_refusals(source: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as raised:
        compiled(f"SELECT 1 AS one FROM {source}")
    assert raised.value.sqlstate == sqlstate
    assert raised.value.message.startswith(message)
    assert raised.value.position is not None


def test_a_changelog_is_joined_before_its_arrays_are_taken_apart() -> None:
    def resolve(parts: tuple[str, ...], position: int | None) -> RelationShape:
        return ROWS if parts[-1] == "rows" else EVERYTHING

    inner = "(SELECT i4, x FROM rows, UNNEST(arr) AS x) AS r"
    with pytest.raises(SqlError, match="a join with UNNEST over a changelog is not supported"):
        compile_select(
            parse_select(f"SELECT e.s, r.x FROM everything AS e JOIN {inner} ON e.i4 = r.i4"),
            resolve,
            default_starting="earliest",
        )
    text = "SELECT e.s, x FROM everything AS e JOIN rows AS r ON e.i4 = r.i4, UNNEST(r.arr) AS x"
    plan = compile_select(parse_select(text), resolve, default_starting="earliest")
    assert {column.name for column in plan.scan.columns} == {"e.s", "r.arr", "rowtime"}
    assert any("Unnest of `r.arr`" in line for line in explain(plan))


def test_the_condition_of_a_join_is_evaluated_where_that_of_the_sub_query_holds() -> None:
    plan = compiled("SELECT x FROM (SELECT * FROM everything WHERE i4 <> 0) AS q JOIN UNNEST(arr) AS x ON 1 / i4 > x")
    assert isinstance(plan.where, Case)  # type: ignore[attr-defined]
    ((guard, condition),) = plan.where.branches  # type: ignore[attr-defined]
    assert lower(guard, str) == "(i4 <> 0)"
    assert "unnest(0).0" in lower(condition, str)
    assert plan.where.otherwise == Literal(t.BOOLEAN, False)  # type: ignore[attr-defined]
