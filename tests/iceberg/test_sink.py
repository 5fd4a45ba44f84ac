"""Rows into a real table: appended, replaced and deleted by key, each once, whoever else writes to it."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.exceptions import NoSuchTableError

from mvserver.errors import SqlError
from spark_sinks.base import TableShape
from spark_sinks.iceberg.limits import ICEBERG_KEYS_LISTED_MAX
from spark_sinks.table_options import TableOptions
from spark_sinks.table_writes import RetriedTable
from tests.iceberg.places import Lake, keys_of, table_of
from tests.table_sinks import Opening

CLICKS = TableShape(pa.schema([("n", pa.int64()), ("url", pa.string())]))
COUNTS = TableShape(
    pa.schema([pa.field("url", pa.string(), False), pa.field("day", pa.date32(), False), ("c", pa.int64())]),
    ("url", "day"),
)
DAY = dt.date(2024, 5, 17)


def click(*numbers: int) -> pa.Table:
    return table_of(CLICKS, [{"n": n, "url": f"./{n}"} for n in numbers])


def test_rows_and_position_are_one_commit(lake: Lake) -> None:
    lake.client.create_table("web.clicks", CLICKS, {})
    sink = lake.sink("web.clicks", CLICKS)
    assert sink.committed_position() is None
    sink.write(click(1, 2), keys_of(CLICKS), {"partitions": {"0": 2}})
    sink.write(click(3), keys_of(CLICKS), {"partitions": {"0": 3}})
    sink.close()
    again = lake.sink("web.clicks", CLICKS)
    assert again.committed_position() == {"partitions": {"0": 3}}
    assert lake.sink("web.clicks", CLICKS, "another").committed_position() is None
    assert lake.rows("web.clicks") == [{"n": n, "url": f"./{n}"} for n in (1, 2, 3)]
    snapshot = lake.catalog().load_table("web.clicks").current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert (snapshot.summary["mvserver.query"], snapshot.summary["mvserver.position"]) == (
        "q",
        '{"partitions": {"0": 3}}',
    )


def test_a_batch_without_rows_moves_the_position(lake: Lake) -> None:
    lake.client.create_table("web.clicks", CLICKS, {})
    sink = lake.sink("web.clicks", CLICKS)
    sink.committed_position()
    sink.write(click(), keys_of(CLICKS), {"seq": 7})
    assert lake.sink("web.clicks", CLICKS).committed_position() == {"seq": 7}


def test_a_sink_that_was_left_behind_writes_nothing(lake: Lake) -> None:
    """Of a server that hung and goes on, beside the one that has taken its place."""
    lake.client.create_table("web.clicks", CLICKS, {})
    old, new = lake.sink("web.clicks", CLICKS), lake.sink("web.clicks", CLICKS)
    assert old.committed_position() == new.committed_position() is None
    new.write(click(1), keys_of(CLICKS), {"seq": 1})
    with pytest.raises(SqlError) as caught:
        old.write(click(1), keys_of(CLICKS), {"seq": 1})
    assert caught.value.sqlstate == "40001"
    assert lake.rows("web.clicks") == [{"n": 1, "url": "./1"}]


def test_a_commit_between_the_look_and_the_commit_is_not_written_over(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client itself would put the rows on top of the other commit."""
    lake.client.create_table("web.clicks", CLICKS, {})
    slow, quick = lake.sink("web.clicks", CLICKS), lake.sink("web.clicks", CLICKS)
    slow.committed_position(), quick.committed_position()
    commit = slow._commit

    def late(*arguments: Any) -> None:
        quick.write(click(1), keys_of(CLICKS), {"seq": 1})
        commit(*arguments)

    monkeypatch.setattr(slow, "_commit", late)
    with pytest.raises(SqlError) as caught:
        slow.write(click(1), keys_of(CLICKS), {"seq": 1})
    assert caught.value.sqlstate == "40001"
    assert lake.rows("web.clicks") == [{"n": 1, "url": "./1"}]


