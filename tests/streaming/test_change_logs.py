"""Change logs: what differs between the rows before and after a batch, read as the changes of a changelog."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mvserver.dialect.errors.duck_errors import translate
from mvserver.serving.engine.database import Database
from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.capture import take_changes
from spark_sinks.duckdb.changes.changelog import KeyedRows, RetractedState, last_changes
from spark_sinks.duckdb.changes.logs import Log
from spark_sinks.duckdb.record_columns import DELETED
from spark_sinks.duckdb.state.state import Measure, StateMeasure, UpsertState
from spark_sinks.duckdb.writer import Writer

SEED = int(os.environ.get("MVSERVER_TEST_SEED", "20261121"))
NOON = dt.datetime(2024, 5, 17, 12, tzinfo=dt.UTC)
LOG = Log("v_1_join_log", ("VARCHAR", "TIMESTAMPTZ", "BIGINT", "DOUBLE"), "log", key_columns=2)
KEYS = tuple((text, at) for text in ("a", "b", None, 'a","b', "", "null") for at in (NOON, NOON.replace(hour=3), None))
ROWS = KeyedRows("v_2", LOG.types[:2], ("BIGINT", "DOUBLE"), nullable=True)
GROUPS = RetractedState(
    UpsertState("v_3", ("BIGINT",), (StateMeasure(Measure.SUM, "DECIMAL(38, 0)"),)),
    KeyedRows("v_3_rows", LOG.types[:2], ("BIGINT", "BIGINT"), nullable=True),
    ("c1",),
)

Rows = dict[tuple[Any, Any], tuple[Any, Any]]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    database = Database.open(tmp_path / "views.duckdb")
    writer = Writer(database.cursor, translate)
    with writer.transaction():
        for statement in logs.create_statements(LOG):
            writer.execute(statement)
        for state in (ROWS, GROUPS):
            for statement in state.create_statements():
                writer.execute(statement)
    yield writer
    writer.close()
    database.close()


def table(rows: Rows) -> pa.Table:
    kinds = (pa.string(), pa.timestamp("us", "UTC"), pa.int64(), pa.float64())
    columns = list(zip(*((*key, *value) for key, value in rows.items()), strict=True)) or [()] * 4
    arrays = {f"c{i}": pa.array(column, kind) for i, (column, kind) in enumerate(zip(columns, kinds, strict=True))}
    return pa.table({"r": pa.array([NOON] * len(rows), pa.timestamp("us", "UTC")), **arrays})


def append(writer: Writer, before: Rows, after: Rows) -> None:
    with writer.transaction(), writer.read_cursor() as cursor:
        cursor.execute("BEGIN TRANSACTION")
        cursor.register("old", table(before))
        cursor.register("new", table(after))
        for statement in logs.append_changes(LOG, "old", "new"):
            cursor.execute(statement)
        cursor.execute("COMMIT")


def changes(writer: Writer, start: int) -> pa.Table:
    with writer.read_cursor() as cursor:
        cursor.execute("SET TimeZone = 'UTC'")
        ((_, end),) = cursor.execute(logs.bounds_query(LOG)).fetchall()
        names = [f"c{i}" for i in range(4)]
        return cursor.execute(logs.read_query(LOG, names), [start, end]).to_arrow_table()


def change(chance: random.Random, rows: Rows) -> Rows:
    """A number of keys get new values, the same ones, or go."""
    after = dict(rows)
    for key in chance.sample(KEYS, chance.randint(0, 6)):
        if chance.random() < 0.3:
            after.pop(key, None)
        elif key not in after or chance.random() < 0.8:
            after[key] = (chance.choice((None, 1, 2)), chance.choice((None, 0.5, float("nan"))))
    return after


def plain(rows: Any) -> set[str]:
    return {str(row) for row in rows}


def test_the_log_has_what_differs_and_nothing_else(writer: Writer) -> None:
    one: Rows = {("a", None): (1, None), (None, NOON): (None, 2.0), ("b", NOON): (3, float("nan"))}
    append(writer, {}, one)
    append(writer, one, dict(one))
    assert changes(writer, 3).num_rows == 0, "equal rows, be they of NULLs or NaN, are no change"
    append(writer, one, {("a", None): (None, None), (None, NOON): (None, 2.0)})
    found = changes(writer, 3).drop_columns(["position", "record_time"]).to_pylist()
    assert sorted(found, key=lambda row: row[DELETED]) == [
        {DELETED: False, "c0": "a", "c1": None, "c2": None, "c3": None},
        {DELETED: True, "c0": "b", "c1": NOON, "c2": None, "c3": None},
    ]


def test_rows_without_key_columns_are_one_row(writer: Writer) -> None:
    log = Log("v_1_join_one", ("BIGINT",), "log", key_columns=0)
    one = KeyedRows("v_4", (), ("BIGINT",), nullable=True)
    with writer.transaction():
        for statement in (*logs.create_statements(log), *one.create_statements()):
            writer.execute(statement)
        writer.execute("CREATE TEMP TABLE nothing AS SELECT now() AS r, 1::BIGINT AS c0 WHERE false")
        for value, before in ((7, "nothing"), (8, "t7")):
            writer.execute(f"CREATE TEMP TABLE t{value} AS SELECT now() AS r, {value}::BIGINT AS c0")
            for statement in logs.append_changes(log, before, f"t{value}"):
                writer.execute(statement)
    with writer.read_cursor() as cursor:
        assert cursor.execute(f"SELECT seq, deleted, c0 FROM {log.qualified}").fetchall() == [
            (0, False, 7),
            (1, False, 8),
        ]
        latest = last_changes(
            log.qualified, keys=(), known="true", passing="NOT deleted", order=("seq",), columns=("c0",),
            identity=one.identity_of(()),
        )  # fmt: skip
        take_changes(cursor, cursor.register, one, latest, None, None)
        assert cursor.execute('SELECT c0 FROM "_state".v_4').fetchall() == [(8,)]


def test_changes_build_the_same_rows_and_groups(writer: Writer) -> None:
    """Random changes, read in random pieces: rows and groups over them are those of the rows that are there."""
    print("seed", SEED)
    chance = random.Random(SEED)
    rows: Rows = {}
    read = 0
    for _ in range(40):
        after = change(chance, rows)
        append(writer, rows, after)
        rows = after
        if chance.random() < 0.6:
            continue
        batch = changes(writer, read)
        read += batch.num_rows
        with writer.read_cursor() as cursor:
            cursor.execute(f"SET TimeZone = '{chance.choice(('UTC', 'Asia/Tokyo', 'America/New_York'))}'")
            cursor.register("mv_batch", batch)
            for state, columns in ((ROWS, ("c2", "c3")), (GROUPS, ("c2", "c2"))):
                keyed = state.rows if isinstance(state, RetractedState) else state
                latest = last_changes(
                    "mv_batch", keys=("c0", "c1"), known="true", passing=f"NOT {DELETED}",
                    order=("position::BIGINT",), columns=columns, identity=keyed.identity_of(("c0", "c1")),
                )  # fmt: skip
                take_changes(cursor, cursor.register, state, latest, None, None)
            cursor.execute("SET TimeZone = 'UTC'")
            found = cursor.execute('SELECT p0, p1::TIMESTAMP, c0, c1 FROM "_state".v_2').fetchall()
            groups = cursor.execute(
                'SELECT k0, n, m0 FROM (FROM "_state".v_3 UNION ALL FROM "_state".v_3_nulls)'
            ).fetchall()
        assert plain(found) == plain((k, at and at.replace(tzinfo=None), *value) for (k, at), value in rows.items())
        numbers = [number for number, _ in rows.values()]
        expected = {(n, numbers.count(n), n and n * numbers.count(n)) for n in numbers}
        assert {(k, n, None if k is None else int(m)) for k, n, m in groups} == expected
    assert read > 60
