"""JOIN in FROM: what the plan keeps of each side, and what is refused in which words."""

from __future__ import annotations

import pytest

from mvserver import limits
from mvserver.compiler.changelog_joins import nullable_key
from mvserver.compiler.compile import compile_select
from mvserver.compiler.derived import has_marks, scans
from mvserver.compiler.explain import explain
from mvserver.compiler.expressions import Case
from mvserver.compiler.lower_spark import lower as lower_spark
from mvserver.compiler.plans import (
    Aggregate,
    Aggregation,
    ChangelogJoin,
    ContinuousPlan,
    GroupJoin,
    Groups,
    IntervalJoin,
    JoinKind,
    Projection,
    ScanColumn,
    TemporalJoin,
    UnionAll,
)
from mvserver.compiler.shape import RelationShape
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.dialect import parse_select


def _stream(number: int, name: str, *columns: ScanColumn) -> RelationShape:
    return RelationShape(str(number), f"db.public.{name}", "stream", columns, timestamp="ts")


_STREAMS = {
    "orders": _stream(1, "orders", ScanColumn("id", t.BIGINT), ScanColumn("ts", t.BIGINT), ScanColumn("x", t.INTEGER)),
    "paid": _stream(2, "paid", ScanColumn("id", t.INTEGER), ScanColumn("ts", t.BIGINT), ScanColumn("y", t.DOUBLE)),
    "sent": _stream(3, "sent", ScanColumn("id", t.BIGINT), ScanColumn("ts", t.BIGINT), ScanColumn("a", t.VARCHAR)),
}


_STREAMS["people"] = RelationShape(
    "4",
    "db.public.people",
    "changelog",
    (ScanColumn("id", t.INTEGER), ScanColumn("city", t.VARCHAR)),
    primary_key=("id",),
)
_STREAMS["cities"] = RelationShape(
    "5",
    "db.public.cities",
    "changelog",
    (ScanColumn("name", t.VARCHAR), ScanColumn("land", t.VARCHAR), ScanColumn("size", t.BIGINT)),
    primary_key=("name",),
)


def compiled(text: str) -> ContinuousPlan:
    return compile_select(parse_select(text), lambda parts, position: _STREAMS[parts[-1]], default_starting="earliest")


def join_of(plan: ContinuousPlan) -> IntervalJoin:
    assert isinstance(plan.scan.derived, IntervalJoin)
    return plan.scan.derived


def test_sides_have_only_what_is_read() -> None:
    join = join_of(compiled("SELECT o.x, y + 1 AS z FROM orders AS o JOIN paid WITHIN 90 SECONDS ON o.id = paid.id"))
    assert join.kind is JoinKind.INNER
    assert join.within_us == 90_000_000
    assert [output.name for output in join.left.outputs] == ["o.x"]
    assert [output.name for output in join.right.outputs] == ["paid.y"]
    assert [str(side.keys[0].type) for side in join.sides] == ["BIGINT", "BIGINT"], "compared in their common type"
    assert [column.name for column in join.left.scan.columns] == ["id", "ts", "x"], "all decide what is rejected"


def test_equalities_may_stand_either_way_round() -> None:
    join = join_of(
        compiled("SELECT x FROM orders o JOIN sent s WITHIN 1 HOUR ON s.id = o.id AND cast(o.x AS VARCHAR) = s.a")
    )
    assert [len(side.keys) for side in join.sides] == [2, 2]


def test_what_else_an_inner_join_asks_is_a_condition_on_its_rows() -> None:
    plan = compiled("SELECT x FROM orders o JOIN paid p WITHIN 1 HOUR ON o.id = p.id AND x < y AND x > 0 WHERE y > 1")
    assert join_of(plan).residual is None
    assert explain(plan)[1:5] == [
        "  Output, by DuckDB:",
        "    x INTEGER = o.x",
        "  Filter, by DuckDB:",
        "    CASE WHEN ((CAST(o.x AS DOUBLE) < p.y) AND (o.x > 0)) THEN (p.y > 1.0) ELSE FALSE END",
    ]


def test_what_else_an_outer_join_asks_decides_what_matches() -> None:
    plan = compiled("SELECT x FROM orders o LEFT JOIN paid p WITHIN 1 HOUR ON o.id = p.id AND x < y")
    assert plan.where is None
    assert join_of(plan).residual is not None
    assert [output.name for output in join_of(plan).right.outputs] == ["p.y"], "the condition reads it"