def test_a_commit_beside_that_of_another_program_is_tried_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.client.create_table("web.clicks", CLICKS, {})

    def beside_another(commit: Any) -> Any:
        def late(*arguments: Any) -> None:
            lake.catalog().load_table("web.clicks").append(click(100))
            commit(*arguments)

        return late

    opening = Opening(lambda: lake.sink("web.clicks", CLICKS), monkeypatch, "_commit", beside_another)
    retried = RetriedTable(opening, TableOptions.of({"retry.backoff.millis": "10"}), lambda: False)
    retried.committed_position()
    retried.write(click(1), keys_of(CLICKS), {"seq": 1})
    assert len(opening.opened) == 2
    assert [row["n"] for row in lake.rows("web.clicks")] == [1, 100]


def test_a_commit_whose_reply_is_lost_is_not_made_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.client.create_table("web.clicks", CLICKS, {})

    def losing_its_reply(write: Any) -> Any:
        def lost(*arguments: Any) -> None:
            write(*arguments)
            raise SqlError("08006", "the reply was lost")

        return lost

    opening = Opening(lambda: lake.sink("web.clicks", CLICKS), monkeypatch, "write", losing_its_reply)
    retried = RetriedTable(opening, TableOptions.of({"retry.backoff.millis": "10"}), lambda: False)
    retried.committed_position()
    retried.write(click(1), keys_of(CLICKS), {"seq": 1})
    retried.write(click(2), keys_of(CLICKS), {"seq": 2})
    assert [row["n"] for row in lake.rows("web.clicks")] == [1, 2]


def test_snapshots_may_be_expired(lake: Lake) -> None:
    lake.client.create_table("web.clicks", CLICKS, {})
    sink = lake.sink("web.clicks", CLICKS)
    sink.committed_position()
    sink.write(click(1), keys_of(CLICKS), {"seq": 1})
    first = lake.catalog().load_table("web.clicks").current_snapshot()
    assert first is not None
    table = lake.catalog().load_table("web.clicks")
    table.append(click(9))  # another program's
    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    assert lake.sink("web.clicks", CLICKS).committed_position() == {"seq": 1}


def test_a_table_that_is_set_back_gets_its_rows_again(lake: Lake) -> None:
    lake.client.create_table("web.clicks", CLICKS, {})
    sink = lake.sink("web.clicks", CLICKS)
    sink.committed_position()
    sink.write(click(1), keys_of(CLICKS), {"seq": 1})
    table = lake.catalog().load_table("web.clicks")
    first = table.current_snapshot()
    assert first is not None
    sink.write(click(2), keys_of(CLICKS), {"seq": 2})
    table = lake.catalog().load_table("web.clicks")
    with table.manage_snapshots() as managing:
        managing.rollback_to_snapshot(first.snapshot_id)
    assert lake.rows("web.clicks") == [{"n": 1, "url": "./1"}]
    again = lake.sink("web.clicks", CLICKS)
    assert again.committed_position() == {"seq": 1}
    again.write(click(2), keys_of(CLICKS), {"seq": 2})
    assert [row["n"] for row in lake.rows("web.clicks")] == [1, 2]


# --- by key -----------------------------------------------------------------------------------------------------------
def test_rows_are_replaced_and_deleted_by_their_key(lake: Lake) -> None:
    lake.client.create_table("web.counts", COUNTS, {})
    sink = lake.sink("web.counts", COUNTS)
    sink.committed_position()
    first = [{"url": url, "day": DAY, "c": c} for url, c in (("./a", 1), ("./b", 2), ("./c", 3))]
    sink.write(table_of(COUNTS, first), keys_of(COUNTS), {"seq": 3})
    other_day = {"url": "./a", "day": DAY + dt.timedelta(1), "c": 7}
    changed = [{"url": "./a", "day": DAY, "c": 10}, other_day]
    sink.write(table_of(COUNTS, changed), keys_of(COUNTS, [{"url": "./b", "day": DAY}]), {"seq": 6})
    assert lake.rows("web.counts") == sorted([changed[0], other_day, first[2]], key=repr)
    sink.write(
        table_of(COUNTS, []), keys_of(COUNTS, [{"url": "./c", "day": DAY}, {"url": "./x", "day": DAY}]), {"seq": 8}
    )
    assert lake.rows("web.counts") == sorted([changed[0], other_day], key=repr)
    assert lake.sink("web.counts", COUNTS).committed_position() == {"seq": 8}


