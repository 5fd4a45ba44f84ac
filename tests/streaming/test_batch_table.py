"""The batch that many views merge from: a copy in DuckDB where it is small, with the same rows as the Arrow table."""

from __future__ import annotations

import datetime as dt
import gc
import random
import weakref
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from mvserver.serving.engine.database import Database
from mvserver.views.finishing import layout_of
from spark_sinks.duckdb import batch_table
from spark_sinks.duckdb.batch_plans import BatchCommit, TableMerge, ViewMerge
from spark_sinks.duckdb.batch_table import BATCH
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from spark_sinks.duckdb.state.roll_ups import MeasureInput, RollUp
from spark_sinks.duckdb.writer import MergeError, Writer
from tests.streaming.states import target, writer_in

SQL = "SELECT k, count(*), sum(i) AS s FROM events GROUP BY k"


class Views:
    """So many equal views that merge from one table."""

    def __init__(self, database: Database, writer: Writer, number: int) -> None:
        self.database, self.writer = database, writer
        self.targets = [target(SQL, i) for i in range(number)]
        self.batches = 0
        with writer.transaction():
            for each in self.targets:
                writer.create_state(each.state, layout_of(each))

    def commit(self, *tables: pa.Table, failing: int | None = None) -> None:
        """In one transaction: several tables where a view catches up beside a batch."""
        merges = tuple(self._merge(i, failing=i == failing) for i in range(len(self.targets)))
        number = self.batches
        entry = LedgerEntry("p", 1, number, {"at": number}, {"at": number + 1}, sum(table.num_rows for table in tables))
        assert self.writer.commit(BatchCommit(entry, tuple(TableMerge(table, merges) for table in tables)))
        self.batches += 1

    def _merge(self, index: int, *, failing: bool) -> ViewMerge:
        summed = "k::INTEGER" if failing else "i"
        each = self.targets[index]
        roll_up = RollUp(each.groups, BATCH, ("k",), (MeasureInput(summed),))
        return ViewMerge(each.query_id, each.state, roll_ups=(roll_up,))

    def rows(self) -> list[list[tuple[Any, ...]]]:
        with self.database.cursor() as cursor:
            return [
                cursor.execute(f'SELECT * FROM "_views"."{each.view_id}" ORDER BY ALL').fetchall()
                for each in self.targets
            ]


def _table(*pairs: tuple[str, int]) -> pa.Table:
    return pa.table({"k": pa.array([k for k, _ in pairs]), "i": pa.array([i for _, i in pairs], pa.int32())})


@pytest.mark.parametrize("number", [1, 3, 4, 30])
def test_all_views_merge_each_batch_once(tmp_path: Path, number: int) -> None:
    with writer_in(tmp_path) as (database, writer):
        views = Views(database, writer, number)
        views.commit(_table(("a", 1), ("a", 2), ("b", 5)))
        views.commit(_table(("b", 7), ("c", -1)))
        assert views.rows() == [[("a", 2, 3), ("b", 2, 12), ("c", 1, -1)]] * number


def test_what_one_transaction_brings_in_parts_is_merged_into_the_same_rows(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (database, writer):
        views = Views(database, writer, 5)
        views.commit(_table(("a", 1), ("b", 2)), _table(("b", 3), ("c", 4)), _table(("c", 5), ("a", 6), ("d", 7)))
        views.commit(_table(("d", 1)), _table(("d", 2), ("e", 3)), _table(("e", 4)))
        assert views.rows() == [[("a", 2, 7), ("b", 2, 5), ("c", 2, 9), ("d", 3, 10), ("e", 2, 7)]] * 5


def test_a_batch_of_many_records_is_read_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_table, "_COPIED_ROWS_MAX", 2)
    with writer_in(tmp_path) as (database, writer):
        views = Views(database, writer, 5)
        views.commit(_table(("a", 1), ("b", 2), ("c", 3)))
        views.commit(_table(("a", 4), ("b", 5)))
        assert views.rows() == [[("a", 2, 5), ("b", 2, 7), ("c", 1, 3)]] * 5