def test_a_self_join_and_a_chain() -> None:
    own = compiled("SELECT a.x, b.x AS later FROM orders a JOIN orders b WITHIN 1 DAY ON a.id = b.id")
    assert [scan.relation for scan in scans(own.scan)] == ["db.public.orders"] * 2
    chain = compiled(
        "SELECT o.x, y, a FROM orders o JOIN paid p WITHIN 1 HOUR ON o.id = p.id "
        "LEFT JOIN sent s WITHIN 2 HOURS ON p.id = s.id"
    )
    assert [scan.relation for scan in scans(chain.scan)] == [f"db.public.{n}" for n in ("orders", "paid", "sent")]
    assert join_of(chain).kind is JoinKind.LEFT
    inner = join_of(chain).left.scan.derived
    assert isinstance(inner, IntervalJoin)
    assert [output.name for output in inner.right.outputs] == ["p.id", "p.y"]


def test_sides_may_be_sub_queries_and_the_result_grouped() -> None:
    plan = compiled(
        "SELECT o.id, count(*) AS n, sum(d) AS total FROM orders o "
        "JOIN (SELECT id AS key, y * 2 AS d FROM paid WHERE y > 0) p WITHIN 1 HOUR ON o.id = p.key GROUP BY o.id"
    )
    assert isinstance(plan, Aggregation)
    assert join_of(plan).right.where is not None


def test_the_plan_as_text() -> None:
    lines = explain(compiled("SELECT x, y FROM orders o FULL JOIN paid p WITHIN 5 MINUTES ON o.id = p.id AND x < y"))
    assert "  FULL JOIN WITHIN 5 MINUTES, by DuckDB" in lines
    assert "    Condition: (CAST(o.x AS DOUBLE) < p.y)" in lines
    assert lines.count("        Event time: column ts (sql)") == 2


def test_a_changelog_on_the_right_is_joined_as_of_event_time() -> None:
    plan = compiled("SELECT o.x, city FROM orders o LEFT JOIN people p ON o.id = p.id AND p.city = 'Rome'")
    join = plan.scan.derived
    assert isinstance(join, TemporalJoin)
    assert (join.kind, len(join.right.keys)) == (JoinKind.LEFT, 1)
    assert join.residual is not None
    assert plan.scan.kind == "stream", "its rows are only added"
    assert "  LEFT JOIN with the version valid at the event time, by DuckDB" in explain(plan)


def test_groups_on_the_right_are_joined_as_of_event_time() -> None:
    plan = compiled(
        "SELECT o.x, p.n FROM orders o LEFT JOIN (SELECT upper(city) AS u, city, count(*) AS n, sum(id) AS s "
        "FROM people WHERE id > 1 GROUP BY city HAVING count(*) > 2) p ON o.x::text = p.city AND x > p.n"
    )
    join = plan.scan.derived
    assert isinstance(join, GroupJoin)
    assert (join.kind, len(join.right.keys), join.residual is None) == (JoinKind.LEFT, 1, False)
    assert [output.name for output in join.groups.outputs] == ["p.2.n"], "what nobody reads is not made"
    assert [call.function for call in join.groups.aggregates] == [Aggregate.COUNT_ROWS]
    assert [output.name for output in join.right.outputs] == ["further key 0"]
    assert join.right.where is not None
    assert plan.scan.kind == "stream"
    lines = explain(plan)
    assert "  LEFT JOIN with the group as of the event time, by DuckDB" in lines
    assert "    Having: (agg0 > 2)" in lines


def test_what_is_computed_of_groups_is_computed_of_the_joined_rows() -> None:
    plan = compiled(
        "SELECT p.n FROM orders o JOIN (SELECT id, upper(count(*)::text) AS n FROM paid GROUP BY id) p ON o.id = p.id"
    )
    assert isinstance(plan.scan.derived, GroupJoin)
    assert [output.name for output in plan.scan.derived.groups.outputs] == ["p.0.a0"]


