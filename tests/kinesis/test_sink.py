"""Records that a query writes to a stream of a real emulator: at least once, the last of a key last, and identified."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mvserver.errors import SqlError
from spark_sinks.base import Position, SinkRecords
from spark_sinks.encode.deleting_sink import DeletingSink
from spark_sinks.encode.identified_sink import IdentifiedSink
from spark_sinks.kinesis.frames import is_deletion
from spark_sinks.kinesis.properties import DELETED, IDENTITY
from spark_sinks.kinesis.sink import KinesisSink
from tests.kinesis.faulty import made_faulty, options, refusal
from tests.services.kinesis import KinesisEmulator, Stream

pytestmark = pytest.mark.kinesis
MakeStream = Callable[..., Stream]


class Kept:
    """What the ledger has of the query."""

    def __init__(self) -> None:
        self.position: Position | None = None

    def read(self) -> Position | None:
        return self.position

    def write(self, position: Position) -> None:
        self.position = position


@pytest.fixture
def opened(kinesis: KinesisEmulator) -> Iterator[Callable[..., IdentifiedSink]]:
    made: list[KinesisSink] = []

    def open_sink(stream: Stream, kept: Kept, timeout_s: float = 5) -> IdentifiedSink:
        made.append(KinesisSink("k", options(kinesis), stream.name, "q", kept, timeout_s=timeout_s))
        return IdentifiedSink(made[-1], "q", IDENTITY)

    yield open_sink
    for sink in made:
        sink.close()


def write(sink: IdentifiedSink, first: int, last: int, keys: int = 5) -> None:
    numbers = range(first, last)
    sink.write(
        SinkRecords(
            [b"k%d" % (n % keys) for n in numbers],
            [b'{"n": %d}' % n for n in numbers],
            [None for _ in numbers],
            [f"0:{n}" for n in numbers],
        ),
        {"seq": last},
    )


def read(stream: Stream) -> list[dict[str, Any]]:
    return [json.loads(value) for _, value in stream.values()]


def test_records_and_the_position_behind_them(
    kinesis_stream: MakeStream, opened: Callable[..., IdentifiedSink]
) -> None:
    stream, kept = kinesis_stream(2), Kept()
    sink = opened(stream, kept)
    assert sink.committed_position() is None
    write(sink, 0, 1200)
    assert sink.committed_position(expected=True) == {"seq": 1200}
    found = read(stream)
    assert sorted(row["n"] for row in found) == list(range(1200))
    assert {row["_mv_id"] for row in found} == {f"q/0:{n}" for n in range(1200)}
    by_key: dict[int, list[int]] = defaultdict(list)
    for row in found:
        by_key[row["n"] % 5].append(row["n"])
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


def test_refused_records_are_sent_again_and_the_last_of_a_key_is_last(
    kinesis_stream: MakeStream, opened: Callable[..., IdentifiedSink], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_sinks.kinesis.sink.KINESIS_BACKOFF_LEAST_S", 0.01)
    stream, kept, chance = kinesis_stream(2), Kept(), random.Random(3)
    sink = opened(stream, kept)

    def some(true: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Some records of each request are refused, as the service does, and the others are taken."""
        records = arguments["Records"]
        taken = [chance.random() < 0.7 for _ in records]
        true(**{**arguments, "Records": [r for r, good in zip(records, taken, strict=True) if good] or records[:1]})
        refused = {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "x"}
        answers = [{"SequenceNumber": "1", "ShardId": "s"} if good else refused for good in taken]
        return {"FailedRecordCount": taken.count(False), "Records": answers}

    faulty = made_faulty(sink._sink._service)
    faulty.faults["put_records"] = some
    write(sink, 0, 60)
    assert kept.position == {"seq": 60}
    found = read(stream)
    assert {row["n"] for row in found} == set(range(60))
    assert len({row["_mv_id"] for row in found}) == 60
    for key in range(5):
        written = [row["n"] for row in found if row["n"] % 5 == key]
        last_of_each = sorted(set(written), key=lambda n: len(written) - written[::-1].index(n))
        assert last_of_each == sorted(last_of_each)


