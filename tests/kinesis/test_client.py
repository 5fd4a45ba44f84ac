"""The streams of a real emulator as entities: made, listed, described, printed, written and dropped."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mvserver.errors import SqlError
from spark_sinks.base import EntityRecord
from spark_sinks.kinesis.client import KinesisClient
from spark_sinks.kinesis.marks import Mark
from spark_sinks.kinesis.options import KinesisOptions
from spark_sinks.kinesis.positions import KinesisPositions, marks_of
from tests.kinesis.faulty import made_faulty, options, refusal
from tests.kinesis.test_aggregated import aggregated
from tests.services.kinesis import KinesisEmulator, Stream

pytestmark = pytest.mark.kinesis
MakeStream = Callable[..., Stream]


@pytest.fixture
def client(kinesis: KinesisEmulator) -> Iterator[KinesisClient]:
    made = KinesisClient("k", options(kinesis), poll_s=0.2, timeout_s=10)
    yield made
    made.close()


def printed(client: KinesisClient, name: str, count: int, *, from_beginning: bool = True) -> list[EntityRecord]:
    deadline = time.monotonic() + 30
    return list(
        client.print_entity(
            name, from_beginning=from_beginning, limit=count, stopped=lambda: time.monotonic() > deadline
        )
    )


def test_a_stream_from_its_making_to_its_end(client: KinesisClient) -> None:
    client.check()
    client.check_create_entity("made.here", {"topic.shards": 3})
    client.create_entity("made.here", {"topic.shards": 3})
    assert "made.here" in [entity.name for entity in client.list_entities()]
    details = dict(client.describe_entity("made.here").details)
    assert (details["shards"], details["status"], details["retention_hours"]) == ("3", "ACTIVE", "24")
    for call in (client.check_create_entity, client.create_entity):
        with pytest.raises(SqlError) as refused:
            call("made.here", {"topic.shards": 3})
        assert (refused.value.sqlstate, refused.value.message) == (
            "42710", 'entity "made.here" already exists in store "k"')  # fmt: skip
    client.insert_record("made.here", '{"a": 1}', "key", {})
    client.insert_record("made.here", "é", None, {})
    records = sorted(printed(client, "made.here", 2), key=lambda record: record.value or b"")
    assert [(records[0].key, records[0].value), records[1].value] == [(b"key", b'{"a": 1}'), "é".encode()]
    assert records[0].position.startswith("shardId-00000000000")
    client.drop_entity("made.here", {})
    assert not client.entity_exists("made.here")
    for missing in (lambda: client.describe_entity("made.here"), lambda: client.drop_entity("made.here", {}),
                    lambda: client.insert_record("made.here", "x", None, {}),
                    lambda: client.position("made.here", "earliest"),
                    lambda: client.print_entity("made.here", from_beginning=True, limit=1, stopped=bool)):  # fmt: skip
        with pytest.raises(SqlError) as refused:
            missing()
        assert (refused.value.sqlstate, refused.value.message) == (
            "42704", 'entity "made.here" does not exist in store "k"')  # fmt: skip


def test_the_emulator_outlives_a_client_that_is_killed_amid_a_request(own_kinesis: KinesisEmulator) -> None:
    with socket.create_connection(("127.0.0.1", own_kinesis.port)) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\nhalf")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    for _ in range(3):
        assert own_kinesis.client().list_streams()["StreamNames"] == []


def test_what_is_refused(client: KinesisClient, kinesis_stream: MakeStream) -> None:
    name = kinesis_stream().name
    for call, sqlstate in (
        (lambda: client.check_create_entity("a b", {"topic.shards": 1}), "42602"),
        (lambda: client.check_create_entity("a", {}), "22023"),
        (lambda: client.insert_record(name, None, "k", {}), "0A000"),
        (lambda: client.insert_record(name, "x", "k" * 257, {}), "22023"),
        (lambda: client.insert_record(name, "x" * 1024 * 1024, "k", {}), "54000"),
        (lambda: client.insert_record(name, "x", "k", {"a": 1}), "22023"),
        (lambda: client.drop_entity(name, {"a": 1}), "22023"),
        (lambda: client.write_records([(name, [b"x"])]), "0A000"),
        (lambda: client.position(name, "middle"), "22023"),
    ):
        with pytest.raises(SqlError) as refused:
            call()
        assert refused.value.sqlstate == sqlstate


def test_a_service_that_does_not_answer() -> None:
    away = KinesisClient("k", KinesisOptions("us-east-1", "http://127.0.0.1:9", "a", "b"), poll_s=0.2, timeout_s=2)
    with pytest.raises(SqlError) as refused:
        away.check()
    assert (refused.value.sqlstate, refused.value.message) == ("08006", 'could not connect to store "k"')


@pytest.mark.parametrize(
    ("code", "sqlstate"),
    [
        ("AccessDeniedException", "42501"),
        ("UnrecognizedClientException", "42501"),
        ("InvalidSignatureException", "42501"),
        ("ExpiredTokenException", "42501"),
        ("InvalidArgumentException", "22023"),
        ("SomethingNew", "58000"),
    ],
)
def test_the_services_words(client: KinesisClient, code: str, sqlstate: str) -> None:
    def fault(true: object, arguments: object) -> object:
        raise refusal(code, "ListStreams")

    made_faulty(client._service).faults["list_streams"] = fault
    with pytest.raises(SqlError) as refused:
        client.check()
    assert (refused.value.sqlstate, refused.value.detail) == (sqlstate, f"{code} by the test.")


@pytest.mark.parametrize("operation", ["list_streams", "describe_stream_summary", "list_shards", "put_records"])
def test_what_is_no_such_service(client: KinesisClient, kinesis_stream: MakeStream, operation: str) -> None:
    """Any page that is read as JSON, or not read at all, has none of what was asked for."""
    name = kinesis_stream().name
    made_faulty(client._service).faults[operation] = lambda true, arguments: {"ResponseMetadata": {}}
    service = client._service
    with pytest.raises(SqlError) as refused:
        {
            "list_streams": client.check,
            "describe_stream_summary": lambda: client.describe_entity(name),
            "list_shards": lambda: service.shards(name),
            "put_records": lambda: service.put_all(name, [("k", b"x")]),
        }[operation]()
    assert (refused.value.sqlstate, refused.value.message) == (
        "58000", 'store "k" gave an answer that is not understood',
    )  # fmt: skip


def test_lists_come_page_by_page(client: KinesisClient, kinesis_stream: MakeStream) -> None:
    """Of shards behind a token alone, which the emulator does not do; of streams behind the last name."""
    stream = kinesis_stream(5)
    shards = stream.client.list_shards(StreamName=stream.name)["Shards"]
    asked: list[dict[str, Any]] = []

    def page(true: object, arguments: dict[str, Any]) -> dict[str, Any]:
        asked.append(arguments)
        first = int(arguments.get("NextToken", 0))
        more = {"NextToken": str(first + 2)} if first + 2 < len(shards) else {}
        return {"Shards": shards[first : first + 2], **more}

    faulty = made_faulty(client._service)
    faulty.faults["list_shards"] = page
    assert [shard.id for shard in client._service.shards(stream.name)] == [shard["ShardId"] for shard in shards]
    assert asked == [{"StreamName": stream.name}, {"NextToken": "2"}, {"NextToken": "4"}]
    names = [stream.name, kinesis_stream().name, kinesis_stream().name]
    faulty.faults["list_streams"] = lambda true, arguments: true(**arguments, Limit=1)
    assert set(names) <= {entity.name for entity in client.list_entities()}


def test_a_stream_of_another_account(kinesis: KinesisEmulator, kinesis_stream: MakeStream) -> None:
    own = KinesisOptions(**{**options(kinesis).__dict__, "account_id": "111122223333"})
    with pytest.raises(SqlError) as refused:
        KinesisClient("k", own, poll_s=0.2).describe_entity(kinesis_stream().name)
    assert refused.value.sqlstate == "42501"


def test_print_follows_splits_and_takes_aggregates_apart(client: KinesisClient, kinesis_stream: MakeStream) -> None:
    stream = kinesis_stream()
    found: list[EntityRecord] = []
    records = client.print_entity(stream.name, from_beginning=False, limit=6, stopped=lambda: False)
    thread = threading.Thread(target=lambda: found.extend(records))
    thread.start()
    stream.put([("a", b"1"), ("a", b"2")])
    stream.split()
    stream.put([("a", b"3")])
    stream.merge()
    stream.put([("a", b"4"), ("a", aggregated([("a", None, b"5"), ("b", None, b"6")]))])
    thread.join(60)
    assert [record.value for record in found] == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert [record.key for record in found[4:]] == [b"a", b"b"]
    assert [record.position.rsplit(":", 1)[1] for record in found[4:]] == ["0", "1"]


def test_positions_now(client: KinesisClient, kinesis_stream: MakeStream) -> None:
    """What was acknowledged lies before ``latest``, what comes later behind it, over splits too."""
    stream = kinesis_stream()
    first, zero = "shardId-000000000000", KinesisPositions()
    assert client.position(stream.name, "earliest")["shards"] == {first: "TRIM"}
    empty = client.position(stream.name, "latest")
    assert marks_of(empty)[first].sequence is None
    stream.put([("a", b"1")])
    one = client.position(stream.name, "latest")
    assert marks_of(one)[first].sequence == int(
        stream.client.get_records(
            ShardIterator=stream.client.get_shard_iterator(
                StreamName=stream.name, ShardId=first, ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
        )["Records"][0]["SequenceNumber"]
    )
    assert zero.reached(one, empty)
    assert not zero.reached(empty, one)
    stream.split()
    after = client.position(stream.name, "latest")
    assert marks_of(after)[first].ended
    assert [type(Mark.of(text)) for text in after["shards"].values()] == [Mark, Mark, Mark]
    assert zero.reached(after, one)
    assert not zero.reached(one, after)


def test_positions_of_a_moment(client: KinesisClient, kinesis_stream: MakeStream) -> None:
    stream = kinesis_stream()
    first = "shardId-000000000000"
    created = client.position(stream.name, "earliest")["created"]
    assert client.position(stream.name, "1000")["shards"] == {first: "TRIM"}  # before the stream was made
    assert client.position(stream.name, str(created + 1))["shards"] == {first: f"@{created + 1}"}
    with pytest.raises(SqlError) as refused:
        client.position(stream.name, str(int(time.time() * 1000) + 60_000))
    assert refused.value.message == "the property 'starting.position' is in the future"

    def summary(true: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        answer = true(**arguments)
        answer["StreamDescriptionSummary"]["StreamCreationTimestamp"] -= 3 * 86_400_000
        return answer

    made_faulty(client._service).faults["describe_stream_summary"] = summary
    with pytest.raises(SqlError) as refused:
        client.position(stream.name, str(created - 2 * 86_400_000))
    assert (refused.value.sqlstate, refused.value.detail) == ("22023", "It keeps 24 hours.")