@pytest.mark.parametrize(
    "right",
    [
        "(SELECT id, upper(count(*)::text) AS n FROM paid GROUP BY id) p",
        "(SELECT id, count(*) AS n FROM paid GROUP BY id HAVING upper(count(*)::text) <> 'x') p",
        "(SELECT p.id, c.land AS n FROM people p JOIN cities c ON p.city = c.name) p",
        "(SELECT p.id, c.land AS n FROM people p LEFT JOIN cities c ON p.city = c.name WHERE size > 2) p",
    ],
)
def test_a_row_that_meets_nothing_shows_nothing_computed(right: str) -> None:
    plan = compiled(f"SELECT o.x, p.n FROM orders o LEFT JOIN {right} ON o.id = p.id")
    assert isinstance(plan.scan.derived, TemporalJoin)
    assert plan.where is None, "all rows of the stream are there"
    assert isinstance(plan, Projection)
    assert isinstance(plan.outputs[1].expression, Case)


def test_joined_changelogs_on_the_right_are_joined_one_by_one() -> None:
    plan = compiled(
        "SELECT o.x, q.land FROM orders o LEFT JOIN (SELECT o.id, c.land FROM people o LEFT JOIN cities c "
        "ON o.city = c.name AND c.size > 3) q ON o.id = q.id"
    )
    last = plan.scan.derived
    assert isinstance(last, TemporalJoin)
    assert (last.kind, last.by_key, last.residual is not None) == (JoinKind.LEFT, True, True)
    first = last.left.scan.derived
    assert isinstance(first, TemporalJoin)
    assert (first.kind, first.by_key, first.right.scan.relation) == (JoinKind.LEFT, True, "db.public.people")
    by_the_other = compiled(
        "SELECT q.id FROM orders o JOIN (SELECT p.id, c.land FROM people p JOIN cities c ON p.city = c.name) q "
        "ON o.x::text = q.land"
    ).scan.derived
    assert isinstance(by_the_other, TemporalJoin)
    below = by_the_other.left.scan.derived
    assert isinstance(below, TemporalJoin)
    assert below.right.scan.relation == "db.public.cities"
    assert (by_the_other.by_key, below.by_key) == (False, False)


@pytest.mark.parametrize(
    ("on", "by_key", "keys", "filtered"),
    [
        ("o.id = p.id", True, 1, False),
        ("p.city = 'Rome' AND p.id = o.id AND o.x = p.id", True, 1, True),
        ("o.x = p.id + 1", False, 1, False),  # what is made of a key tells no rows apart
        ("p.city = o.x::text AND o.ts > 5", False, 1, True),
        ("o.x = length(p.city) AND p.city = 'x' AND o.id = p.id * 2", False, 2, True),
    ],
)
def test_what_a_stream_compares_of_a_changelog(on: str, by_key: bool, keys: int, filtered: bool) -> None:
    plan = compiled(f"SELECT o.x, city FROM orders o JOIN people p ON {on}")
    join = plan.scan.derived
    assert isinstance(join, TemporalJoin)
    assert (join.by_key, len(join.right.keys), plan.where is not None) == (by_key, keys, filtered)
    rows = "the version" if by_key else "all versions"
    assert f"  INNER JOIN with {rows} valid at the event time, by DuckDB" in explain(plan)


def test_several_changelogs_and_where_they_begin() -> None:
    plan = compile_select(
        parse_select(
            "SELECT x, p.city, q.city AS other FROM orders o JOIN people p ON o.id = p.id "
            "JOIN people WITH ('starting.position' = 'latest') q ON o.x = q.id"
        ),
        lambda parts, position: _STREAMS[parts[-1]],
        default_starting="latest",
    )
    assert [scan.starting_position for scan in scans(plan.scan)] == ["latest", "earliest", "latest"]


# --- changelog with changelog ---------------------------------------------------------------------------------------
def current(text: str) -> tuple[ContinuousPlan, ChangelogJoin]:
    plan = compiled(text)
    assert isinstance(plan.scan.derived, ChangelogJoin)
    return plan, plan.scan.derived


