"""Rows as a table takes them: its types, the last word on each key, and commits that are tried again."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from catalog.model import Column
from mvserver.errors import SqlError
from mvserver.streaming.queries.outgoing import Pace
from mvserver.streaming.queries.table_form import TableForm
from mvserver.table_shapes import table_shape
from spark_sinks.base import Position
from spark_sinks.duckdb.changes.outbox import Pending
from spark_sinks.table_options import TableOptions
from spark_sinks.table_writes import RetriedTable

QUICK = TableOptions.of({"retry.backoff.millis": "10"})


class Table:
    """What is in it, and how it fails."""

    def __init__(self) -> None:
        self.writes: list[tuple[list[dict[str, Any]], list[dict[str, Any]], Position]] = []
        self.position: Position | None = None
        self.fails: list[SqlError] = []
        self.lost: list[SqlError] = []
        self.opened = self.closed = 0

    def open(self) -> Table:
        self.opened += 1
        return self

    def committed_position(self, *, expected: bool = False) -> Position | None:
        return self.position

    def renew(self, position: Position) -> None: ...

    def write(self, rows: pa.Table, gone: pa.Table, position: Position) -> None:
        if self.fails:
            raise self.fails.pop()
        self.writes.append((rows.to_pylist(), gone.to_pylist(), position))
        self.position = position
        if self.lost:
            raise self.lost.pop()

    def close(self) -> None:
        self.closed += 1


def columns(*pairs: tuple[str, str]) -> list[Column]:
    return [Column(name, kind, name == "k") for name, kind in pairs]


def test_every_type_has_its_own_in_arrow() -> None:
    kinds = {
        "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(),
        "BIGINT": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "DECIMAL(7, 2)": pa.decimal128(7, 2),
        "VARCHAR": pa.string(), "VARCHAR(3)": pa.string(), "VARBINARY": pa.binary(), "DATE": pa.date32(),
        "TIME": pa.time64("us"), "TIMESTAMP": pa.timestamp("us"), "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"),
        "ARRAY<MAP<VARCHAR, INTEGER>>": pa.list_(pa.map_(pa.string(), pa.int32())),
        "STRUCT<a BIGINT, b ARRAY<DATE>>": pa.struct([("a", pa.int64()), ("b", pa.list_(pa.date32()))]),
    }  # fmt: skip
    shape = table_shape([Column(str(at), kind) for at, kind in enumerate(kinds)], ())
    assert shape.schema.types == list(kinds.values())
    assert [f.nullable for f in table_shape(columns(("k", "INTEGER"), ("v", "INTEGER")), ("k",)).schema] == [
        False,
        True,
    ]


def test_of_each_key_the_last_word_is_written() -> None:
    table = Table()
    shape = table_shape(columns(("k", "DECIMAL(5, 1)"), ("day", "DATE"), ("tags", "ARRAY<VARCHAR>")), ("k", "day"))
    form = TableForm(lambda stopped: table, shape, Pace())
    day = dt.date(2024, 5, 17)
    rows = [(1, ["a"], False), (2, ["b"], False), (1, None, True), (3, ["c"], False), (2, None, False), (3, None, True),
            (3, ["d"], False)]  # fmt: skip
    pending = Pending(
        last=17,
        numbers=tuple(range(11, 18)),
        deleted=tuple(gone for _, _, gone in rows),
        rows=pa.table(
            {
                "k": pa.array([Decimal(k) for k, _, _ in rows], pa.decimal128(5, 1)),
                "day": pa.array([day] * len(rows)),
                "tags": pa.array([tags for _, tags, _ in rows], pa.list_(pa.string())),
            }
        ),
    )
    form.open(lambda: False).send(pending, "one")
    assert table.writes == [
        (
            [{"k": Decimal(2), "day": day, "tags": None}, {"k": Decimal(3), "day": day, "tags": ["d"]}],
            [{"k": Decimal(1), "day": day}],
            {"outbox": "one", "seq": 17},
        )
    ]


def test_rows_that_are_only_added_are_all_written() -> None:
    table = Table()
    form = TableForm(lambda stopped: table, table_shape(columns(("a", "BIGINT"), ("t", "TIME")), ()), Pace())
    evaluated = pa.table(
        {
            "passing": [True, True],
            "sink_0": pa.array([1, 1], pa.int32()),
            "sink_1": pa.array([0, None], pa.time64("ns")),
        }
    )
    form.open(lambda: False).write(evaluated, {"seq": 2})
    assert table.writes == [([{"a": 1, "t": dt.time()}, {"a": 1, "t": None}], [], {"seq": 2})]


def test_a_value_that_does_not_fit_fails_its_query() -> None:
    form = TableForm(lambda stopped: Table(), table_shape(columns(("a", "TINYINT")), ()), Pace())
    with pytest.raises(SqlError) as caught:
        form.open(lambda: False).write(pa.table({"sink_0": pa.array([300], pa.int32())}), {"seq": 1})
    assert (caught.value.sqlstate, caught.value.message) == ("22000", "a value does not fit its column of the table")


# --- once more --------------------------------------------------------------------------------------------------------
def away() -> SqlError:
    return SqlError("08006", 'could not connect to store "w"')


def nothing() -> pa.Table:
    return pa.table({"a": pa.array([], pa.int64())})


def test_a_commit_is_tried_again_some_times() -> None:
    table = Table()
    retried = RetriedTable(table.open, QUICK, lambda: False)
    retried.committed_position()
    table.fails = [away(), away()]
    retried.write(nothing(), nothing(), {"seq": 1})
    assert (len(table.writes), table.opened, table.closed) == (1, 3, 2)
    table.fails = [away(), away(), away()]
    with pytest.raises(SqlError, match="08006"):
        retried.write(nothing(), nothing(), {"seq": 2})
    assert table.position == {"seq": 1}


def test_a_commit_that_was_made_is_not_made_again() -> None:
    table = Table()
    retried = RetriedTable(table.open, QUICK, lambda: False)
    retried.committed_position()
    table.lost = [away()]
    retried.write(nothing(), nothing(), {"seq": 1})
    retried.write(nothing(), nothing(), {"seq": 2})
    assert [position for _, _, position in table.writes] == [{"seq": 1}, {"seq": 2}]


def test_another_server_that_writes_for_the_query_ends_the_attempts() -> None:
    table = Table()
    retried = RetriedTable(table.open, QUICK, lambda: False)
    retried.committed_position()
    table.fails, table.position = [away()], {"seq": 9}
    with pytest.raises(SqlError) as caught:
        retried.write(nothing(), nothing(), {"seq": 1})
    assert caught.value.message == "something else has written to the table for this query"
    assert table.writes == []


def test_what_no_attempt_mends_is_not_tried_again() -> None:
    table = Table()
    retried = RetriedTable(table.open, QUICK, lambda: False)
    table.fails = [SqlError("42804", "the column is of another type")]
    with pytest.raises(SqlError, match="42804"):
        retried.write(nothing(), nothing(), {"seq": 1})
    assert table.opened == 1


def test_a_stop_ends_the_wait_for_the_next_attempt() -> None:
    table, slow = Table(), TableOptions.of({"retry.backoff.millis": "10000"})
    retried = RetriedTable(table.open, slow, lambda: True)
    table.fails = [away()]
    with pytest.raises(SqlError, match="08006"):
        retried.write(nothing(), nothing(), {"seq": 1})
