"""The outbox: what a batch changed of a query's rows, numbered without a gap; and the relay that sends it on once."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mvserver.compiler.changelogs import result_key
from mvserver.compiler.plans import ErrorHandling
from mvserver.errors import SqlError
from mvserver.sql.types import parse_type
from mvserver.streaming.batch.record_encoding import RecordEncoder
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.queries.outbox_relay import OutboxRelay, Output
from mvserver.streaming.queries.outputs import OutputSubscriber, with_outbox
from mvserver.streaming.queries.record_form import RecordForm
from spark_sinks.base import Position, SinkRecords
from spark_sinks.duckdb.changes.outbox import Outbox, pending
from tests.streaming.changelog_states import Changes, target

GROUPS = "SELECT k, count(*) AS c, sum(i) AS s FROM rows GROUP BY k"


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Any]:
    opened: list[Changes] = []

    def make(sql: str) -> tuple[Changes, Outbox]:
        sent = with_outbox(target(sql))
        assert sent.outbox is not None
        opened.append(Changes(tmp_path, sent))
        return opened[-1], sent.outbox

    yield make
    for each in opened:
        each.close()


def waiting(changes: Changes, outbox: Outbox, after: int = 0) -> list[tuple[int, bool, dict[str, Any]]]:
    """(number, deleted, row), rows of one batch in the order of their texts."""
    with changes.writer.read_cursor() as cursor:
        found = pending(cursor, outbox, after, 1_000)
        if found is None:
            return []
        numbers = range(found.last - len(found.deleted) + 1, found.last + 1)
        return list(zip(numbers, found.deleted, found.rows.to_pylist(), strict=True))


def sent(changes: Changes, outbox: Outbox, after: int = 0) -> list[tuple[bool, dict[str, Any]]]:
    return sorted(((deleted, row) for _, deleted, row in waiting(changes, outbox, after)), key=repr)


def test_only_what_changed_is_sent(fed: Any) -> None:
    changes, outbox = fed(GROUPS)
    changes.feed([{"id": 1, "k": "a", "i": 5}, {"id": 2, "k": "b", "i": 1}, {"id": 3, "k": None, "i": 1}])
    assert sent(changes, outbox) == [(False, {"k": "a", "c": 1, "s": 5}), (False, {"k": "b", "c": 1, "s": 1})]
    changes.feed([{"id": 1, "k": "a", "i": 5}])  # as it was
    changes.feed([{"id": 9, "gone": True}])
    assert [number for number, _, _ in waiting(changes, outbox)] == [1, 2]
    changes.feed([{"id": 1, "k": "b", "i": 4}, {"id": 3, "gone": True}])
    assert sent(changes, outbox, 2) == [(False, {"k": "b", "c": 2, "s": 5}), (True, {"k": "a", "c": 1, "s": 5})]
    changes.crash()
    changes.feed([{"id": 1, "gone": True}, {"id": 2, "gone": True}])
    assert [(n, d) for n, d, _ in waiting(changes, outbox, 4)] == [(5, True)]


def test_projections_send_their_rows_and_what_left_them(fed: Any) -> None:
    changes, outbox = fed("SELECT k, id AS who FROM rows WHERE i > 3")
    changes.feed([{"id": 1, "k": "a", "i": 5}, {"id": 2, "k": "b", "i": 9}, {"id": 3, "k": "c", "i": 1}])
    assert sent(changes, outbox) == [(False, {"k": "a", "who": 1}), (False, {"k": "b", "who": 2})]
    changes.feed([{"id": 1, "k": "a", "i": 0}, {"id": 2, "k": "d", "i": 9}, {"id": 3, "gone": True}])
    assert sent(changes, outbox, 2) == [(False, {"k": "d", "who": 2}), (True, {"k": "a", "who": 1})]


def test_having_deletes_what_it_hides(fed: Any) -> None:
    changes, outbox = fed("SELECT k, max(i) AS m FROM rows GROUP BY k HAVING max(i) > 3")
    changes.feed([{"id": 1, "k": "a", "i": 5}, {"id": 2, "k": "b", "i": 1}])
    changes.feed([{"id": 1, "k": "a", "i": 2}, {"id": 2, "k": "b", "i": 7}])
    assert waiting(changes, outbox)[0] == (1, False, {"k": "a", "m": 5})
    assert sent(changes, outbox, 1) == [(False, {"k": "b", "m": 7}), (True, {"k": "a", "m": 5})]


def test_the_key_of_a_result_is_complete_or_none() -> None:
    def key(sql: str) -> tuple[str, ...]:
        return result_key(target(sql, key=("id", "k")).plan)

    assert key("SELECT i, k AS b, id AS a FROM rows") == ("a", "b")
    assert key("SELECT id FROM rows") == ()
    assert key("SELECT l, count(*) AS c, i FROM rows GROUP BY i, l") == ("i", "l")
    assert key("SELECT i, count(*) AS c FROM rows GROUP BY i, l") == ()


# --- the relay ------------------------------------------------------------------------------------------------------
class Topic:
    """What a sink's transactions have committed, and how it fails."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes | None, bytes | None]] = []
        self.position: Position | None = None
        self.fails: list[Exception] = []
        self.lost: list[Exception] = []  # raised after the transaction is committed: nobody heard of it
        self.opened = 0
        self.away = False

    def open(self) -> Topic:
        self.opened += 1
        if self.away:
            raise SqlError("08001", "the store cannot be reached")
        return self

    def committed_position(self, *, expected: bool = False) -> Position | None:
        return self.position

    def renew(self, position: Position) -> None:
        self.position = position

    def write(self, records: SinkRecords, position: Position) -> None:
        if self.fails:
            raise self.fails.pop()
        self.records += zip(records.keys, records.values, strict=True)
        self.position = json.loads(json.dumps(position))
        if self.lost:
            raise self.lost.pop()

    def close(self) -> None:
        pass


