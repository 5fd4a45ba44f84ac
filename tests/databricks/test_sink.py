"""Rows into a real Delta table: appended, replaced and deleted by key, each once, whoever else writes to it."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mvserver.errors import SqlError
from spark_sinks.base import TableShape
from spark_sinks.table_options import TableOptions
from spark_sinks.table_writes import RetriedTable
from tests.databricks.places import Workspace, keys_of, table_of
from tests.table_sinks import Opening, random_commits

CLICKS = TableShape(pa.schema([("n", pa.int64()), ("Url", pa.string())]))
COUNTS = TableShape(
    pa.schema([pa.field("Url", pa.string(), False), pa.field("day", pa.date32(), False), ("c", pa.int64())]),
    ("Url", "day"),
)
DAY = dt.date(2024, 5, 17)
NAME = "main.web.clicks"
QUICK = TableOptions.of({"retry.backoff.millis": "10"})


def click(*numbers: int) -> pa.Table:
    return table_of(CLICKS, [{"n": n, "Url": f"./{n}"} for n in numbers])


def clicks(*numbers: int) -> list[dict[str, Any]]:
    return sorted(click(*numbers).to_pylist(), key=repr)


def test_rows_and_position_are_one_commit(workspace: Workspace) -> None:
    workspace.client.create_table(NAME, CLICKS, {})
    sink = workspace.sink(NAME, CLICKS)
    assert sink.committed_position() is None
    sink.write(click(1, 2), keys_of(CLICKS), {"partitions": {"0": 2}})
    sink.write(click(3), keys_of(CLICKS), {"partitions": {"0": 3}})
    sink.close()
    assert workspace.sink(NAME, CLICKS).committed_position() == {"partitions": {"0": 3}}
    assert workspace.sink(NAME, CLICKS, "another").committed_position() is None
    assert workspace.rows(NAME) == clicks(1, 2, 3)
    table = workspace.table(NAME)
    assert (table.version(), table.transaction_version("q")) == (2, 2)
    assert table.history(1)[0]["mvserver.position"] == '{"partitions": {"0": 3}}'


def test_a_batch_without_rows_moves_the_position(workspace: Workspace) -> None:
    workspace.client.create_table(NAME, CLICKS, {})
    sink = workspace.sink(NAME, CLICKS)
    sink.committed_position()
    sink.write(click(), keys_of(CLICKS), {"seq": 7})
    assert workspace.sink(NAME, CLICKS).committed_position() == {"seq": 7}
    sink.renew({"seq": 7})
    assert workspace.sink(NAME, CLICKS).committed_position() == {"seq": 7}
    assert workspace.table(NAME).version() == 2


def test_the_position_is_found_behind_commits_of_others(workspace: Workspace) -> None:
    workspace.client.create_table(NAME, CLICKS, {})
    sink = workspace.sink(NAME, CLICKS)
    sink.committed_position()
    sink.write(click(1), keys_of(CLICKS), {"seq": 1})
    for n in range(2, 5):
        write_deltalake(workspace.table(NAME), click(n), mode="append")
    workspace.table(NAME).create_checkpoint()
    workspace.table(NAME).optimize.compact()
    assert workspace.sink(NAME, CLICKS).committed_position() == {"seq": 1}
    sink.write(click(5), keys_of(CLICKS), {"seq": 2})
    assert workspace.sink(NAME, CLICKS).committed_position() == {"seq": 2}
    assert workspace.rows(NAME) == clicks(1, 2, 3, 4, 5)


def test_a_sink_that_was_left_behind_writes_nothing(workspace: Workspace) -> None:
    """Of a server that hung and goes on, beside the one that has taken its place."""
    workspace.client.create_table(NAME, CLICKS, {})
    old, new = workspace.sink(NAME, CLICKS), workspace.sink(NAME, CLICKS)
    assert old.committed_position() == new.committed_position() is None
    new.write(click(1), keys_of(CLICKS), {"seq": 1})
    with pytest.raises(SqlError) as caught:
        old.write(click(1), keys_of(CLICKS), {"seq": 1})
    assert caught.value.sqlstate == "40001"
    assert workspace.rows(NAME) == clicks(1)


@pytest.mark.parametrize("shape", [CLICKS, TableShape(CLICKS.schema, ("n",))], ids=["append", "merge"])
def test_a_commit_between_the_look_and_the_commit_is_not_written_over(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, shape: TableShape
) -> None:
    workspace.client.create_table(NAME, shape, {})
    slow, quick = workspace.sink(NAME, shape), workspace.sink(NAME, shape)
    slow.committed_position(), quick.committed_position()
    step = "_merge" if shape.key else "_append"
    commit = getattr(slow, step)

    def late(*arguments: Any) -> None:
        quick.write(click(1), keys_of(shape), {"seq": 1})
        commit(*arguments)

    monkeypatch.setattr(slow, step, late)
    with pytest.raises(SqlError) as caught:
        slow.write(click(1), keys_of(shape), {"seq": 1})
    assert caught.value.sqlstate == "40001"
    assert workspace.rows(NAME) == clicks(1)


def test_a_commit_beside_that_of_another_program_is_tried_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.client.create_table(NAME, CLICKS, {})

    def beside_another(commit: Any) -> Any:
        def late(*arguments: Any) -> None:
            write_deltalake(workspace.table(NAME), click(100), mode="append")
            commit(*arguments)

        return late

    opening = Opening(lambda: workspace.sink(NAME, CLICKS), monkeypatch, "_append", beside_another)
    retried = RetriedTable(opening, QUICK, lambda: False)
    retried.committed_position()
    retried.write(click(1), keys_of(CLICKS), {"seq": 1})
    assert len(opening.opened) == 2
    assert workspace.rows(NAME) == clicks(1, 100)


def test_a_commit_whose_reply_is_lost_is_not_made_again(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.client.create_table(NAME, CLICKS, {})

    def losing_its_reply(write: Any) -> Any:
        def lost(*arguments: Any) -> None:
            write(*arguments)
            raise SqlError("08006", "the reply was lost")

        return lost

    opening = Opening(lambda: workspace.sink(NAME, CLICKS), monkeypatch, "write", losing_its_reply)
    retried = RetriedTable(opening, QUICK, lambda: False)
    retried.committed_position()
    retried.write(click(1), keys_of(CLICKS), {"seq": 1})
    retried.write(click(2), keys_of(CLICKS), {"seq": 2})
    assert workspace.rows(NAME) == clicks(1, 2)


def test_a_log_that_has_forgotten_the_commit_is_told(workspace: Workspace) -> None:
    workspace.client.create_table(NAME, CLICKS, {})
    sink = workspace.sink(NAME, CLICKS)
    sink.committed_position()
    sink.write(click(1), keys_of(CLICKS), {"seq": 1})
    table = workspace.table(NAME)
    table.create_checkpoint()
    files, folder = workspace.storage.files(workspace.unity.tables[NAME]["storage_location"])
    files.delete_file(f"{folder}/_delta_log/{1:020}.json")
    with pytest.raises(SqlError) as caught:
        workspace.sink(NAME, CLICKS).committed_position()
    assert caught.value.sqlstate == "55000"


# --- by key -----------------------------------------------------------------------------------------------------------
def test_rows_are_replaced_and_deleted_by_their_key(workspace: Workspace) -> None:
    name = "main.web.counts"
    workspace.client.create_table(name, COUNTS, {})
    sink = workspace.sink(name, COUNTS)
    sink.committed_position()
    first = [{"Url": url, "day": DAY, "c": c} for url, c in (("./a", 1), ("./b", 2), ("./c", 3))]
    sink.write(table_of(COUNTS, first), keys_of(COUNTS), {"seq": 3})
    other_day = {"Url": "./a", "day": DAY + dt.timedelta(1), "c": 7}
    changed = [{"Url": "./a", "day": DAY, "c": 10}, other_day]
    sink.write(table_of(COUNTS, changed), keys_of(COUNTS, [{"Url": "./b", "day": DAY}]), {"seq": 6})
    assert workspace.rows(name) == sorted([changed[0], other_day, first[2]], key=repr)
    gone = keys_of(COUNTS, [{"Url": "./c", "day": DAY}, {"Url": "./x", "day": DAY}])
    sink.write(table_of(COUNTS, []), gone, {"seq": 8})
    assert workspace.rows(name) == sorted([changed[0], other_day], key=repr)
    sink.write(table_of(COUNTS, []), keys_of(COUNTS, [{"Url": "./x", "day": DAY}]), {"seq": 9})  # changes nothing
    assert workspace.sink(name, COUNTS).committed_position() == {"seq": 9}
    assert workspace.rows(name) == sorted([changed[0], other_day], key=repr)


@pytest.mark.parametrize("keys", [7, 600], ids=["few", "many"])
def test_any_row_of_upserts_is_the_dictionary_of_them(workspace: Workspace, keys: int) -> None:
    chance = random.Random(keys)
    shape = TableShape(
        pa.schema([pa.field("k", pa.decimal128(20, 2), False), pa.field("t", pa.timestamp("us", "UTC"), False),
                   pa.field("x", pa.binary(), False), ("tags", pa.list_(pa.string())), ("v", pa.float64())]),
        ("k", "t", "x"),
    )  # fmt: skip
    workspace.client.create_table("main.web.numbers", shape, {})
    sink = workspace.sink("main.web.numbers", shape)
    sink.committed_position()
    commits, truth = random_commits(chance, keys, 6, {"tags": ["a", None]})
    for seq, (rows, gone) in enumerate(commits):
        sink.write(table_of(shape, rows), keys_of(shape, gone), {"seq": seq})
    assert workspace.rows("main.web.numbers") == truth


def test_every_type_comes_back_as_it_was(workspace: Workspace) -> None:
    schema = pa.schema(
        [
            ("b", pa.bool_()), ("i8", pa.int8()), ("i16", pa.int16()), ("i32", pa.int32()), ("i64", pa.int64()),
            ("f", pa.float32()), ("d", pa.float64()), ("n", pa.decimal128(38, 10)), ("s", pa.string()),
            ("x", pa.binary()), ("day", pa.date32()), ("ts", pa.timestamp("us")),
            ("tz", pa.timestamp("us", "UTC")), ("list", pa.list_(pa.int32())),
            ("map", pa.map_(pa.string(), pa.int64())),
            ("struct", pa.struct([("inner", pa.string()), ("deep", pa.list_(pa.struct([("z", pa.int64())])))])),
        ]
    )  # fmt: skip
    row = {
        "b": True, "i8": -128, "i16": -(2**15), "i32": 2**31 - 1, "i64": -(2**63), "f": 0.5, "d": float("inf"),
        "n": Decimal("1234567890123456789012345678.0123456789"), "s": "Ünïcode \U0001f600", "x": b"\x00\xff",
        "day": dt.date(1, 1, 1), "ts": dt.datetime(2024, 2, 29, 1, 2, 3, 4),
        "tz": dt.datetime(1969, 12, 31, tzinfo=dt.UTC), "list": [1, None], "map": [("a", 1), ("b", None)],
        "struct": {"inner": "y", "deep": [{"z": 5}]},
    }  # fmt: skip
    name, shape = "main.web.types", TableShape(schema)
    workspace.client.create_table(name, shape, {})
    assert workspace.client.check_table(name, shape, {})
    sink = workspace.sink(name, shape)
    sink.committed_position()
    sink.write(table_of(shape, [row, dict.fromkeys(row)]), keys_of(shape), {"seq": 1})
    keyed = TableShape(
        pa.schema([pa.field("i64", pa.int64(), False), *(f for f in schema if f.name != "i64")]), ("i64",)
    )
    merged = workspace.sink(name, TableShape(keyed.schema, ("i64",)), "m")
    merged.committed_position()
    other = {**row, "i64": 7}
    merged.write(table_of(keyed, [other]), keys_of(keyed), {"seq": 1})
    assert workspace.rows(name) == sorted([row, other, dict.fromkeys(row)], key=repr)
    files = workspace.table(name).file_uris()
    ((count, digits),) = duckdb.sql(f"SELECT count(*), max(n)::text FROM read_parquet({files})").fetchall()
    assert (count, digits) == (3, "1234567890123456789012345678.0123456789")


def test_a_table_that_is_gone_is_named(workspace: Workspace) -> None:
    workspace.client.create_table(NAME, CLICKS, {})
    sink = workspace.sink(NAME, CLICKS)
    sink.committed_position()
    workspace.client.drop_entity(NAME, {})
    with pytest.raises(SqlError) as caught:
        workspace.sink(NAME, CLICKS)
    assert str(caught.value) == f'42704: entity "{NAME}" does not exist in store "bricks"'
    with pytest.raises(SqlError):
        sink.write(click(1), keys_of(CLICKS), {"seq": 1})
