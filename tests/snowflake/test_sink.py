"""Rows into tables of a real emulator: appended, replaced and deleted by key, each once, whoever else writes there."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import threading
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from mvserver.errors import SqlError
from spark_sinks.base import TableShape
from spark_sinks.snowflake.columns import texts
from spark_sinks.table_options import TableOptions
from spark_sinks.table_writes import RetriedTable
from tests.snowflake.gate import Gate
from tests.snowflake.places import Account, keys_of, table_of
from tests.table_sinks import Opening, random_commits

pytestmark = pytest.mark.snowflake

CLICKS = TableShape(pa.schema([("n", pa.int64()), ("Url", pa.string())]))
COUNTS = TableShape(
    pa.schema([pa.field("url", pa.string(), False), pa.field("day", pa.date32(), False), ("c", pa.int64())]),
    ("url", "day"),
)
DAY = dt.date(2024, 5, 17)
QUICK = TableOptions.of({"retry.backoff.millis": "10"})
COLUMNS = 'N, "Url"'


def click(*numbers: int) -> pa.Table:
    return table_of(CLICKS, [{"n": n, "Url": f"./{n}"} for n in numbers])


def clicks(*numbers: int) -> list[tuple[Any, ...]]:
    return sorted(((n, f"./{n}") for n in numbers), key=repr)


@pytest.fixture
def name(account: Account) -> str:
    """Of a table of clicks."""
    name = account.name("clicks")
    account.client.create_table(name, CLICKS, {})
    return name


def test_rows_and_position_are_one_transaction(account: Account, name: str) -> None:
    sink = account.sink(name, CLICKS)
    assert sink.committed_position() is None
    sink.write(click(1, 2), keys_of(CLICKS), {"partitions": {"0": 2}})
    sink.write(click(3), keys_of(CLICKS), {"partitions": {"0": 3}, "name": "a'b\\\"c"})
    sink.close()
    assert account.sink(name, CLICKS).committed_position(expected=True) == {
        "partitions": {"0": 3}, "name": "a'b\\\"c",
    }  # fmt: skip
    assert account.sink(name, CLICKS, "another").committed_position() is None
    assert account.rows(name, COLUMNS) == clicks(1, 2, 3)


def test_a_batch_without_rows_moves_the_position(account: Account, name: str) -> None:
    sink = account.sink(name, CLICKS)
    sink.committed_position()
    sink.write(click(), keys_of(CLICKS), {"seq": 7})
    assert account.sink(name, CLICKS).committed_position() == {"seq": 7}
    sink.renew({"seq": 7})
    assert account.rows(name, COLUMNS) == []


def test_a_batch_of_several_files(account: Account, name: str) -> None:
    sink = account.sink(name, CLICKS, **{"file.bytes.max": str(1 << 20)})
    sink.committed_position()
    rows = table_of(CLICKS, [{"n": n, "Url": "x" * 1000} for n in range(3500)])
    sink.write(rows, keys_of(CLICKS), {"seq": 1})
    assert account.rows(name, 'count(*), count(DISTINCT n), sum(n), min(length("Url"))') == [
        (3500, 3500, 3499 * 1750, 1000)
    ]


def test_a_failure_inside_the_transaction_leaves_nothing(
    account: Account, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = account.sink(name, CLICKS)
    sink.committed_position()
    insert = sink._insert

    def failing(*arguments: Any) -> None:
        insert(*arguments)
        raise SqlError("22000", "a value does not fit")

    monkeypatch.setattr(sink, "_insert", failing)
    with pytest.raises(SqlError):
        sink.write(click(1), keys_of(CLICKS), {"seq": 1})
    assert account.rows(name, COLUMNS) == []
    assert account.sink(name, CLICKS).committed_position() is None


def test_a_sink_that_was_left_behind_writes_nothing(account: Account, name: str) -> None:
    """Of a server that hung and goes on, beside the one that has taken its place."""
    old, new = account.sink(name, CLICKS), account.sink(name, CLICKS)
    assert old.committed_position() == new.committed_position() is None
    new.write(click(1), keys_of(CLICKS), {"seq": 1})
    with pytest.raises(SqlError) as caught:
        old.write(click(1), keys_of(CLICKS), {"seq": 1})
    assert caught.value.sqlstate == "40001"
    assert account.rows(name, COLUMNS) == clicks(1)


def test_a_commit_between_the_look_and_the_commit_is_not_written_over(
    account: Account, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = account.sink(name, CLICKS), account.sink(name, CLICKS)
    slow.committed_position(), quick.committed_position()
    fill = slow._staging.fill

    def late(*arguments: Any) -> None:
        fill(*arguments)
        quick.write(click(1), keys_of(CLICKS), {"seq": 1})

    monkeypatch.setattr(slow._staging, "fill", late)
    with pytest.raises(SqlError) as caught:
        slow.write(click(1), keys_of(CLICKS), {"seq": 1})
    assert caught.value.sqlstate == "40001"
    assert account.rows(name, COLUMNS) == clicks(1)


@pytest.mark.parametrize("shape", [CLICKS, TableShape(CLICKS.schema, ("n",))], ids=["append", "by key"])
@pytest.mark.parametrize("behind", ["_advance", "_insert"])
def test_a_transaction_that_the_service_has_rolled_back_writes_nothing(
    account: Account, name: str, monkeypatch: pytest.MonkeyPatch, shape: TableShape, behind: str
) -> None:
    """What follows in the session would be statements of their own, and COMMIT has nothing to do."""
    sink = account.sink(name, shape)
    sink.committed_position()
    sink.write(click(1), keys_of(shape), {"seq": 1})
    step = getattr(sink, behind)

    def rolled_back(*arguments: Any) -> None:
        step(*arguments)
        sink._session.run("ROLLBACK")

    monkeypatch.setattr(sink, behind, rolled_back)
    with pytest.raises(SqlError) as caught:
        sink.write(table_of(shape, [{"n": 1, "Url": "new"}, {"n": 2, "Url": "new"}]), keys_of(shape), {"seq": 2})
    assert caught.value.sqlstate in ("40001", "08006")
    assert account.rows(name, COLUMNS) == clicks(1)
    assert account.sink(name, shape).committed_position() == {"seq": 1}


@pytest.mark.parametrize("late", [False, True], ids=["in its turn", "behind the end of its session's transaction"])
def test_a_statement_outside_of_its_transaction_moves_no_position(
    account: Account, name: str, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """The service has rolled it back before its first statement; or that had no answer, and comes to it behind the
    client's ROLLBACK. The line breaks then."""
    sink = account.sink(name, CLICKS)
    sink.committed_position()
    sink.write(click(1), keys_of(CLICKS), {"seq": 1})
    advance, run = sink._advance, sink._session.run
    kept: list[Any] = []

    def broken(*arguments: Any) -> None:
        if late:
            kept.append(arguments)
        else:
            run("ROLLBACK")
            advance(*arguments)
        raise SqlError("08006", "the line is broken")

    monkeypatch.setattr(sink, "_advance", broken)
    with pytest.raises(SqlError):
        sink.write(click(2), keys_of(CLICKS), {"seq": 2})
    for arguments in kept:
        with pytest.raises(SqlError):
            advance(*arguments)
    again = account.sink(name, CLICKS)
    assert again.committed_position() == {"seq": 1}
    again.write(click(2), keys_of(CLICKS), {"seq": 2})
    assert account.rows(name, COLUMNS) == clicks(1, 2)