def relay_to(topic: Topic, changes: Changes, outbox: Outbox, reached: Any = lambda step: None) -> OutboxRelay:
    types = {"k": parse_type("VARCHAR"), "c": parse_type("BIGINT"), "s": parse_type("BIGINT")}
    encoder = RecordEncoder(types, ("k",), "primitive")
    return OutboxRelay(Output(outbox, RecordForm(topic.open, encoder)), changes.writer, reached)


def until(condition: Any) -> None:
    done = threading.Event()
    for _ in range(200):
        if condition():
            return
        done.wait(0.05)
    raise AssertionError("it did not come within 10 s")


def current(topic: Topic) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for key, value in topic.records:
        rows[(key or b"").decode()] = None if value is None else json.loads(value)
    return {key: row for key, row in rows.items() if row is not None}


def test_the_relay_sends_each_row_once_whatever_fails(fed: Any) -> None:
    changes, outbox = fed(GROUPS)
    topic = Topic()
    topic.fails = [SqlError("08006", "the store went away")]
    topic.lost = [SqlError("08006", "the store went away during a commit")]
    relay = relay_to(topic, changes, outbox)
    changes.feed([{"id": 1, "k": "a", "i": 5}, {"id": 2, "k": "b", "i": 1}])
    relay.start()
    until(lambda: waiting(changes, outbox) == [])
    assert current(topic) == {"a": {"k": "a", "c": 1, "s": 5}, "b": {"k": "b", "c": 1, "s": 1}}
    changes.feed([{"id": 1, "gone": True}, {"id": 2, "k": "b", "i": 2}])
    relay.committed()
    until(lambda: len(topic.records) == 4)
    relay.stop()
    assert current(topic) == {"b": {"k": "b", "c": 1, "s": 2}}
    again = relay_to(topic, changes, outbox)
    changes.feed([{"id": 3, "k": "c", "i": 1}])
    again.start()
    until(lambda: len(topic.records) == 5)
    again.stop()
    assert topic.opened == 4
    assert topic.position is not None
    assert topic.position["seq"] == 5


def test_rows_that_were_sent_before_a_crash_are_not_sent_again(fed: Any) -> None:
    changes, outbox = fed(GROUPS)
    topic = Topic()
    changes.feed([{"id": 1, "k": "a", "i": 5}])

    def crash(step: str) -> None:
        if step == "after relay":
            raise SystemExit  # the thread ends with the row in the outbox, and in the topic

    relay = relay_to(topic, changes, outbox, crash)
    relay.start()
    until(lambda: len(topic.records) == 1)
    relay.stop()
    assert len(waiting(changes, outbox)) == 1
    after = relay_to(topic, changes, outbox)
    changes.feed([{"id": 2, "k": "b", "i": 5}])
    after.start()
    until(lambda: waiting(changes, outbox) == [])
    after.stop()
    assert [key for key, _ in topic.records] == [b"a", b"b"]