@pytest.mark.parametrize(
    ("from_", "key"),
    [
        ("people p JOIN cities c ON p.city = c.land", ("p.id", "c.name")),
        ("people p JOIN cities c ON p.city = c.name", ("p.id",)),
        ("people p LEFT JOIN cities c ON c.name = p.city AND p.id < c.size", ("p.id",)),
        ("people p LEFT JOIN cities c ON p.id = c.size", ("p.id", "c.name")),
        ("people p JOIN cities c ON p.id = c.size", ("c.name",)),
        ("people p FULL JOIN cities c ON p.city = c.name", ("p.id", "c.name")),
        ("people p JOIN people c ON p.city = c.city", ("p.id", "c.id")),
    ],
)
def test_what_tells_joined_current_rows_apart(from_: str, key: tuple[str, ...]) -> None:
    """Both primary keys; that of one side alone where a row of it meets one row of the other at most."""
    plan, join = current(f"SELECT p.city FROM {from_}")
    assert tuple(column.name for column in join.key) == key
    assert (plan.scan.kind, plan.scan.primary_key) == ("changelog", key)
    assert tuple(column.name for column in plan.scan.columns[: len(key)]) == key, "a log's first columns"


def test_joined_changelogs_are_a_changelog() -> None:
    plan, join = current(
        "SELECT p.city, count(*) AS n FROM (SELECT city, id + 1 AS next FROM people WHERE id > 0) p "
        "LEFT JOIN (SELECT land, size FROM cities) c ON p.next = c.size GROUP BY p.city"
    )
    assert isinstance(plan, Aggregation)
    assert [[output.name for output in side.outputs] for side in join.sides] == [
        ["p.city", "left key 0"],
        ["right key 0"],
    ], "keys that are not selected are kept"
    assert join.left.where is not None
    assert "  LEFT JOIN of the current rows, by DuckDB" in explain(plan)
    assert "    Key: left key 0, right key 0" in explain(plan)


def test_a_chain_of_changelogs() -> None:
    plan, join = current(
        "SELECT p.id, c.land, d.size FROM people p FULL JOIN cities c ON p.city = c.name "
        "LEFT JOIN cities d ON c.land = d.name"
    )
    assert plan.scan.primary_key == ("p.id", "c.name"), "a row of the left side meets one of the right side at most"
    assert nullable_key(plan.scan)
    assert join.left.scan.primary_key == ("p.id", "c.name")
    assert [scan.relation for scan in scans(plan.scan)] == [f"db.public.{n}" for n in ("people", "cities", "cities")]


def test_a_side_may_aggregate() -> None:
    plan, join = current(
        "SELECT s.day, s.n, c.land, t.n AS towns FROM (SELECT a, count(*) AS n, max(ts) AS day FROM sent GROUP BY a) s "
        "LEFT JOIN cities c ON s.a = c.name JOIN (SELECT land, count(*) AS n FROM cities GROUP BY land) t "
        "ON c.land = t.land"
    )
    assert plan.scan.primary_key == ("s.a",), "what the groups are of"
    assert [isinstance(side.scan.derived, Groups) for side in join.sides] == [False, True]
    inner = join.left.scan.derived
    assert isinstance(inner, ChangelogJoin)
    assert isinstance(inner.left.scan.derived, Groups)


def test_a_key_of_groups_that_is_selected_is_the_key() -> None:
    plan, _ = current(
        "SELECT s.k, c.land FROM (SELECT a AS k, count(*) AS n FROM sent GROUP BY a) s JOIN cities c ON s.k = c.name"
    )
    assert plan.scan.primary_key == ("s.k",)
    plan, _ = current("SELECT c.name FROM cities c JOIN (SELECT DISTINCT a FROM sent) s ON s.a = c.land")
    assert plan.scan.primary_key == ("c.name",), "each city meets one of the distinct rows at most"


@pytest.mark.parametrize(
    ("from_", "nullable"),
    [
        ("people p JOIN cities c ON p.city = c.land", False),
        ("people p LEFT JOIN cities c ON p.city = c.name", False),
        ("people p LEFT JOIN cities c ON p.city = c.land", True),
        ("people p FULL JOIN cities c ON p.city = c.name", True),
        ("people p LEFT JOIN cities c ON p.city = c.land JOIN people q ON q.id = p.id", True),
    ],
)
def test_which_keys_may_be_null(from_: str, nullable: bool) -> None:
    assert nullable_key(compiled(f"SELECT p.city FROM {from_}").scan) is nullable


