"""The present time and chance: where they may stand, and which places of a query mean one value."""

from __future__ import annotations

import pytest

from mvserver.compiler.expressions import Cast, Drawn, walk
from mvserver.compiler.plans import Projection
from mvserver.compiler.unsettled import drawn_by
from mvserver.errors import SqlError
from mvserver.sql import types as t
from tests.compiler.harness import compiled


def written(sql: str) -> Projection:
    plan = compiled(sql, written=True)
    assert isinstance(plan, Projection)
    return plan


def columns(sql: str) -> list[list[str]]:
    """The drawn columns of each output, by name."""
    found = [walk(output.expression) for output in written(sql).outputs]
    return [[node.name for node in nodes if isinstance(node, Drawn)] for nodes in found]


def test_a_row_has_one_moment() -> None:
    plan = written(
        "SELECT now() AS a, current_timestamp AS b, clock_timestamp() AS c, current_date AS d, localtime AS e, "
        "localtimestamp AS f FROM everything WHERE tz < now()"
    )
    (moment,) = drawn_by(plan)
    expressions = [output.expression for output in plan.outputs]
    assert expressions[:3] == [moment] * 3
    kinds = (t.DATE, t.TIME, t.TIMESTAMP)
    assert expressions[3:] == [Cast(kind, moment) for kind in kinds]
    assert [output.type for output in plan.outputs] == [*[t.TIMESTAMP_LTZ] * 3, *kinds]


def test_each_call_of_chance_is_one_value() -> None:
    first, second = "random() of the row, 1", "random() of the row, 2"
    assert columns("SELECT random() AS a, random() AS b FROM everything") == [[first], [second]]
    inner = "(SELECT random() AS r, i4 FROM everything)"
    assert columns(f"SELECT r, r * 2 AS more, i4 + r AS other FROM {inner} x WHERE r < 0.5") == [[first]] * 3
    assert columns(f"WITH x AS {inner} SELECT r, random() AS s FROM x") == [[first], [second]]
    # what a rewrite repeats
    assert drawn_by(written("SELECT i4 FROM everything WHERE random() BETWEEN SYMMETRIC 0.2 AND f8"))[0].name == first
    assert len(drawn_by(written("SELECT CASE random() WHEN 0.5 THEN 1 WHEN 0.25 THEN 2 END AS c FROM everything"))) == 1
    # a call that is written in one place of the other dialect, and repeated by its templates
    twice = "mv_random_integer(7) AS a, -mv_random_integer(7) AS b, mv_random_integer(9) AS c"
    a, b, c = columns(f"SELECT {twice} FROM everything")
    assert a == b != c


SPELLED = {
    "current_date": "current_date", "localtimestamp": "localtimestamp", "mv_random_integer": "function RANDINT()",
}  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("SELECT count(*), now() AS t FROM everything", "now"),
        ("SELECT s, count(*) FROM everything WHERE now() > tz GROUP BY s", "now"),
        ("SELECT s, count(*) FROM everything GROUP BY s, current_date", "current_date"),
        ("SELECT count(*) FROM everything WHERE localtimestamp > ts", "localtimestamp"),
        ("SELECT i4 + mv_random_integer(7), count(*) FROM everything GROUP BY 1", "mv_random_integer"),
        ("SELECT r FROM (SELECT url AS r FROM clicks UNION ALL SELECT ip FROM clicks) x WHERE random() < 0.5 "
         "UNION ALL SELECT url FROM clicks", "random"),
        ("SELECT random() AS n FROM (SELECT url AS r FROM clicks UNION ALL SELECT ip FROM clicks) x "
         "UNION ALL SELECT f8 FROM everything", "random"),
        ("SELECT s, max(random()) FROM everything GROUP BY s", "random"),
        ("SELECT s, count(*) FILTER (WHERE random() < 0.5) FROM everything GROUP BY s", "random"),
        ("SELECT s, count(*) FROM everything GROUP BY s HAVING random() < 0.5", "random"),
        ("SELECT DISTINCT gen_random_uuid() AS u FROM everything", "gen_random_uuid"),
        ("SELECT r, count(*) FROM (SELECT floor(random() * 3) AS r FROM everything) x GROUP BY r", "random"),
        ("SELECT n, now() AS t FROM (SELECT s, count(*) AS n FROM everything GROUP BY s) x", "now"),
        ("SELECT s FROM everything UNION ALL SELECT gen_random_uuid() FROM clicks", "gen_random_uuid"),
        ("SELECT a.s FROM everything a JOIN clicks b WITHIN 1 MINUTE ON a.s = b.url AND a.tz < now()", "now"),
        ("SELECT a.s, now() AS t FROM everything a JOIN clicks b WITHIN 1 MINUTE ON a.s = b.url", "now"),
        ("SELECT a.s FROM everything a JOIN clicks b WITHIN 1 MINUTE ON a.s = b.url WHERE random() < 1", "random"),
        ("SELECT a.r FROM (SELECT s, random() AS r FROM everything) a JOIN clicks b WITHIN 1 MINUTE ON a.s = b.url",
         "random"),
        ("SELECT s, x FROM everything CROSS JOIN UNNEST(ARRAY[random(), 2]) AS x", "random"),
        ("SELECT r, x FROM (SELECT ARRAY[random()] AS r FROM everything) y CROSS JOIN UNNEST(y.r) AS x", "random"),
    ],
)  # fmt: skip
def test_what_is_kept_has_none(sql: str, name: str) -> None:
    for is_written in (True, False):
        with pytest.raises(SqlError) as caught:
            compiled(sql, written=is_written)
        error = caught.value
        assert (error.sqlstate, error.message) == (
            "0A000", f"{SPELLED.get(name, f'function {name}()')} is not supported in a continuous query that keeps, "
            "groups or joins rows",
        )  # fmt: skip
        assert error.position == sql.index(name) + 1
        assert error.hint is not None
        assert "INSERT INTO a stream or a table without a key" in error.hint


def test_elements_of_a_record_are_rows_of_their_own() -> None:
    plan = written("SELECT s, x, random() AS r, now() AS t FROM everything CROSS JOIN UNNEST(arr) AS x")
    assert [each.type for each in drawn_by(plan)] == [t.DOUBLE, t.TIMESTAMP_LTZ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s, count(*) AS n FROM (SELECT s, now() AS t, random() AS r FROM everything) x GROUP BY s",
        "SELECT a.s, b.ip FROM (SELECT s, now() AS t FROM everything) a JOIN clicks b WITHIN 1 MINUTE ON a.s = b.url",
    ],
)
def test_what_no_row_has_is_let_be(sql: str) -> None:
    compiled(sql, written=True)
    compiled(sql)
