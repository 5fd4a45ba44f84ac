"""Batches of rows in memory under one plan of Spark have what each would have under a plan of its own."""

from __future__ import annotations

import random
import threading
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from mvserver.streaming.batch.evaluate import Evaluated, WholeProgramNeeded, evaluate_rows
from mvserver.streaming.batch.program import Program, build_program
from mvserver.streaming.batch.spark_calls import collect
from mvserver.streaming.spark.errors import blame
from mvserver.streaming.spark.java_functions import kept_rows
from spark_sinks.postgresql.spool import RecordColumns
from spark_sinks.rows_frame import RowsFrame
from tests.streaming.states import target
from tests.streaming.test_program import PositionReader

pytestmark = pytest.mark.spark
READER: Any = PositionReader()
WHOLE = '{{"k":"{}","i":{},"l":1,"n":1,"w":1,"x":1.5,"r":1.5,"t":"2024-05-17 10:00:00"}}'


def table(*values: bytes | None) -> pa.Table:
    columns = RecordColumns()
    for number, value in enumerate(values):
        columns.add([b'{"k":%d}' % number], [value], [f"0:{number}"], 1_000_000 * number, "0/1", None)
    return pa.Table.from_batches([columns.batch()])


def records(*pairs: tuple[str, int]) -> pa.Table:
    return table(*(WHOLE.format(k, i).encode() for k, i in pairs))


def rows(evaluated: Evaluated) -> list[dict[str, Any]]:
    found = [row for merge in evaluated.merges for row in merge.table.to_pylist()]
    return sorted(found, key=repr)


def kept(spark: Any, program: Program, given: pa.Table) -> Evaluated:
    return evaluate_rows(RowsFrame(spark, given), program, READER)


def made_anew(spark: Any, program: Program, given: pa.Table) -> Evaluated:
    return evaluate_rows(spark.createDataFrame(given), program, READER)


def test_each_batch_has_its_own_rows(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    dice, asked = random.Random(seed), 0
    program = build_program([target("SELECT k, sum(i) AS s FROM events WHERE i > 0 GROUP BY k")], trial=True)

    def counted(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        return kept_rows(*arguments)

    monkeypatch.setattr("mvserver.streaming.batch.kept_plans.kept_rows", counted)
    for _ in range(6):
        given = records(*((dice.choice("abcä"), dice.randrange(-5, 100)) for _ in range(dice.randrange(1, 50))))
        found, wanted = kept(spark, program, given), made_anew(spark, program, given)
        assert rows(found) == rows(wanted)
        assert found.newest_s == wanted.newest_s
    assert asked == 1


def test_rejected_records_are_those_of_their_batch(spark: Any) -> None:
    targets = [target("SELECT k, count(*) FROM events GROUP BY k")]
    trial, whole = build_program(targets, trial=True), build_program(targets)
    for bad in (b"wrong", b'{"i":"x"}'):
        given = table(WHOLE.format("a", 1).encode(), bad)
        assert rows(kept(spark, trial, records(("a", 1)))) == rows(made_anew(spark, trial, records(("a", 1))))
        with pytest.raises(WholeProgramNeeded):
            kept(spark, trial, given)
        found, wanted = kept(spark, whole, given), made_anew(spark, whole, given)
        assert found.rejected == wanted.rejected
        assert [row.raw for row in found.rejected] == [bad]
        assert rows(found) == rows(wanted)


def test_a_batch_that_fails_leaves_nothing_to_the_next(spark: Any) -> None:
    program = build_program([target("SELECT k, 1 / i AS q FROM events")], trial=True)
    good = records(("a", 1), ("b", -1))
    for _ in range(2):
        assert rows(kept(spark, program, good)) == rows(made_anew(spark, program, good))
        with pytest.raises(Exception) as raised:
            kept(spark, program, records(("a", 0)))
        own = blame(raised.value)
        assert own is not None
        assert own.sqlstate == "22012"


def test_a_thread_that_finds_the_plan_in_use_makes_one_of_its_own(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another batch is collected: neither has rows of the other."""
    program = build_program([target("SELECT k, i FROM events")], trial=True)
    few, many = records(("a", 1)), records(("b", 2), ("c", 3))
    kept(spark, program, few)
    began, go_on = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> pa.Table:
        began.set()
        assert go_on.wait(60)
        return collect(*arguments)

    monkeypatch.setattr("mvserver.streaming.batch.kept_plans.collect", slow)
    found: list[Evaluated] = []
    other = threading.Thread(target=lambda: found.append(kept(spark, program, few)))
    other.start()
    assert began.wait(60)
    beside = kept(spark, program, many)
    go_on.set()
    other.join(60)
    assert rows(beside) == rows(made_anew(spark, program, many))
    assert rows(found[0]) == rows(made_anew(spark, program, few))


def test_large_rows_and_other_columns_have_their_own_way(spark: Any) -> None:
    program = build_program([target("SELECT k, i FROM events")], trial=True)
    large = records(("a" * 2_000_000, 1))
    other = records(("b", 2)).append_column("place", pa.array([7], pa.int64()))
    for given in (records(("a", 1)), large, other, records(("c", 3))):
        assert rows(kept(spark, program, given)) == rows(made_anew(spark, program, given))


def test_a_frame_of_rows_is_a_frame(spark: Any) -> None:
    frame: DataFrame = RowsFrame(spark, records(("a", 1), ("b", 2)))
    assert frame.count() == 2
    assert [row[0] for row in frame.selectExpr("position").collect()] == ["0:0", "0:1"]
    assert frame.columns == ["key", "value", "position", "record_time", "metadata"]
