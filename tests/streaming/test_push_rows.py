"""Rows between a pipeline and the client of a push query: in order, once, bounded; the pipeline never waits."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from mvserver import limits
from mvserver.compiler.plans import ErrorHandling
from mvserver.errors import SqlError
from mvserver.streaming.push.push import PushSubscriber
from mvserver.streaming.push.push_rows import PushRows
from tests.streaming.states import target


def table(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64())})


def taken(rows: PushRows) -> list[int]:
    found: list[int] = []
    while rows.wait(0.0):
        found += rows.take().column(0).to_pylist()
    return found


def test_rows_come_in_order_and_once() -> None:
    rows = PushRows()
    assert not rows.wait(0.0)
    rows.put(table(1, 2))
    rows.put(table())
    rows.put(table(3))
    assert taken(rows) == [1, 2, 3]
    rows.put(table(4))
    assert taken(rows) == [4]


def test_a_reader_waits_for_rows() -> None:
    rows = PushRows()
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.extend(rows.take().column(0).to_pylist()))
    reader.start()
    rows.put(table(7))
    reader.join(10)
    assert found == [7]


def test_an_error_comes_behind_the_rows_and_the_first_one_counts() -> None:
    rows = PushRows()
    rows.put(table(1))
    rows.end(SqlError("42P01", 'stream "s" was dropped'))
    rows.end(SqlError("57P01", "later"))
    rows.put(table(2))
    assert rows.take().column(0).to_pylist() == [1]
    for _ in range(2):
        assert rows.wait(0.0)
        with pytest.raises(SqlError, match="42P01"):
            rows.take()


def test_an_interrupt_ends_the_wait_and_what_comes_after_it() -> None:
    rows = PushRows()
    failed: list[str] = []

    def read() -> None:
        try:
            rows.take()
        except SqlError as error:
            failed.append(error.sqlstate)

    reader = threading.Thread(target=read)
    reader.start()
    rows.interrupt()
    reader.join(10)
    assert failed == ["57014"]
    rows.put(table(1))
    with pytest.raises(SqlError, match="57014"):
        rows.wait(None)


def test_close_is_told_once_and_frees_the_rows() -> None:
    closed: list[int] = []
    rows = PushRows(lambda: closed.append(1))
    rows.put(table(*range(1000)))
    rows.close()
    rows.close()
    rows.put(table(1))
    assert closed == [1]
    with pytest.raises(SqlError, match="55000"):
        rows.take()


def test_what_is_not_taken_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PUSH_WAITING_BYTES_MAX", 80)
    monkeypatch.setattr(limits, "PUSH_BUFFER_BYTES_MAX", 400)
    rows = PushRows()
    rows.put(table(*range(10)))
    assert not rows.full
    rows.put(table(10))
    assert rows.full  # the pipeline reads nothing more for it
    rows.take()
    assert not rows.full
    rows.take()
    rows.put(table(*range(51)))
    with pytest.raises(SqlError) as caught:
        rows.take()
    assert (caught.value.sqlstate, caught.value.hint) == (
        "53400",
        "Select fewer columns, or let the client read faster.",
    )


def test_a_slice_of_a_large_batch_counts_as_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PUSH_BUFFER_BYTES_MAX", 1000)
    rows = PushRows()
    rows.put(table(*range(10_000)).slice(5, 10))
    assert taken(rows) == list(range(5, 15))
    assert not rows.full


def subscriber() -> PushSubscriber:
    return PushSubscriber(target("SELECT k FROM events"), 1, {"at": 0}, ErrorHandling.IGNORE, filled=True)


def test_a_subscriber_leaves_out_what_is_too_much_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PUSH_WAITING_BYTES_MAX", 8)
    push = subscriber()
    assert not push.kept
    assert push.takes(limits.PUSH_BATCH_RECORDS_MAX)
    assert not push.takes(limits.PUSH_BATCH_RECORDS_MAX + 1)
    push.deliver(table(1, 2))
    assert not push.takes(0)
    push.rows.take()
    assert push.takes(0)


def test_a_failing_subscriber_tells_its_client() -> None:
    cases = {
        "the topic is gone": ("55000", "the push query cannot go on", "the topic is gone", None),
        SqlError("22012", "division by zero"): ("22012", "division by zero", None, None),
        SqlError("22000", "record 0:1 cannot be decoded", hint="RESTART QUERY q SKIP REJECTED goes past it."): (
            "22000",
            "record 0:1 cannot be decoded",
            None,
            "'source.deserialization.error.handling' = 'IGNORE' leaves such records out.",
        ),
    }
    for failure, expected in cases.items():
        push = subscriber()
        push.fail(failure)
        assert not push.wants_batches
        with pytest.raises(SqlError) as caught:
            push.rows.take()
        error = caught.value
        assert (error.sqlstate, error.message, error.detail, error.hint) == expected