_JOIN = "SELECT x FROM orders o {} paid p {}"
MADE_HINT = (
    "Write them to a topic, and join the stream with the changelog over that.",
    "Compare all that they are grouped by. Write them to a topic, and join the stream with the changelog over that.",
    "Join the stream with the changelogs themselves, one after the other.",
    "Compare the whole primary keys: each row of the stream then meets one row at most.",
    "Both sides must have one type: cast the stream's column in ON, or what they are grouped by in GROUP BY.",
)
REFUSED = [
    (_JOIN.format("JOIN", "ON o.id = p.id"), "0A000", "a join of two streams without WITHIN is not supported",
     "Write WITHIN n MINUTES before ON: how far apart the event times of two joined rows may be."),
    (_JOIN.format("RIGHT JOIN", "WITHIN 1 HOUR ON o.id = p.id"), "0A000",
     "RIGHT JOIN is not supported in a continuous query", "Swap the two sides and use LEFT JOIN."),
    (_JOIN.format("JOIN", "WITHIN 1 HOUR USING (id)"), "0A000", "USING is not supported in a continuous query",
     "Use ON a.column = b.column."),
    (_JOIN.format("CROSS JOIN", ""), "0A000", "a join without ON is not supported in a continuous query",
     "Join on a column: a JOIN b WITHIN n MINUTES ON a.column = b.column."),
    (_JOIN.format("JOIN", "WITHIN 1 HOUR ON o.x < p.y"), "0A000",
     "a join without an equality between its two sides is not supported in a continuous query",
     "ON needs a.column = b.column; other conditions may follow with AND."),
    (_JOIN.format("JOIN", "WITHIN 1 MONTH ON o.id = p.id"), "22023", "WITHIN must be between 0 seconds and 366 days",
     "Months and years differ in length: give days."),
    (_JOIN.format("JOIN", "WITHIN 400 DAYS ON o.id = p.id"), "22023", "WITHIN must be between 0 seconds and 366 days",
     None),
    ("SELECT x FROM orders JOIN orders WITHIN 1 HOUR ON orders.id = orders.id", "42712",
     'table name "orders" specified more than once', "Give each side a name of its own with AS."),
    ("SELECT ts FROM orders o JOIN paid p WITHIN 1 HOUR ON o.id = p.id", "42702",
     'column reference "ts" is ambiguous', "Write the name of its table before it."),
    ("SELECT x FROM orders o JOIN paid p WITHIN 1 HOUR ON id = p.id", "42702",
     'column reference "id" is ambiguous', "Write the name of its table before it."),
    ("SELECT x FROM orders o LEFT JOIN sent s WITHIN 1 HOUR ON o.id = s.id AND upper(a) = 'X'", "0A000",
     "this condition is not supported in the ON of an outer join",
     "Equalities, comparisons, arithmetic, CASE and casts between numbers are; compute other values in a sub-query of "
     "FROM, and compare them here."),
    ("SELECT o.id FROM orders o JOIN (SELECT id, count(*) AS n FROM paid GROUP BY id) p WITHIN 1 HOUR ON o.id = p.id",
     "0A000", "WITHIN is not supported in a join with a changelog",
     "A row of the stream is joined with the version that was valid at its event time."),
    ("SELECT o.id FROM (SELECT id, count(*) AS n FROM paid GROUP BY id) p JOIN orders o ON o.id = p.id", "0A000",
     "a join of a changelog with a stream on its right side is not supported in a continuous query",
     "Swap the two sides: each row of the stream is joined with the version valid at its event time."),
    *(
        (f"SELECT x FROM orders o {join} JOIN (SELECT {select}) q ON {on}", "0A000", message, MADE_HINT[hint])
        for join, select, on, message, hint in (
            ("", "id, array_agg(y) AS a FROM paid GROUP BY id", "o.id = q.id",
             "aggregate array_agg over records is not supported in groups that a stream is joined with", 0),
            ("", "id, count(DISTINCT y) AS n FROM paid GROUP BY id", "o.id = q.id",
             "aggregate count(DISTINCT ...) over records is not supported in groups that a stream is joined with", 0),
            ("", "city, max(id) AS n FROM people GROUP BY city", "o.x::text = q.city",
             "aggregate max over rows that may be replaced is not supported in groups that a stream is joined with", 0),
            ("", "land, sum(size::double) AS n FROM cities GROUP BY land", "o.x::text = q.land",
             "aggregate sum over rows that may be replaced is not supported in groups that a stream is joined with", 0),
            ("", "id, count(*) AS n FROM paid GROUP BY id", "o.id = q.n",
             "a join of a stream with groups by anything but their keys is not supported in a continuous query", 1),
            ("", "x::decimal(5, 2) AS d, count(*) AS n FROM orders GROUP BY x::decimal(5, 2)",
             "o.x::decimal(10, 3) = q.d",
             "a join of a stream with groups by anything but their keys is not supported in a continuous query", 4),
            ("", "id, x, count(*) AS n FROM orders GROUP BY id, x", "o.id = q.id",
             "a join of a stream with groups by anything but their keys is not supported in a continuous query", 1),
            ("", "id, window_end, count(*) AS n FROM TUMBLE(paid, SIZE 1 MINUTE) GROUP BY id, window_start, window_end",
             "o.id = q.id", "a join of a stream with groups of windows is not supported in a continuous query", 0),
            ("", "id, count(*) AS n FROM paid GROUP BY ROLLUP (id)", "o.id = q.id",
             "a join of a stream with groups of several sets of keys or of none is not supported in a continuous query",
             0),
            ("", "city, count(*) AS n FROM people p JOIN cities c ON p.city = c.name GROUP BY city",
             "o.x::text = q.city",
             "a join of a stream with groups of joined, combined or aggregated rows is not supported in a continuous "
             "query", 0),
            ("", "p.id FROM people p FULL JOIN cities c ON p.city = c.name", "o.id = q.id",
             "a join of a stream with a FULL JOIN of changelogs is not supported in a continuous query", 2),
            ("LEFT", "p.id, p.city FROM people p JOIN cities c ON p.city = c.name", "o.x::text = q.city",
             "a LEFT JOIN of a stream with changelogs that are joined by INNER or filtered is not supported in a "
             "continuous query", 3),
            ("", "p.id, c.land FROM people p LEFT JOIN cities c ON p.city = c.name", "o.x::text = q.land",
             "such a condition of a join of a stream with joined changelogs is not supported in a continuous query", 2),
        )
    ),
    ("SELECT x FROM orders o JOIN people p WITHIN 1 HOUR ON o.id = p.id", "0A000",
     "WITHIN is not supported in a join with a changelog",
     "A row of the stream is joined with the version that was valid at its event time."),
    ("SELECT x FROM orders o FULL JOIN people p ON o.id = p.id", "0A000",
     "FULL JOIN of a stream with a changelog is not supported", "Use LEFT JOIN, which gives all rows of the stream."),
    ("SELECT x FROM orders o JOIN people p ON o.x + 1 = 2", "0A000",
     "a join without an equality between its two sides is not supported in a continuous query",
     "ON needs a.column = b.column; other conditions may follow with AND."),
    ("SELECT x FROM people p JOIN orders o WITHIN 1 HOUR ON o.id = p.id", "0A000",
     "a join of a changelog with a stream on its right side is not supported in a continuous query",
     "Swap the two sides: each row of the stream is joined with the version valid at its event time."),
    ("SELECT p.id FROM people p JOIN cities c WITHIN 1 HOUR ON p.city = c.name", "0A000",
     "WITHIN is not supported in a join of two changelogs",
     "Their current rows are joined, whatever their event times are; compare times in ON or WHERE."),
    ("SELECT p.id FROM people p RIGHT JOIN cities c ON p.city = c.name", "0A000",
     "RIGHT JOIN is not supported in a continuous query", "Swap the two sides and use LEFT JOIN."),
    ("SELECT p.id FROM people p JOIN cities c ON p.city < c.name", "0A000",
     "a join without an equality between its two sides is not supported in a continuous query",
     "ON needs a.column = b.column; other conditions may follow with AND."),
    ("SELECT p.id FROM people p LEFT JOIN cities c ON p.city = c.name AND upper(c.land) = 'X'", "0A000",
     "this condition is not supported in the ON of an outer join",
     "Equalities, comparisons, arithmetic, CASE and casts between numbers are; compute other values in a sub-query of "
     "FROM, and compare them here."),
    ("SELECT * FROM orders o JOIN paid p WITHIN 1 HOUR ON o.id = p.id", "42701",
     'column "id" specified more than once', "Give each column its own name with AS."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "state", "message", "hint"), REFUSED, ids=[each[2] for each in REFUSED])
