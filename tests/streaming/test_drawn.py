"""The present time and chance in Spark: drawn for each row, once for all places of a row, anew in each batch."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.classic.dataframe import DataFrame

from mvserver.compiler.compile import compile_select
from mvserver.sql.dialect import parse_select
from mvserver.streaming.batch.evaluate import row_frame
from mvserver.streaming.batch.plan_check import check_plan
from mvserver.streaming.batch.program import build_program
from mvserver.streaming.spark.java_functions import kept_rows
from mvserver.views.targets import Target, build_target
from tests.streaming.states import RELATION
from tests.streaming.test_kept_plans import records

pytestmark = pytest.mark.spark


def written(sql: str) -> Target:
    plan = compile_select(
        parse_select(sql), lambda parts, position: RELATION, default_starting="earliest", written=True
    )
    return build_target("q", "00000000-0000-0000-0000-000000000001", 1, plan)


def outputs(table: pa.Table, program: Any) -> list[dict[str, Any]]:
    """The rows that pass, by the names of the outputs."""
    (view,) = program.views
    names = [output.name for output in view.target.plan.outputs]
    passing = table.filter(table.column(view.flag))
    return passing.select(list(view.outputs)).rename_columns(names).to_pylist()


def evaluated(spark: Any, sql: str, given: pa.Table) -> list[dict[str, Any]]:
    program = build_program([written(sql)])
    return outputs(row_frame(spark.createDataFrame(given), program, None).toArrow(), program)


ALL = """
SELECT i, t1, t1 = now() AND CAST(t1 AS DATE) = current_date AND CAST(t1 AS TIME) = localtime
    AND localtimestamp = CAST(t1 AS TIMESTAMP) AS one_moment,
  r, r * 2 AS twice, random() AS other, floor(r * 6) AS die, gen_random_uuid() AS id
FROM (SELECT i, current_timestamp AS t1, random() AS r FROM events) e WHERE r < 0.5 AND t1 <= clock_timestamp()
"""


def test_a_row_has_one_moment_and_one_value_of_each_call(spark: Any) -> None:
    check_plan(spark, written(ALL).plan)
    before = dt.datetime.now(dt.UTC)
    rows = evaluated(spark, ALL, records(*(("a", number) for number in range(2000))))
    after = dt.datetime.now(dt.UTC)
    assert 700 < len(rows) < 1300  # half of them, by some ten deviations
    assert all(row["one_moment"] for row in rows)
    assert all(before - dt.timedelta(milliseconds=1) <= row["t1"].replace(tzinfo=dt.UTC) <= after for row in rows)
    assert all(0 <= row["r"] < 0.5 and row["twice"] == row["r"] * 2 and row["die"] in (0, 1, 2) for row in rows)
    assert all(0 <= row["other"] < 1 for row in rows)
    assert len({row["r"] for row in rows}) == len({row["other"] for row in rows}) == len(rows)
    assert any(row["other"] >= 0.5 for row in rows)
    assert {uuid.UUID(row["id"]).version for row in rows} == {4}
    assert len({row["id"] for row in rows}) == len(rows)


def test_a_plan_that_is_used_again_draws_again(spark: Any) -> None:
    """Spark's own present time and chance would be those of the first batch."""
    given = records(*(("a", number) for number in range(50)))
    program = build_program([written("SELECT i, now() AS t, random() AS r FROM events")])
    source, made, schema = kept_rows(spark, given.schema)
    frame = row_frame(DataFrame(made, spark), program, None)
    found = []
    for _ in range(3):
        begun = dt.datetime.now(dt.UTC)
        (batch,) = given.cast(schema).combine_chunks().to_batches()
        source.give(batch.serialize().to_pybytes())
        rows = outputs(frame.toArrow(), program)
        assert all(row["t"].replace(tzinfo=dt.UTC) >= begun - dt.timedelta(milliseconds=1) for row in rows)
        found += [row["r"] for row in rows]
    assert len(set(found)) == 150


def test_elements_are_rows_of_their_own(spark: Any) -> None:
    sql = "SELECT el, random() AS r FROM events CROSS JOIN UNNEST(ARRAY[i, i, i]) AS el"
    rows = evaluated(spark, sql, records(("a", 1), ("b", 2)))
    assert [row["el"] for row in rows] == [1, 1, 1, 2, 2, 2]
    assert len({row["r"] for row in rows}) == 6
