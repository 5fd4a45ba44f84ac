"""Approximate aggregates: what Spark makes of the values, merged batch by batch, against the exact answer."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mvserver.streaming.batch.program import build_program
from mvserver.views.finishing import layout_of
from spark_sinks.duckdb.batch_plans import BatchCommit, TableMerge, ViewMerge
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from tests.streaming.states import Fed, target, writer_in

SQL = (
    "SELECT k, approx_count_distinct(l) AS d, approx_percentile(x, 0.5) AS median, "
    "approx_percentile(x, 0.99) AS high, percentile_disc(0.5) WITHIN GROUP (ORDER BY x) AS exact, "
    "percentile_disc(0.99) WITHIN GROUP (ORDER BY x) AS exact_high FROM events GROUP BY k"
)
DISTINCT = {"few": 9, "some": 700, "many": 60_000}


def test_a_sketch_of_nothing_counts_nothing(tmp_path: Path) -> None:
    sql = "SELECT k, approx_count_distinct(i) FILTER (WHERE l > 0) AS n FROM events GROUP BY k"
    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target(sql))
        table = pa.table({"f0": [True, True], "c0": ["a", "b"], "c1": pa.array([None, 70], pa.int32())})
        (view,) = build_program([views_target := target(sql)]).views
        assert (view.keys, view.values) == (("c0",), (("c1",),))
        merge = ViewMerge(
            views_target.query_id,
            views_target.state,
            roll_ups=view.row_roll_ups("mv_batch", null_keys=False),
            values=view.value_statements("mv_batch", partial=False),
        )
        entry = LedgerEntry("p", 1, 0, {"at": 0}, {"at": 1}, 2)
        assert writer.commit(BatchCommit(entry, (TableMerge(table, (merge,)),)))
        assert views.rows() == [("a", 0), ("b", 1)]


@pytest.mark.spark
def test_approximations_are_as_near_as_promised(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(20_261_121)
    rows = [(k, value) for k, count in DISTINCT.items() for value in range(count)]
    rows += [(k, rng.randrange(count)) for k, count in DISTINCT.items() for _ in range(5_000)]
    rng.shuffle(rows)
    xs = [rng.choice((-1, 1)) * rng.lognormvariate(0, 3) for _ in rows]
    columns = {"k": pa.array([k for k, _ in rows]), "l": pa.array([v for _, v in rows], pa.int64()), "x": pa.array(xs)}
    view = target(SQL)
    program = build_program([view])
    (given,) = program.views
    texts = [
        text.replace("r0_r.c0", "k").replace("r0_r.c1", "i") for text in program.columns if "'position'" not in text
    ]
    texts = [text.replace("r0_r.c2", "l").replace("r0_r.c5", "x") for text in texts]
    frame = spark.createDataFrame(pa.table(columns)).selectExpr(f"true AS {program.flags[0]}", "*")
    table = frame.selectExpr(program.flags[0], *texts).toArrow()
    with writer_in(tmp_path) as (database, writer):
        with writer.transaction():
            writer.create_state(view.state, layout_of(view))
        for number, batch in enumerate(table.to_batches(max_chunksize=20_000)):
            part = pa.Table.from_batches([batch])
            merge = ViewMerge(
                view.query_id,
                view.state,
                roll_ups=given.row_roll_ups("mv_batch", null_keys=False),
                values=given.value_statements("mv_batch", partial=False),
            )
            entry = LedgerEntry("p", 1, number, {"at": number}, {"at": number + 1}, part.num_rows)
            assert writer.commit(BatchCommit(entry, (TableMerge(part, (merge,)),)))
        with database.cursor() as cursor:
            found = cursor.execute(f'SELECT * FROM "_views"."{view.view_id}"').fetchall()
    assert {row[0] for row in found} == set(DISTINCT)
    for k, distinct, median, high, exact, exact_high in found:
        assert distinct == pytest.approx(DISTINCT[k], rel=0.05)  # three standard errors
        assert median == pytest.approx(exact, rel=0.0101)
        assert high == pytest.approx(exact_high, rel=0.0101)
    assert {row[0]: row[1] for row in found}["few"] == 9