def test_what_is_refused(text: str, state: str, message: str, hint: str | None) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(text)
    assert (caught.value.sqlstate, caught.value.message, caught.value.hint) == (state, message, hint)
    assert caught.value.position is not None


# --- joins of joined rows -------------------------------------------------------------------------------------------
PAIRS = "orders o LEFT JOIN paid p WITHIN 1 HOUR ON o.id = p.id AND o.x < p.y"


def test_rows_that_are_joined_again_bring_their_marks() -> None:
    plan = compiled(f"SELECT o.id FROM {PAIRS} JOIN sent s WITHIN 1 HOUR ON o.id = s.id")
    join = plan.scan.derived
    assert isinstance(join, IntervalJoin)
    assert [has_marks(scan) for scan in (plan.scan, join.left.scan, join.right.scan)] == [False, True, False]
    plan = compiled(
        f"SELECT t.id FROM (SELECT o.id FROM {PAIRS}) t JOIN (SELECT s.id FROM sent s JOIN people q ON s.id = q.id) u "
        "WITHIN 1 HOUR ON t.id = u.id"
    )
    join = plan.scan.derived
    assert isinstance(join, IntervalJoin)
    assert [has_marks(side.scan) for side in join.sides] == [True, True]


@pytest.mark.parametrize("more", ["", " JOIN people q ON o.id = q.id"])
def test_a_log_has_all_that_the_sides_of_its_join_give(more: str) -> None:
    """Also what only a condition of ON reads: the rows are appended whole."""
    scan = compiled(f"SELECT p.ts FROM {PAIRS}{more}").scan
    while isinstance(join := scan.derived, IntervalJoin | TemporalJoin):
        given = tuple(output.name for output in (*join.left.outputs, *join.right.outputs))
        columns = tuple(column.name for column in scan.columns)
        assert columns == (*given, "rowtime", *(["rowmark"] if has_marks(scan) else []))
        scan = join.left.scan


