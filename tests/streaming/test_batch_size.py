"""A batch that failed for its size is made smaller; later ones grow again, but not at once into the same failure."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mvserver.errors import SqlError
from mvserver.streaming.pipeline.batch_size import BatchSize
from mvserver.streaming.pipeline.stall import Stall
from mvserver.streaming.queries import csas
from mvserver.streaming.queries.csas import SinkQuery
from mvserver.streaming.spark.batch_watch import BatchTooLarge

MOST = 600_000


def run(size: BatchSize, fits: int, batches: int, *, slow: bool) -> tuple[int, int]:
    """Failures among so many batches of a backlog, and the records that were read."""
    failures = read = 0
    for _ in range(batches):
        records = size.records_max
        if records <= fits:
            size.succeeded(records)
            read += records
            continue
        failures += 1
        if slow:
            size.overran()
        else:
            assert size.was_too_large()
    return failures, read


@pytest.mark.parametrize("slow", [True, False])
@pytest.mark.parametrize("fits", [150, 2_000, 200_000, 400_000, 599_999])
def test_what_failed_is_not_tried_again_soon(fits: int, slow: bool) -> None:
    failures, read = run(size := BatchSize(MOST), fits, 2_000, slow=slow)
    assert failures <= 12 + 2_000 / 100
    assert read > 2_000 * fits / 5
    failures, _ = run(size, MOST, 2_000, slow=slow)
    assert (failures, size.records_max) == (0, MOST)  # once it fits again


def test_a_batch_of_few_records_says_nothing_of_more() -> None:
    size = BatchSize(MOST)
    size.succeeded(MOST)
    assert not size.is_reduced
    size.overran()
    assert size.records_max == 100
    size.succeeded(49)
    assert size.records_max == 100
    size.succeeded(50)
    assert size.records_max == 1_600


def test_time_and_bytes_make_it_small_together() -> None:
    size = BatchSize(MOST)
    size.overran()
    assert size.was_too_large()
    assert size.records_max == 25
    assert size.was_too_large(records=8)
    assert size.records_max == 2
    assert size.was_too_large()
    assert not size.was_too_large()
    size.overran()
    assert size.records_max == 1


def test_one_that_begins_small_grows() -> None:
    size = BatchSize(1_000, first=100, growth=4)
    for expected in (400, 1_000, 1_000):
        size.succeeded(size.records_max)
        assert size.records_max == expected


def test_a_query_that_writes_says_that_its_batch_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no failure of its source, which is what such an error had been shown as."""
    positions = SimpleNamespace(
        distance=lambda start, end: end["seq"] - start["seq"],
        divisible=lambda start, end, least: end["seq"] - start["seq"] > least,
    )
    reader: Any = SimpleNamespace(positions=positions)
    query = object.__new__(SinkQuery)
    query._stopping, query._failure, query._stall, query._position = threading.Event(), None, Stall(), {"seq": 0}
    query._reader, query._query = reader, cast(Any, SimpleNamespace(id="q"))
    query._services, query._size = cast(Any, SimpleNamespace(batch_timeout_s=60.0)), BatchSize(MOST)

    def too_large(*_: Any) -> Any:
        raise ValueError("Total size of serialized results is bigger than spark.driver.maxResultSize")

    monkeypatch.setattr(csas, "run_watched", too_large)
    frame: Any = SimpleNamespace(sparkSession=None)
    with pytest.raises(BatchTooLarge) as raised:
        query._evaluated(frame, {"seq": 0}, {"seq": 1_000})
    query._noted(raised.value)
    assert query._size.records_max == 250
    assert query._stall.cause == (
        "the rows of a batch of about 1000 records came to more bytes than Spark may send; it is tried with 250"
    )
    with pytest.raises(SqlError, match="the rows of a batch come to more bytes") as blamed:
        query._evaluated(frame, {"seq": 0}, {"seq": 1})
    query._noted(blamed.value)
    assert (query._failure or "").startswith("54000: ")