@pytest.mark.parametrize("keys", [7, ICEBERG_KEYS_LISTED_MAX * 3], ids=["few", "many"])
def test_any_row_of_upserts_is_the_dictionary_of_them(lake: Lake, keys: int) -> None:
    chance = random.Random(keys)
    shape = TableShape(
        pa.schema([pa.field("k", pa.decimal128(20, 2), False), pa.field("t", pa.timestamp("us", "UTC"), False),
                   ("tags", pa.list_(pa.string())), ("v", pa.float64())]),
        ("k", "t"),
    )  # fmt: skip
    lake.client.create_table("web.numbers", shape, {})
    sink = lake.sink("web.numbers", shape)
    sink.committed_position()
    noon = dt.datetime(2024, 5, 17, 12, tzinfo=dt.UTC)
    truth: dict[tuple[Decimal, dt.datetime], dict[str, Any]] = {}
    for seq in range(6):
        chosen = chance.sample(range(keys * 2), keys)
        rows, gone = [], []
        for at in chosen:
            key = (Decimal(at // 2).scaleb(-2), noon + dt.timedelta(seconds=at % 2))
            if chance.random() < 0.3:
                gone.append({"k": key[0], "t": key[1]})
                truth.pop(key, None)
            else:
                truth[key] = {"k": key[0], "t": key[1], "tags": ["a", None], "v": chance.random()}
                rows.append(truth[key])
        sink.write(table_of(shape, rows), keys_of(shape, gone), {"seq": seq})
    assert lake.rows("web.numbers") == sorted(truth.values(), key=repr)


def test_every_type_comes_back_as_it_was(lake: Lake) -> None:
    schema = pa.schema(
        [
            ("b", pa.bool_()), ("i8", pa.int8()), ("i16", pa.int16()), ("i32", pa.int32()), ("i64", pa.int64()),
            ("f", pa.float32()), ("d", pa.float64()), ("n", pa.decimal128(38, 10)), ("s", pa.string()),
            ("x", pa.binary()), ("day", pa.date32()), ("time", pa.time64("us")), ("ts", pa.timestamp("us")),
            ("tz", pa.timestamp("us", "UTC")), ("list", pa.list_(pa.int32())),
            ("map", pa.map_(pa.string(), pa.int64())),
            ("struct", pa.struct([("inner", pa.string()), ("deep", pa.list_(pa.struct([("z", pa.int64())])))])),
        ]
    )  # fmt: skip
    row = {
        "b": True, "i8": -128, "i16": -(2**15), "i32": 2**31 - 1, "i64": -(2**63), "f": 0.5, "d": float("inf"),
        "n": Decimal("1234567890123456789012345678.0123456789"), "s": "Ünïcode \U0001f600", "x": b"\x00\xff",
        "day": dt.date(1, 1, 1), "time": dt.time(23, 59, 59, 999999), "ts": dt.datetime(2024, 2, 29, 1, 2, 3, 4),
        "tz": dt.datetime(1969, 12, 31, tzinfo=dt.UTC), "list": [1, None], "map": [("a", 1), ("b", None)],
        "struct": {"inner": "y", "deep": [{"z": 5}]},
    }  # fmt: skip
    shape = TableShape(schema)
    lake.client.create_table("web.types", shape, {})
    assert lake.client.check_table("web.types", shape, {})
    sink = lake.sink("web.types", shape)
    sink.committed_position()
    sink.write(table_of(shape, [row, dict.fromkeys(row)]), keys_of(shape), {"seq": 1})
    assert lake.rows("web.types") == sorted([row, dict.fromkeys(row)], key=repr)
    files = [task.file.file_path for task in lake.catalog().load_table("web.types").scan().plan_files()]
    ((count, digits),) = duckdb.sql(f"SELECT count(*), max(n)::text FROM read_parquet({files})").fetchall()
    assert (count, digits) == (2, "1234567890123456789012345678.0123456789")


def test_a_table_that_is_gone_is_named(lake: Lake) -> None:
    lake.client.create_table("web.clicks", CLICKS, {})
    sink = lake.sink("web.clicks", CLICKS)
    sink.committed_position()
    lake.client.drop_entity("web.clicks", {})
    with pytest.raises(SqlError) as caught:
        sink.write(click(1), keys_of(CLICKS), {"seq": 1})
    assert str(caught.value) == '42704: entity "web.clicks" does not exist in store "lake"'
    with pytest.raises(NoSuchTableError):
        lake.catalog().load_table("web.clicks")