# --- UNION ALL ------------------------------------------------------------------------------------------------------
def test_union_all_has_the_first_names_and_common_types() -> None:
    plan = compiled("SELECT id AS key, x AS n FROM orders WHERE x > 0 UNION ALL SELECT id, y FROM paid")
    assert [(output.name, str(output.type)) for output in plan.outputs] == [("key", "BIGINT"), ("n", "DOUBLE")]
    union = plan.scan.derived
    assert isinstance(union, UnionAll)
    left, right = union.sides
    assert left.where is not None
    assert [str(output.type) for output in right.outputs] == ["BIGINT", "DOUBLE"]
    assert [scan.relation for scan in scans(plan.scan)] == ["db.public.orders", "db.public.paid"]


def test_union_all_may_be_grouped_and_nested() -> None:
    plan = compiled(
        "WITH o AS (SELECT id FROM orders) SELECT id, count(*) AS n FROM "
        "(SELECT id FROM o UNION ALL SELECT id FROM paid UNION ALL (SELECT id FROM sent)) u GROUP BY id"
    )
    assert isinstance(plan, Aggregation)
    assert len(list(scans(plan.scan))) == 3
    assert "  UNION ALL, by DuckDB" in explain(plan)


def test_a_union_of_unions_is_one() -> None:
    plan = compiled(
        "SELECT id, x FROM orders UNION ALL "
        "SELECT id * 2, n FROM (SELECT id, y AS n FROM paid WHERE y > 0 UNION ALL SELECT id, 1 FROM sent) u WHERE n < 9"
    )
    union = plan.scan.derived
    assert isinstance(union, UnionAll)
    assert [side.scan.relation for side in union.sides] == [f"db.public.{name}" for name in ("orders", "paid", "sent")]
    assert any(line.strip() == "Query 3:" for line in explain(plan))
    first, second, third = (None if side.where is None else lower_spark(side.where, str) for side in union.sides)
    zero, nine = "CAST('0.0' AS DOUBLE)", "CAST('9.0' AS DOUBLE)"
    assert (first, second) == (None, f"(CASE WHEN (y > {zero}) THEN (y < {nine}) ELSE FALSE END)")
    assert third is not None
    assert third.endswith(f" < {nine})"), "the inner query's 1 stands for the column"
    assert [[output.type for output in side.outputs] for side in union.sides] == [[t.BIGINT, t.DOUBLE]] * 3


def test_a_union_has_a_bound() -> None:
    one = "SELECT id FROM orders"
    compiled(" UNION ALL ".join([one] * limits.UNION_QUERIES_MAX))
    with pytest.raises(SqlError) as caught:
        compiled(" UNION ALL ".join([one] * (limits.UNION_QUERIES_MAX + 1)))
    assert (caught.value.sqlstate, caught.value.message) == ("54001", "UNION ALL of more than 32 queries")