def test_a_service_that_takes_nothing(kinesis_stream: MakeStream, opened: Callable[..., IdentifiedSink]) -> None:
    stream, kept = kinesis_stream(), Kept()
    sink = opened(stream, kept, timeout_s=1)

    def nothing(true: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        refused = {"ErrorCode": "InternalFailure", "ErrorMessage": "x"}
        return {"FailedRecordCount": 1, "Records": [refused for _ in arguments["Records"]]}

    faulty = made_faulty(sink._sink._service)
    faulty.faults["put_records"] = nothing
    with pytest.raises(SqlError) as refused:
        write(sink, 0, 3)
    assert (refused.value.sqlstate, kept.position) == ("08006", None)

    def denied(true: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        raise refusal("AccessDeniedException", "PutRecords")

    faulty.faults["put_records"] = denied
    with pytest.raises(SqlError) as refused:
        write(sink, 0, 3)
    assert (refused.value.sqlstate, kept.position) == ("42501", None)
    faulty.faults.clear()
    write(sink, 0, 3)
    assert kept.position == {"seq": 3}


def test_keys_and_values_that_the_service_does_not_take(
    kinesis_stream: MakeStream, opened: Callable[..., IdentifiedSink]
) -> None:
    stream = kinesis_stream()
    sink = opened(stream, Kept())
    sink.write(
        SinkRecords([None, b"", b"\xff\xfe", b"k" * 300], [b"{}"] * 4, [None] * 4, ["a", "b", "c", "d"]), {"seq": 1}
    )
    assert [row["_mv_id"] for row in read(stream)] == ["q/a", "q/b", "q/c", "q/d"]
    for value, sqlstate in ((None, "0A000"), (b'{"a": "' + b"x" * 2**20 + b'"}', "54000")):
        with pytest.raises(SqlError) as refused:
            sink.write(SinkRecords([b"k"], [value], [None], ["e"]), {"seq": 2})
        assert refused.value.sqlstate == sqlstate
    large = b'{"a": "' + b"x" * 900_000 + b'"}'
    sink.write(SinkRecords([b"k"] * 12, [large] * 12, [None] * 12, [str(n) for n in range(12)]), {"seq": 2})
    assert len(read(stream)) == 16


def test_rows_that_are_gone_are_objects_of_their_keys(
    kinesis_stream: MakeStream, opened: Callable[..., IdentifiedSink]
) -> None:
    stream = kinesis_stream()
    sink = DeletingSink(opened(stream, Kept()), DELETED)
    keys = [b'{"n":1}', b'{"n":0.10000000000000000000001}', b'{"n":1}']
    sink.write(SinkRecords(keys, [b'{"n":1,"m":2}', None, None], [None] * 3, ["a", "b", "c"]), {"seq": 1})
    found = [value for _, value in stream.values()]
    assert found == [
        b'{"n":1,"m":2,"_mv_id":"q/a"}',
        b'{"n":0.10000000000000000000001,"_mv_deleted":true,"_mv_id":"q/b"}',
        b'{"n":1,"_mv_deleted":true,"_mv_id":"q/c"}',
    ]
    assert [is_deletion(value) for value in found] == [False, True, True]
    for other in (
        b'{"a": "\\"_mv_deleted\\":true"}',
        b'{"_mv_deleted":false}',
        b'{"a":{"_mv_deleted":true}}',
        b'"_mv_deleted":',
    ):
        assert not is_deletion(other)


def test_what_was_written_and_not_noted_is_written_again_under_its_identity(
    kinesis_stream: MakeStream, opened: Callable[..., IdentifiedSink]
) -> None:
    class Crashing(Kept):
        def write(self, position: Position) -> None:
            raise OSError("the server ends here")

    stream, kept = kinesis_stream(), Kept()
    with pytest.raises(OSError, match="ends here"):
        write(opened(stream, Crashing()), 0, 5)
    sink = opened(stream, kept)
    assert sink.committed_position() is None
    write(sink, 0, 7)
    found = read(stream)
    assert [row["n"] for row in found] == [*range(5), *range(7)]
    assert {row["_mv_id"]: row["n"] for row in found} == {f"q/0:{n}": n for n in range(7)}