def test_nothing_is_added_to_an_outbox_that_cannot_be_sent(fed: Any) -> None:
    changes, outbox = fed(GROUPS)
    topic = Topic()
    topic.away = True
    relay = relay_to(topic, changes, outbox)
    side = Subscriber(target(GROUPS), 1, {}, ErrorHandling.IGNORE)
    query = OutputSubscriber(target(GROUPS), 1, {}, ErrorHandling.IGNORE, relay=relay)
    query.group = side.group = (query, side)
    changes.feed([{"id": 1, "k": "a", "i": 5}])
    assert query.wants_batches
    relay.start()
    until(lambda: relay.problem is not None)
    assert relay.is_congested
    assert not query.wants_batches
    assert not side.wants_batches, "the sides of a join would fill its log instead"
    topic.away = False
    until(lambda: query.wants_batches and side.wants_batches)
    relay.stop()
    assert topic.records == [(b"a", b'{"k":"a","c":1,"s":5}')]


def test_what_waits_is_known_before_the_sink_is_there(fed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mvserver.limits.OUTBOX_ROWS_MAX", 2)
    changes, outbox = fed(GROUPS)
    changes.feed([{"id": i, "k": str(i), "i": 5} for i in range(3)])
    arriving = threading.Event()

    class Slow(Topic):
        def open(self) -> Topic:
            assert arriving.wait(10)
            return super().open()

    topic = Slow()
    relay = relay_to(topic, changes, outbox)
    relay.start()
    until(lambda: relay.is_congested)
    assert relay.problem is None
    arriving.set()
    until(lambda: not relay.is_congested)
    relay.stop()
    assert len(topic.records) == 3


def test_the_outbox_of_a_lost_state_is_not_taken_for_its_successor(fed: Any) -> None:
    changes, outbox = fed(GROUPS)
    topic = Topic()
    topic.position = {"outbox": "another", "seq": 12}
    relay = relay_to(topic, changes, outbox)
    changes.feed([{"id": 1, "k": "a", "i": 5}])
    relay.start()
    until(lambda: relay.failure is not None)
    relay.stop()
    assert topic.records == []
    assert relay.is_congested
    assert relay.failure is not None
    assert relay.failure.startswith("55000: what the query has written belongs to a state that was lost")


# --- encoding -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("BOOLEAN", True, "true"),
        ("BIGINT", -(2**63), "-9223372036854775808"),
        ("DECIMAL(38, 10)", Decimal("12345678901234567890.0000000001"), "12345678901234567890.0000000001"),
        ("DECIMAL(10, 2)", Decimal("1E+2"), "100"),
        ("DOUBLE", 0.1, "0.1"),
        ("DOUBLE", 1e300, "1e+300"),
        ("DOUBLE", float("nan"), '"NaN"'),
        ("DOUBLE", float("-inf"), '"-Infinity"'),
        ("FLOAT", 0.10000000149011612, "0.1"),
        ("VARCHAR", 'ä"\n', '"ä\\"\\n"'),
        ("VARBINARY", b"\x00\xff", '"AP8="'),
        ("DATE", dt.date(2024, 2, 29), '"2024-02-29"'),
        ("TIME", dt.time(1, 2, 3, 4), '"01:02:03.000004"'),
        ("TIMESTAMP", dt.datetime(2024, 2, 29, 1, 2), '"2024-02-29 01:02:00.000000"'),
        ("TIMESTAMP_LTZ", dt.datetime(2024, 2, 29, 1, tzinfo=dt.UTC), '"2024-02-29 01:00:00.000000Z"'),
        ("ARRAY<INTEGER>", [1, None], "[1,null]"),
        ("MAP<VARCHAR, BIGINT>", [("a", 1)], '{"a":1}'),
        ("STRUCT<a INTEGER, b VARCHAR>", {"a": 1, "b": None}, '{"a":1,"b":null}'),
        ("INTEGER", None, "null"),
    ],
)
def test_values_are_written_as_streams_read_them(kind: str, value: Any, text: str) -> None:
    encoder = RecordEncoder({"v": parse_type(kind)}, ("v",), "json")
    assert encoder.value_of({"v": value}).decode() == f'{{"v":{text}}}'


@pytest.mark.parametrize(
    ("kind", "value", "key"),
    [
        ("VARCHAR", "ä", "ä".encode()),
        ("SMALLINT", -2, b"\xff\xfe"),
        ("INTEGER", 1, b"\x00\x00\x00\x01"),
        ("BIGINT", -1, b"\xff" * 8),
    ],
)
def test_primitive_keys(kind: str, value: Any, key: bytes) -> None:
    columns: Mapping[str, Any] = {"v": parse_type(kind), "w": parse_type("INTEGER")}
    encoder = RecordEncoder(columns, ("v",), "primitive", ("v",))
    assert (encoder.key_of({"v": value, "w": 1}), encoder.value_of({"v": value, "w": 1})) == (key, b'{"w":1}')
