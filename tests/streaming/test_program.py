"""Programs: what they share, what they guard, and what an evaluation hands over."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from mvserver.streaming.batch.evaluate import WholeProgramNeeded, evaluate_partials, evaluate_rows
from mvserver.streaming.batch.program import build_program
from tests.streaming.states import target

NOON = dt.datetime(2024, 5, 17, 12, tzinfo=dt.UTC)


class PositionReader:
    """The part of a source that evaluation asks."""

    def rejected_positions(self, records: list[tuple[str, bytes | None]]) -> list[str]:
        return [f"topic {position}" for position, _ in records]


def test_a_program_depends_on_its_input_alone() -> None:
    targets = [target("SELECT k, sum(i) AS s FROM events GROUP BY k"), target("SELECT k, i FROM events WHERE i > 1", 1)]
    assert build_program(targets) == build_program(targets)
    decoding = build_program(targets[:1]).stages
    assert build_program(targets).stages[: len(decoding) - 1] == decoding[:-1]  # the last has the filters


def test_views_share_equal_keys_arguments_and_filters() -> None:
    one = build_program([target("SELECT k, sum(i) AS s, max(i) AS m FROM events WHERE i > 1 GROUP BY k")])
    two = build_program(
        [
            target("SELECT k, sum(i) AS s, max(i) AS m FROM events WHERE i > 1 GROUP BY k"),
            target("SELECT k, min(i) AS s, max(i) AS m FROM events WHERE i > 1 GROUP BY k HAVING count(*) > 2", 1),
        ]
    )
    assert two.columns == one.columns
    assert two.flags == one.flags
    assert two.group_columns == one.group_columns
    assert len(two.partial_columns) == len(one.partial_columns) + 1
    assert two.views[0].keys == two.views[1].keys


def test_what_may_fail_is_computed_only_for_records_of_its_view() -> None:
    program = build_program([target("SELECT k, 1 / i AS q, k AS again FROM events WHERE i <> 0")])
    (quotient,) = (text for text in program.columns if "raise_error" in text or "div" in text.lower())
    assert quotient.startswith(f"CASE WHEN {program.views[0].flag} THEN ")
    assert f"r0_r.c0 AS {program.views[0].outputs[0]}" in program.columns
    assert program.views[0].outputs[0] == program.views[0].outputs[2]


def test_partial_sums_are_taken_in_the_type_of_the_merged_value() -> None:
    program = build_program(
        [target("SELECT sum(i) AS a, sum(l) AS b, sum(n) AS c, sum(r) AS d, avg(i) AS e FROM events")]
    )
    sums = [part.expression for part in program.partial_columns if part.expression.startswith("sum(")]
    assert [text[text.rindex(" as ") + 4 : -2] for text in sums] == [
        "bigint",
        "decimal(38, 0)",
        "decimal(38, 2)",
        "double",
        "decimal(38, 0)",
    ]


def test_the_records_kept_are_those_of_a_view_and_those_rejected() -> None:
    filtered = build_program([target("SELECT k FROM events WHERE i > 1")])
    assert filtered.keep == f"{filtered.views[0].flag} OR NOT (r0_w IS NULL)"
    assert filtered.rejected == (("r1", "x0"),)
    trial = build_program([target("SELECT k FROM events WHERE i > 1")], trial=True)
    assert trial.columns[-1] == "CASE WHEN NOT r0_f THEN 1 END AS x0"


def test_append_and_upsert_statements_name_their_tables() -> None:
    append = build_program([target("SELECT k, i FROM events")]).views[0]
    assert append.take_statements("batch")[0].startswith(
        f'INSERT INTO "_state"."00000000-0000-0000-0000-000000000000_1" SELECT {", ".join(append.outputs)} FROM batch'
    )
    keyed = build_program([target("SELECT k, count(*) FROM events GROUP BY k")]).views[0]
    assert [part.nulls for part in keyed.row_roll_ups("batch", null_keys=True)] == [False, True]
    assert [part.nulls for part in keyed.row_roll_ups("batch", null_keys=False)] == [None]
    keyless = build_program([target("SELECT count(*) FROM events")]).views[0]
    assert [part.nulls for part in keyless.partial_roll_ups("batch", null_keys=True)] == [False]


@pytest.mark.spark
@pytest.mark.parametrize("evaluate", [evaluate_rows, evaluate_partials])
def test_an_evaluation_hands_over_rows_rejected_records_and_the_newest_time(spark: Any, evaluate: Any) -> None:
    import pyarrow as pa

    reader: Any = PositionReader()
    targets = [
        target("SELECT k, sum(i) AS s FROM events WHERE i > 0 GROUP BY k"),
        target("SELECT k, count(*) FROM events GROUP BY k", 1),
    ]
    whole = b'{"k":"a","i":%d,"l":1,"n":1,"w":1,"x":1.5,"r":1.5,"t":"2024-05-17 10:00:00"}'

    def frame(*values: bytes | None) -> Any:
        times = [NOON + dt.timedelta(seconds=i) for i in range(len(values))]
        columns = {
            "key": pa.array([None] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "position": [f"0:{i}" for i in range(len(values))],
            "record_time": pa.array(times, pa.timestamp("us", "UTC")),
        }
        return spark.createDataFrame(pa.table(columns))

    clean = evaluate(frame(whole % 1, whole % -1), build_program(targets, trial=True), reader)
    assert clean.rejected == ()
    assert clean.rejected_counts == {"r1": 0}
    assert clean.newest_s == (NOON + dt.timedelta(seconds=1)).timestamp()

    dirty = frame(whole % 1, b"wrong", None, b'{"k":null}', b'{"i":"x"}')
    with pytest.raises(WholeProgramNeeded):
        evaluate(dirty, build_program(targets, trial=True), reader)
    found = evaluate(dirty, build_program(targets), reader)
    assert found.rejected_counts == {"r1": 3}
    assert sorted((r.position, r.raw, r.raw_bytes, r.reason) for r in found.rejected) == [
        ("topic 0:1", b"wrong", 5, "the value is not one JSON object"),
        ("topic 0:2", None, None, "the value is null"),
        ("topic 0:4", b'{"i":"x"}', 9, 'column "i" is not of type INTEGER: x'),
    ]
    assert found.newest_s == (NOON + dt.timedelta(seconds=4)).timestamp()
    (merge,) = found.merges
    assert [view.query_id for view in merge.views] == ["q0", "q1"]
    (left,) = found.without(frozenset({"q0"})).merges
    assert [view.query_id for view in left.views] == ["q1"]


@pytest.mark.spark
def test_a_long_rejected_record_is_cut_and_its_length_kept(spark: Any) -> None:
    import pyarrow as pa

    from mvserver.streaming.batch.program import REJECTED_RAW_BYTES_MAX

    reader: Any = PositionReader()
    long = b"x" * (REJECTED_RAW_BYTES_MAX + 10)
    columns = {"value": [long], "position": ["0:0"], "record_time": pa.array([NOON], pa.timestamp("us", "UTC"))}
    program = build_program([target("SELECT k FROM events")])
    (row,) = evaluate_rows(spark.createDataFrame(pa.table(columns)), program, reader).rejected
    assert row.raw == long[:REJECTED_RAW_BYTES_MAX]
    assert row.raw_bytes == len(long)