@pytest.mark.parametrize("lost", ["write", "_advance", "close"])
def test_a_commit_whose_reply_is_lost_is_not_made_again(
    account: Account, name: str, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """Or was lost before it: then it is made again."""

    def losing_its_reply(step: Any) -> Any:
        def failing(*arguments: Any) -> None:
            step(*arguments)
            raise SqlError("08006", "the reply was lost")

        return failing

    opening = Opening(lambda: account.sink(name, CLICKS), monkeypatch, lost, losing_its_reply)
    retried = RetriedTable(opening, QUICK, lambda: False)
    retried.committed_position()
    retried.write(click(1), keys_of(CLICKS), {"seq": 1})
    retried.write(click(2), keys_of(CLICKS), {"seq": 2})
    assert account.rows(name, COLUMNS) == clicks(1, 2)


@pytest.mark.parametrize("keyed", [False, pytest.param(True, marks=pytest.mark.night)], ids=["append", "by key"])
def test_each_row_is_written_once_over_a_line_that_breaks(account: Account, name: str, keyed: bool) -> None:
    """At any moment: before a statement, behind it, amid a file."""
    gate = Gate(account.emulator.port)
    shaky = Account(account.emulator, account.database, gate.port)
    shape = TableShape(CLICKS.schema, ("n",)) if keyed else CLICKS
    ended = threading.Event()
    chance = random.Random(7)
    cuts: list[float] = []

    def break_it() -> None:
        longest_s = 1.0
        while not ended.wait(chance.uniform(0.05, longest_s)):
            gate.cut()
            cuts.append(longest_s)
            longest_s = min(10.0, longest_s * 1.1)  # on a busy machine a write takes longer than it lasts at first

    breaking = threading.Thread(target=break_it)
    breaking.start()
    try:
        _write_all(shaky, name, shape, batches=8)
    finally:
        ended.set()
        breaking.join()
        gate.close()
    assert len(cuts) >= 3
    if keyed:
        assert account.rows(name, COLUMNS) == sorted([(0, "./7"), *((n, f"./{n}") for n in range(1, 9))], key=repr)
    else:
        assert account.rows(name, "N") == sorted([(0,)] * 8 + [(n,) for n in range(1, 9)], key=repr)


def _write_all(
    account: Account, name: str, shape: TableShape, batches: int, query_id: str = "q", first: int = 0
) -> None:
    """As a query does: begins anew where the table stands."""
    patient = TableOptions.of({"retry.backoff.millis": "10", "retry.attempts": "3"})
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        try:
            sink = RetriedTable(lambda: account.sink(name, shape, query_id), patient, lambda: False)
        except SqlError:
            continue
        try:
            found = sink.committed_position()
            for seq in range(int(found["seq"]) + 1 if found else 0, batches):
                rows = [{"n": first, "Url": f"./{seq}"}, {"n": first + seq + 1, "Url": f"./{seq + 1}"}]
                sink.write(table_of(shape, rows), keys_of(shape), {"seq": seq})
            return
        except SqlError as error:
            if error.sqlstate not in ("08006", "40001", "58000", "58030"):
                raise
        finally:
            sink.close()
    raise AssertionError("the rows are not written")


def test_writers_beside_each_other_lose_nothing(account: Account, name: str) -> None:
    """Three queries over one table, each with four commits."""
    failed: list[BaseException] = []

    def write(query: int) -> None:
        try:
            _write_all(account, name, CLICKS, 4, query_id=f"q{query}", first=query * 100)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failed.append(error)

    account.sink(name, CLICKS, "first").committed_position()  # makes the table of positions
    threads = [threading.Thread(target=write, args=(query,)) for query in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    written = [query * 100 + seq + 1 for query in range(3) for seq in range(4)]
    assert account.rows(name, "N") == sorted(
        [(n,) for n in [*written, *(q * 100 for q in range(3) for _ in range(4))]], key=repr
    )


# --- tables that were made anew ---------------------------------------------------------------------------------------
def test_a_table_that_was_made_anew_has_no_position(account: Account, name: str) -> None:
    """The emulator has one time of making for all tables: another one stands in the row here."""
    sink = account.sink(name, CLICKS)
    sink.committed_position()
    sink.write(click(1), keys_of(CLICKS), {"seq": 1})
    account.run(f"UPDATE {name}_MVSERVER_PROGRESS SET TABLE_CREATED = 'before'")
    with pytest.raises(SqlError) as caught:
        account.sink(name, CLICKS).committed_position(expected=True)
    assert caught.value.sqlstate == "55000"
    with pytest.raises(SqlError, match="40001"):
        sink.write(click(2), keys_of(CLICKS), {"seq": 2})
    anew = account.sink(name, CLICKS)
    assert anew.committed_position() is None
    anew.write(click(2), keys_of(CLICKS), {"seq": 2})
    assert account.sink(name, CLICKS).committed_position(expected=True) == {"seq": 2}


def test_positions_that_are_gone_are_told(account: Account, name: str) -> None:
    sink = account.sink(name, CLICKS)
    sink.committed_position()
    sink.write(click(1), keys_of(CLICKS), {"seq": 1})
    account.run(f"DROP TABLE {name}_MVSERVER_PROGRESS")
    with pytest.raises(SqlError) as caught:
        account.sink(name, CLICKS).committed_position(expected=True)
    assert caught.value.sqlstate == "55000"


def test_a_table_that_is_gone_is_named(account: Account, name: str) -> None:
    sink = account.sink(name, CLICKS)
    sink.committed_position()
    account.client.drop_entity(name, {})
    with pytest.raises(SqlError) as caught:
        account.sink(name, CLICKS)
    assert (caught.value.sqlstate, caught.value.message) == (
        "42704", f'entity "{name}" does not exist in store "snow"',
    )  # fmt: skip
    with pytest.raises(SqlError):
        sink.write(click(1), keys_of(CLICKS), {"seq": 1})


# --- by key -----------------------------------------------------------------------------------------------------------
def test_rows_are_replaced_and_deleted_by_their_key(account: Account) -> None:
    name = account.name("counts")
    account.client.create_table(name, COUNTS, {})
    sink = account.sink(name, COUNTS)
    sink.committed_position()
    first = [{"url": url, "day": DAY, "c": c} for url, c in (("./a", 1), ("./b", 2), ("./c", 3))]
    sink.write(table_of(COUNTS, first), keys_of(COUNTS), {"seq": 3})
    changed = [{"url": "./a", "day": DAY, "c": 10}, {"url": "./a", "day": DAY + dt.timedelta(1), "c": 7}]
    sink.write(table_of(COUNTS, changed), keys_of(COUNTS, [{"url": "./b", "day": DAY}]), {"seq": 6})
    other_day = ("./a", DAY + dt.timedelta(1), 7)
    assert account.rows(name, "URL, DAY, C") == sorted([("./a", DAY, 10), other_day, ("./c", DAY, 3)], key=repr)
    gone = keys_of(COUNTS, [{"url": "./c", "day": DAY}, {"url": "./x", "day": DAY}])
    sink.write(table_of(COUNTS, []), gone, {"seq": 8})
    sink.write(table_of(COUNTS, []), keys_of(COUNTS, [{"url": "./x", "day": DAY}]), {"seq": 9})  # changes nothing
    assert account.sink(name, COUNTS).committed_position() == {"seq": 9}
    assert account.rows(name, "URL, DAY, C") == sorted([("./a", DAY, 10), other_day], key=repr)


@pytest.mark.parametrize("keys", [7, 300], ids=["few", "many"])
def test_any_row_of_upserts_is_the_dictionary_of_them(account: Account, keys: int) -> None:
    chance = random.Random(keys)
    shape = TableShape(
        pa.schema([pa.field("k", pa.decimal128(20, 2), False), pa.field("t", pa.timestamp("us", "UTC"), False),
                   pa.field("x", pa.binary(), False), ("v", pa.float64())]),
        ("k", "t", "x"),
    )  # fmt: skip
    name = account.name("numbers")
    account.client.create_table(name, shape, {})
    sink = account.sink(name, shape)
    sink.committed_position()
    commits, truth = random_commits(chance, keys, 5, {})
    for seq, (rows, gone) in enumerate(commits):
        sink.write(table_of(shape, rows), keys_of(shape, gone), {"seq": seq})
    found = [(k, t.replace(tzinfo=dt.UTC), bytes(x), v) for k, t, x, v in account.rows(name, "K, T, X, V")]
    assert sorted(found, key=repr) == sorted((tuple(row.values()) for row in truth), key=repr)


# --- types ------------------------------------------------------------------------------------------------------------
TYPES = pa.schema(
    [
        ("b", pa.bool_()), ("i8", pa.int8()), ("i16", pa.int16()), ("i32", pa.int32()), ("i64", pa.int64()),
        ("f", pa.float32()), ("d", pa.float64()), ("n", pa.decimal128(38, 10)), ("s", pa.string()),
        ("x", pa.binary()), ("day", pa.date32()), ("at", pa.time64("us")), ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", "UTC")), ("list", pa.list_(pa.int32())),
        ("pairs", pa.map_(pa.int32(), pa.decimal128(30, 20))),
        ("struct", pa.struct([("inner", pa.string()), ("deep", pa.list_(pa.struct([("z", pa.float64())])))])),
    ]
)  # fmt: skip
ROW = {
    "b": True, "i8": -128, "i16": -(2**15), "i32": 2**31 - 1, "i64": -(2**63), "f": 0.1, "d": 0.1 + 0.2,
    "n": Decimal("1234567890123456789012345678.0123456789"), "s": "Ünï'\"\\\n\t,\U0001f600", "x": b"\x00\xff",
    "day": dt.date(1, 1, 1), "at": dt.time(23, 59, 59, 999999), "ts": dt.datetime(2024, 2, 29, 1, 2, 3, 4),
    "tz": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC), "list": [1, None],
    "pairs": [(1, Decimal("1234567890.12345678901234567890")), (2, None)],
    "struct": {"inner": 'y"', "deep": [{"z": float("nan")}, None]},
}  # fmt: skip
CASTS = ("B, I8, I16, I32, I64, F, D, N, S, X, DAY, \"AT\", TS::VARCHAR, TZ::VARCHAR, "
         "LIST::VARCHAR, PAIRS::VARCHAR, STRUCT::VARCHAR")  # fmt: skip


def test_every_type_comes_back_as_it_was(account: Account) -> None:
    name, shape = account.name("types"), TableShape(TYPES)
    account.client.create_table(name, shape, {})
    assert account.client.check_table(name, shape, {})
    sink = account.sink(name, shape)
    sink.committed_position()
    sink.write(table_of(shape, [ROW, dict.fromkeys(ROW)]), keys_of(shape), {"seq": 1})
    rows = {row[0]: row for row in account.rows(name, CASTS)}
    assert rows[None] == (None,) * len(ROW)
    found = dict(zip(ROW, rows[True], strict=True))
    plain = {key: value for key, value in ROW.items() if key not in ("f", "x", "ts", "tz", "list", "pairs", "struct")}
    assert {key: found[key] for key in plain} == plain
    assert (found["f"], bytes(found["x"])) == (pa.scalar(0.1, pa.float32()).as_py(), b"\x00\xff")
    assert found["ts"].startswith("2024-02-29 01:02:03.000004")
    assert found["tz"].startswith("1969-12-31 23:59:59.999999")
    assert json.loads(found["list"]) == [1, None]
    assert json.loads(found["pairs"]) == {"1": 1234567890.12345678901234567890, "2": None}
    (pairs,) = texts(table_of(shape, [ROW]).column("pairs")).to_pylist()  # of which the emulator keeps fewer digits
    assert pairs == '{"1":1234567890.12345678901234567890,"2":null}'
    assert json.loads(found["struct"]) == {"inner": 'y"', "deep": [{"z": "nan"}, None]}


def test_numbers_at_their_edges(account: Account) -> None:
    shape = TableShape(pa.schema([("k", pa.int32()), ("d", pa.float64()), ("s", pa.string())]))
    name = account.name("edges")
    account.client.create_table(name, shape, {})
    sink = account.sink(name, shape)
    sink.committed_position()
    values = [float("inf"), float("-inf"), float("nan"), -0.0, 5e-324, 1.7976931348623157e308, 1e22, 123456789.0]
    rows = [
        {"k": k, "d": d, "s": ["", "null", "NULL", "\\N", " a ", "true", "1e5", "0x1"][k]} for k, d in enumerate(values)
    ]
    sink.write(table_of(shape, rows), keys_of(shape), {"seq": 1})
    found = account.rows(name, "K, D, S")
    assert [(k, s) for k, _, s in found] == [(row["k"], row["s"]) for row in rows]
    for (_, number, _), wanted in zip(found, values, strict=True):
        assert number == wanted or (math.isnan(number) and math.isnan(wanted))
        assert math.isnan(wanted) or math.copysign(1, number) == math.copysign(1, wanted)