def test_the_first_query_of_a_union_names_the_columns() -> None:
    plan = compiled("SELECT id AS k, x AS v FROM orders UNION ALL SELECT id, id FROM paid")
    assert [(output.name, str(output.type)) for output in plan.outputs] == [("k", "BIGINT"), ("v", "INTEGER")]


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("SELECT id, x FROM orders UNION ALL SELECT NULL, NULL FROM paid", ["BIGINT", "INTEGER"]),
        ("SELECT NULL AS id, '7' AS x FROM orders UNION ALL SELECT id, y FROM paid", ["INTEGER", "DOUBLE"]),
        ("SELECT NULL AS id FROM orders UNION ALL SELECT NULL FROM paid", ["VARCHAR"]),
        ("SELECT id FROM orders UNION ALL (SELECT NULL FROM paid UNION ALL SELECT id FROM paid)", ["BIGINT"]),
    ],
)
def test_a_constant_without_a_type_takes_that_of_the_other_query(text: str, types: list[str]) -> None:
    plan = compiled(text)
    assert [str(output.type) for output in plan.outputs] == types
    assert isinstance(plan.scan.derived, UnionAll)
    for side in plan.scan.derived.sides:
        assert [str(output.expression.type) for output in side.outputs] == types


UNION_REFUSED = [
    ("SELECT id FROM orders UNION ALL SELECT id, y FROM paid", "42601",
     "each UNION query must have the same number of columns", None),
    ("SELECT id FROM orders UNION ALL SELECT a FROM sent", "42804", "UNION types bigint and text cannot be matched",
     'Cast column "id" in one of the queries.'),
    ("SELECT id FROM orders UNION ALL SELECT id FROM paid GROUP BY id", "0A000",
     "a query that aggregates is not supported in UNION ALL",
     "Its queries are projections of streams; aggregate over the UNION ALL: SELECT ... FROM (... UNION ALL ...) AS u "
     "GROUP BY ..."),
    ("SELECT id FROM orders UNION ALL SELECT id FROM people", "0A000",
     "a query over a changelog is not supported in UNION ALL",
     "Its queries are projections of streams; aggregate over the UNION ALL: SELECT ... FROM (... UNION ALL ...) AS u "
     "GROUP BY ..."),
    ("SELECT o.x FROM orders o JOIN (SELECT id FROM paid UNION ALL SELECT id FROM sent) u WITHIN 1 HOUR ON o.id = u.id",
     "0A000", "a join with a UNION ALL is not supported in a continuous query",
     "Join each of its queries, and combine the joined rows with UNION ALL."),
    ("SELECT id FROM orders UNION SELECT id FROM paid", "0A000",
     "UNION without ALL is not supported in continuous queries",
     "UNION ALL is; SELECT DISTINCT over it drops what comes twice."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "state", "message", "hint"), UNION_REFUSED, ids=[each[0] for each in UNION_REFUSED])
def test_what_union_all_refuses(text: str, state: str, message: str, hint: str | None) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(text)
    assert (caught.value.sqlstate, caught.value.message, caught.value.hint) == (state, message, hint)


def test_groups_are_joined_as_the_rows_of_a_changelog() -> None:
    counted = "(SELECT city, count(*) AS n FROM people GROUP BY city) AS a"
    plan, join = current(f"SELECT a.n, c.size FROM {counted} LEFT JOIN cities c ON a.city = c.name")
    left, right = (side.scan for side in join.sides)
    assert isinstance(left.derived, Groups)
    assert (left.kind, left.primary_key, right.derived) == ("changelog", ("key 0",), None)
    assert plan.scan.primary_key == ("a.city",), "a group meets one city at most"
    both = f"{counted} JOIN (SELECT name, max(size) AS m FROM cities GROUP BY name) AS b ON a.city = b.name"
    _, join = current(f"SELECT a.n, b.m FROM {both}")
    assert all(isinstance(side.scan.derived, Groups) for side in join.sides)
    with pytest.raises(SqlError, match="aggregate last_value is not supported over groups without an event time"):
        compiled(f"SELECT last_value(a.n) AS l FROM {both}")