def test_a_column_without_a_type_is_taken_as_it_is(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (database, writer):
        views = Views(database, writer, 5)
        views.commit(pa.table({"k": pa.array(["a", "a"]), "i": pa.nulls(2)}))
        assert views.rows() == [[("a", 2, None)]] * 5


def test_after_a_view_that_fails_the_batch_can_be_committed_without_it(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (database, writer):
        views = Views(database, writer, 6)
        table = _table(("a", 1), ("b", 2))
        with pytest.raises(MergeError) as failed:
            views.commit(table, failing=3)
        assert failed.value.query_id == "q3"
        assert views.rows() == [[]] * 6
        views.commit(table)
        assert views.rows() == [[("a", 1, 1), ("b", 1, 2)]] * 6


@pytest.mark.parametrize("number", [1, 6])
def test_no_row_of_a_batch_is_left_behind(tmp_path: Path, number: int) -> None:
    with writer_in(tmp_path) as (database, writer):
        views = Views(database, writer, number)
        table = _table(("a", 1))
        kept = weakref.ref(table)
        views.commit(table)
        del table
        gc.collect()
        assert kept() is None
        left = writer._cursor.execute(
            "SELECT table_name FROM duckdb_tables() WHERE temporary "
            "UNION ALL SELECT view_name FROM duckdb_views() WHERE temporary AND NOT internal"
        ).fetchall()
        assert len(left) <= 1
        for (name,) in left:
            assert writer._cursor.execute(f"FROM {name}").fetchall() == []


@pytest.mark.parametrize("number", [1, 6])
def test_batches_of_other_columns_and_sizes_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The name that equal tables share stands for the rows of the batch, whatever came before it."""
    monkeypatch.setattr(batch_table, "_HANDED_ROWS_MAX", 3)
    monkeypatch.setattr(batch_table, "_COPIED_ROWS_MAX", 4)
    rng = random.Random(number)
    with writer_in(tmp_path) as (database, writer):
        views = Views(database, writer, number)
        expected: dict[str, list[int]] = {}
        for _ in range(60):
            monkeypatch.setattr(batch_table, "_COPIED_FROM_VIEWS", rng.choice((1, 4)))
            pairs = [(rng.choice("abcdefg"), rng.randrange(100)) for _ in range(rng.randrange(1, 7))]
            table = _table(*pairs)
            if rng.random() < 0.3:
                table = table.append_column("more", pa.array([rng.random() for _ in pairs])).select(["more", "i", "k"])
            if rng.random() < 0.2:
                with pytest.raises(MergeError):
                    views.commit(table, failing=rng.randrange(number))
                continue
            views.commit(table)
            for k, i in pairs:
                expected.setdefault(k, []).append(i)
        assert views.rows() == [[(k, len(each), sum(each)) for k, each in sorted(expected.items())]] * number


def test_a_transaction_that_is_rolled_back_leaves_the_name_of_one_before(tmp_path: Path) -> None:
    """Whoever rolls back for another reason, as of a damaged file, runs no statement for it."""
    with writer_in(tmp_path) as (database, writer):
        views = Views(database, writer, 1)
        views.commit(_table(("a", 1)))
        rows = writer._batch._rows
        assert rows is not None
        with pytest.raises(ZeroDivisionError), writer.transaction():
            raise ZeroDivisionError
        with pytest.raises(MergeError):
            views.commit(_table(("a", 2)), failing=0)
        assert pa.table(rows).num_rows == 0
        views.commit(_table(("a", 3), ("b", 4)))
        assert writer._batch._rows is rows
        assert views.rows() == [[("a", 2, 4), ("b", 1, 4)]]


@pytest.mark.parametrize("rows", [1, 2_048, 2_049, 20_000])
def test_columns_of_all_types_are_handed_over(rows: int) -> None:
    """By the name that stays, as by one that DuckDB is given for the table alone; also some of its chunks' rows."""
    rng = random.Random(rows)

    def some(value: Any) -> list[Any]:
        return [None if rng.random() < 0.2 else value(i) for i in range(rows)]

    made = pa.table(
        {
            "flag": pa.array(some(lambda i: i % 3 == 0)),
            "text": pa.array(some(lambda i: f"text {i} " * (i % 5))),
            "number": pa.array(some(lambda i: i - 7), pa.int64()),
            "money": pa.array(some(lambda i: Decimal(i) / 100), pa.decimal128(38, 10)),
            "time": pa.array(
                some(lambda i: dt.datetime(2026, 1, 1) + dt.timedelta(microseconds=i)), pa.timestamp("us")
            ),
            "list": pa.array(some(lambda i: [i, None, i + 1]), pa.list_(pa.int32())),
            "structure": pa.array(some(lambda i: {"t": i, "v": f"v{i}"})),
            "nothing": pa.nulls(rows),
            "bytes": pa.array(some(lambda i: bytes([i % 256]) * (i % 20)), pa.binary()),
        }
    )
    chunked = pa.concat_tables([made.slice(0, rows // 3), made.slice(rows // 3)])
    with duckdb.connect() as cursor:
        batch = batch_table.BatchTable(cursor)
        for table in (made, chunked, made.slice(rows // 2)):
            cursor.register("alone", table)
            for query in (
                "FROM {}",
                "SELECT text, number FROM {} WHERE flag AND number > 10",
                "SELECT count(*) FROM {}",
            ):
                batch.show(table, 1)
                found = cursor.execute(query.format(BATCH)).fetchall()
                batch.hide()
                assert found == cursor.execute(query.format("alone")).fetchall()
