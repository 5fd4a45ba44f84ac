"""Sub-queries, WITH, DISTINCT and grouping sets: each means the plan of the same query written without them."""

from __future__ import annotations

import pytest

from mvserver import limits
from mvserver.compiler.changelogs import written_key
from mvserver.compiler.explain import explain
from mvserver.compiler.plans import Aggregation, Groups, Projection
from mvserver.errors import SqlError
from tests.compiler.harness import compiled

SAME = [
    ("SELECT a FROM (SELECT i4 AS a FROM everything) t", "SELECT i4 AS a FROM everything"),
    ("SELECT * FROM (SELECT i4 + 1 AS a, s FROM everything) t", "SELECT i4 + 1 AS a, s FROM everything"),
    ("SELECT t.a * 2 AS b FROM (SELECT i4 + 1 AS a FROM everything) AS t", "SELECT (i4 + 1) * 2 AS b FROM everything"),
    ("SELECT x, y FROM (SELECT i4, s FROM everything) t (x, y)", "SELECT i4 AS x, s AS y FROM everything"),
    ("SELECT x, s FROM everything AS e (x1, x2, x3, x)", "SELECT i4 AS x, s FROM everything"),
    ("SELECT st.a FROM (SELECT st FROM everything) t", "SELECT st.a FROM everything"),
    (
        "WITH a AS (SELECT i4 AS n, s FROM everything), b (m, s) AS (SELECT n + 1, s FROM a) "
        "SELECT s, sum(m) AS total FROM b GROUP BY s",
        "SELECT s, sum(i4 + 1) AS total FROM everything GROUP BY s",
    ),
    (
        "WITH everything AS (SELECT i4 FROM everything) SELECT i4 FROM everything",
        "SELECT i4 FROM everything",
    ),
    (
        "SELECT k, n FROM (SELECT s AS k, count(*) AS n FROM everything GROUP BY s) t",
        "SELECT s AS k, count(*) AS n FROM everything GROUP BY s",
    ),
    (
        "SELECT k, n * 2 AS d FROM (SELECT s AS k, count(*) AS n FROM everything GROUP BY s) t WHERE n > 5",
        "SELECT s AS k, count(*) * 2 AS d FROM everything GROUP BY s HAVING count(*) > 5",
    ),
    (
        "SELECT upper(k) AS u, n FROM (SELECT s AS k, count(*) AS n FROM everything GROUP BY s) t",
        "SELECT upper(s) AS u, count(*) AS n FROM everything GROUP BY s",
    ),
    ("SELECT at FROM (SELECT rowtime() AS at FROM everything) t", "SELECT rowtime() AS at FROM everything"),
    (
        "SELECT m.topic FROM (SELECT rowmetadata() AS m FROM everything) t WHERE m->offset > 1",
        "SELECT rowmetadata()->topic AS topic FROM everything WHERE rowmetadata()->offset > 1",
    ),
    ("SELECT DISTINCT s, i4 FROM everything", "SELECT s, i4 FROM everything GROUP BY s, i4"),
    ("SELECT DISTINCT f8 AS a, f8 AS b FROM everything", "SELECT f8 AS a, f8 AS b FROM everything GROUP BY f8"),
    ("SELECT DISTINCT s, max(b2) AS m FROM (SELECT s, i4 AS b2 FROM everything) t GROUP BY s",
     "SELECT s, max(i4) AS m FROM everything GROUP BY s"),
    (
        "SELECT s FROM (SELECT DISTINCT s, i4 FROM everything) t WHERE i4 > 1",
        "SELECT s FROM everything GROUP BY s, i4 HAVING i4 > 1",
    ),
    (
        "SELECT e FROM (SELECT f8 AS e, count(*) AS n FROM everything GROUP BY f8) t WHERE e > 0",
        "SELECT f8 AS e, 1 AS x FROM everything GROUP BY f8 HAVING f8 > 0",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("nested", "flat"), SAME, ids=[each[0] for each in SAME])
def test_the_same_as_the_flat_query(nested: str, flat: str) -> None:
    ours, other = compiled(nested), compiled(flat)
    names = [output.name for output in ours.outputs]
    assert ours.outputs == tuple(output for output in other.outputs if output.name in names)
    assert (ours.scan, ours.where) == (other.scan, other.where)
    assert getattr(ours, "keys", ()) == getattr(other, "keys", ())
    assert getattr(ours, "having", None) == getattr(other, "having", None)


def test_the_inner_condition_guards_the_outer_one() -> None:
    plan = compiled("SELECT q FROM (SELECT 10 / i4 AS q FROM everything WHERE i4 <> 0) t WHERE q > 2")
    lines = "\n".join(explain(plan))
    assert "(CASE WHEN (`i4` <> 0) THEN " in lines
    assert "ELSE CAST(FALSE AS BOOLEAN) END)" in lines or "ELSE FALSE END)" in lines, lines


def test_properties_belong_to_the_stream_inside() -> None:
    plan = compiled("SELECT n FROM (SELECT i4 AS n FROM everything WITH ('starting.position' = 'latest') e) t")
    assert plan.scan.starting_position == "latest"


WRONG = [
    ("SELECT b FROM (SELECT i4 AS a FROM everything) t", "42703", 'column "b" does not exist'),
    ("SELECT everything.i4 FROM (SELECT i4 FROM everything) t", "42P01",
     'missing FROM-clause entry for table "everything"'),
    ("SELECT a FROM (SELECT i4 FROM everything) t (a, b)", "42P10",
     'table "t" has 1 columns available but 2 columns specified'),
    ("SELECT a, count(*) FROM (SELECT i4 + 1 AS a, s FROM everything) t GROUP BY s", "42803",
     'column "t.a" must appear in the GROUP BY clause or be used in an aggregate function'),
    ("SELECT n, count(*) FROM (SELECT count(*) AS n FROM everything GROUP BY s) t GROUP BY s", "42703",
     'column "s" does not exist'),
    ("SELECT count(*) FROM (SELECT count(*) AS n FROM TUMBLE(everything, SIZE 1 MINUTES) GROUP BY s) t", "42803",
     "an aggregation over TUMBLE must be grouped by window_start and window_end"),
    ("SELECT max(d) FROM (SELECT max(c) AS d FROM (SELECT max(b) AS c FROM (SELECT max(a) AS b FROM "
     "(SELECT count(*) AS a FROM everything) t) t) t) t", "54001", "aggregates are nested more than 4 levels deep"),
    ("SELECT DISTINCT arr FROM everything", "0A000", "SELECT DISTINCT a value of type integer[] is not supported"),
    ("WITH a AS (SELECT i4 FROM everything) SELECT s FROM everything", "0A000", 'WITH query "a" is never read'),
    ("SELECT upper(s) AS u, count(*) FROM everything GROUP BY ROLLUP (s)", "0A000",
     "function upper is not supported over aggregates"),
    ("SELECT grouping(i4) FROM everything GROUP BY ROLLUP (s)", "42803",
     "arguments to GROUPING must be grouping expressions of the associated query level"),
    ("SELECT s FROM everything WHERE grouping(s) = 0 GROUP BY s", "42803",
     "grouping operations are not allowed in WHERE"),
    ("SELECT i1 FROM everything GROUP BY CUBE (i1, i2, i4, i8, s, b, d)", "54001",
     "too many grouping sets present (maximum 64)"),
    ("SELECT rowtime() FROM (SELECT i4 FROM everything) t", "0A000",
     "rowtime() is only supported where FROM names one stream or changelog"),
    ("SELECT rowtime(), count(*) FROM everything", "42803",
     'column "rowtime()" must appear in the GROUP BY clause or be used in an aggregate function'),
    ("SELECT rowmetadata()->offset FROM (SELECT i4 FROM everything) t", "0A000",
     "rowmetadata() is only supported where FROM names one stream or changelog"),
    ("SELECT rowmetadata()->offset FROM everything a JOIN everything b WITHIN 1 MINUTE ON a.s = b.s", "0A000",
     "rowmetadata() is only supported where FROM names one stream or changelog"),
    ("SELECT rowmetadata()->place FROM everything", "42703",
     'column "place" not found in data type struct<"topic" varchar, "offset" bigint>'),
    ("SELECT rowmetadata()->offset, count(*) FROM everything", "42803",
     'column "rowmetadata()" must appear in the GROUP BY clause or be used in an aggregate function'),
    ("WITH a AS (SELECT x FROM b), b AS (SELECT 1 AS x FROM everything) SELECT x FROM a", "42P01", None),
    ("WITH a AS (SELECT i4 FROM everything) SELECT i4 FROM a WITH ('timestamp' = 'i4')", "0A000",
     "WITH (...) after a WITH query is not supported in a continuous query"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "sqlstate", "message"), WRONG, ids=[each[0] for each in WRONG])
def test_refused(sql: str, sqlstate: str, message: str | None) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(sql)
    assert caught.value.sqlstate == sqlstate
    assert message is None or caught.value.message == message
    assert caught.value.hint or sqlstate != "0A000"
    assert caught.value.position is not None


def test_growth_by_levels_is_bounded() -> None:
    doubling = "SELECT i4 AS a FROM everything"
    for _ in range(18):
        doubling = f"SELECT a + a AS a FROM ({doubling}) t"
    with pytest.raises(SqlError) as caught:
        compiled(doubling)
    assert caught.value.sqlstate == "54001"
    chain = ", ".join(f"q{i} AS (SELECT i4 FROM {f'q{i - 1}' if i else 'everything'})" for i in range(200))
    with pytest.raises(SqlError) as caught:
        compiled(f"WITH {chain} SELECT i4 FROM q199")
    assert caught.value.message == f"queries are nested more than {limits.QUERY_LEVELS_MAX} levels deep"


def test_groups_can_be_grouped_again() -> None:
    inner = "SELECT s, i4 AS i, count(*) AS n, max(i8) AS m FROM everything GROUP BY s, i4 HAVING min(f8) > 0"
    plan = compiled(f"SELECT n + 1 AS b, sum(m) AS total FROM ({inner}) AS t (name) WHERE name <> 'x' GROUP BY 1")
    assert isinstance(plan, Aggregation)
    assert (plan.scan.kind, plan.scan.primary_key) == ("changelog", ("key 0", "key 1"))
    assert [column.name for column in plan.scan.columns] == ["key 0", "key 1", "0.s", "2.n", "3.m", "rowtime"]
    groups = plan.scan.derived
    assert isinstance(groups, Groups)
    assert [call.function.value for call in groups.plan.aggregates] == ["count_rows", "max", "min"]
    assert groups.window_end is None


def test_what_nobody_reads_of_groups_is_not_kept() -> None:
    plan = compiled("SELECT max(m) FROM (SELECT s, max(i8) AS m, avg(f8) AS a FROM everything GROUP BY s) AS t")
    groups = plan.scan.derived
    assert isinstance(groups, Groups)
    assert [output.name for output in groups.plan.outputs] == ["1.m"]
    assert [call.function.value for call in groups.plan.aggregates] == ["max"]


def test_distinct_over_groups_groups_them_again_where_a_key_is_left_out() -> None:
    plan = compiled("SELECT DISTINCT count(*) AS n FROM everything GROUP BY s")
    assert isinstance(plan.scan.derived, Groups)
    assert compiled("SELECT DISTINCT s, count(*) AS n FROM everything GROUP BY s").scan.derived is None
    over = compiled("SELECT DISTINCT n FROM (SELECT s, count(*) AS n FROM everything GROUP BY s) AS t WHERE n > 1")
    assert isinstance(over.scan.derived, Groups)
    assert over.scan.derived.plan.having is not None


def test_the_number_of_a_grouping_set_passes_through_a_sub_query() -> None:
    sets = "SELECT grouping(s, i4) AS l, count(*) AS n FROM everything GROUP BY ROLLUP (s, i4)"
    plan = compiled(f"SELECT n FROM ({sets}) AS t WHERE l > 0")
    assert plan.scan.derived is None
    again = compiled(f"SELECT l, sum(n) FROM ({sets}) AS t GROUP BY l")
    assert again.scan.primary_key == ("key 0", "key 1", "key 2")


def test_groups_of_a_window_have_the_time_of_its_end() -> None:
    inner = "SELECT window_end, window_start, count(*) AS n FROM TUMBLE(everything, SIZE 1 MINUTES) GROUP BY 1, 2"
    plan = compiled(f"SELECT last_value(n) AS latest FROM ({inner}) AS t")
    assert isinstance(plan.scan.derived, Groups)
    assert plan.scan.derived.window_end == 0


def test_groups_without_a_time_have_no_last_one() -> None:
    with pytest.raises(SqlError) as caught:
        compiled("SELECT last_value(n) FROM (SELECT count(*) AS n FROM everything GROUP BY s) AS t")
    assert (caught.value.sqlstate, caught.value.message) == (
        "0A000", "aggregate last_value is not supported over groups without an event time",
    )  # fmt: skip
    assert caught.value.hint


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s, upper(max(s)) || count(*) AS u FROM everything GROUP BY s HAVING length(max(s)) > 1",
        "SELECT k, upper(m) || n AS u FROM (SELECT s AS k, max(s) AS m, count(*) AS n FROM everything GROUP BY s) t "
        "WHERE length(m) > 1",
    ],
)
def test_what_duckdb_cannot_finish_is_computed_over_the_changes_of_groups(sql: str) -> None:
    plan = compiled(sql)
    assert isinstance(plan, Projection)
    assert isinstance(plan.scan.derived, Groups)
    assert plan.where is not None
    assert written_key(plan) == (plan.outputs[0].name,)


def test_a_key_that_is_a_function_of_others_tells_no_rows_apart() -> None:
    plan = compiled("SELECT s, upper(s) AS u, CASE WHEN count(*) > 1 THEN lower(s) END AS l FROM everything GROUP BY s")
    assert isinstance(plan, Aggregation)
    assert (len(plan.keys), plan.further) == (3, 2)
    assert written_key(plan) == ("s",)
