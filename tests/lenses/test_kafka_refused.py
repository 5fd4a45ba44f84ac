"""Processors of the dialect lenses whose records are refused, also over a kill of the server."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, temporary_server
from tests.lenses.broker import PATIENCE_S, Broker, as_json, integer
from tests.lenses.test_kafka_formats import headed

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def live(kafka_broker: KafkaBroker) -> Iterator[LiveServer]:
    with temporary_server() as server:
        server.start()
        server.run(f"CREATE STORE k WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')")
        yield server


class Names:
    """Topics of one test; a stream over its source."""

    def __init__(self, live: LiveServer) -> None:
        self._mark = uuid.uuid4().hex[:8]
        live.run(
            f"CREATE STREAM source_{self._mark} (v INTEGER, pad VARCHAR) WITH ('store' = k, 'topic' = '{self['in']}', "
            "'value.format' = 'json', 'key.format' = 'primitive', 'key.type' = 'VARCHAR', 'topic.partitions' = 1, "
            "'topic.replicas' = 1)"
        )

    def __getitem__(self, name: str) -> str:
        return f"{name}-{self._mark}"

    def processor(self, name: str) -> str:
        return f"{name}_{self._mark}"


def begun(live: LiveServer, names: Names, name: str, program: str) -> None:
    with live.connect() as connection:
        connection.execute("USE STORE k")
        text = f"SET defaults.topic.autocreate = true; SET nullability = ignore; {program}"
        connection.execute(f"CREATE PROCESSOR {names.processor(name)} AS $${text}$$".encode())
        connection.execute(f"START PROCESSOR {names.processor(name)}".encode())


def errors_of(live: LiveServer, processor: str) -> list[tuple[str, str, str]]:
    """Target, state and error of each query that is not well."""
    rows = live.query(f"DESCRIBE PROCESSOR {processor}")
    return [(row[0], row[5], row[6]) for row in rows if row[6] is not None]


def record(key: bytes, v: int | None, pad: str, second: int) -> tuple[bytes, bytes, int]:
    return key, as_json({"v": v, "pad": pad}), second


def pad(seed: int, size: int = 6000) -> str:
    """A text that is not small when it is compressed."""
    return random.Random(seed).randbytes(size // 2).hex()


def by_target(letters: list[tuple[bytes | None, bytes | None, list[Any]]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for key, value, headers in letters:
        told = dict(headers)
        assert told["error.reason"]
        found.setdefault(told["error.topic"].decode(), []).append((key, value))
    return found


def written(v: int | None, text: str) -> bytes:
    return b'{"v":%s,"pad":"%s"}' % (b"null" if v is None else b"%d" % v, text.encode())


def test_records_that_cannot_be_written_are_letters(live: LiveServer, kafka_broker: KafkaBroker) -> None:
    broker, names = Broker(kafka_broker.bootstrap), Names(live)
    dead, pads, ones, rows = (names[name] for name in ("dead", "pads", "ones", "rows"))
    begun(
        live, names, "p",
        f"""
        SET error.policy.write = dlq;
        SET dead.letter.queue = '{dead}';
        SET topic.`{pads}`.max.message.bytes = 2000;
        WITH t AS (SELECT TABLE * FROM {names['in']});
        INSERT INTO {pads} SELECT STREAM v, pad FROM {names['in']};
        INSERT INTO {ones} SELECT STREAM v AS _value FROM {names['in']};
        INSERT INTO {rows} SELECT TABLE v AS _value FROM t;
        """,
    )  # fmt: skip
    broker.put(
        names["in"], record(b"a", 1, "x", 0), record(b"b", None, pad(1), 1), record(b"c", 3, pad(2), 2),
        record(b"d", 4, "y", 3),
    )  # fmt: skip
    broker.rows(rows, {b"a": integer(1), b"c": integer(3), b"d": integer(4)})
    assert [value["v"] for _, value in broker.records(pads, 2)] == [1, 4]
    assert broker.records(ones, 3) == [(b"a", integer(1)), (b"c", integer(3)), (b"d", integer(4))]
    live.kill()
    broker.put(names["in"], record(b"a", None, pad(3), 4), record(b"c", 5, "z", 5))
    live.start()
    broker.rows(rows, {b"c": integer(5), b"d": integer(4)})  # the value of "a" cannot be written, so it has none
    assert [value["v"] for _, value in broker.records(pads, 3)] == [1, 4, 5]
    assert [value for _, value in broker.records(ones, 4)] == [integer(1), integer(3), integer(4), integer(5)]
    nothing = b'{"_value":null}'
    assert by_target(headed(kafka_broker.bootstrap, dead, 7)) == {
        pads: [(b"b", written(None, pad(1))), (b"c", written(3, pad(2))), (b"a", written(None, pad(3)))],
        ones: [(b"b", nothing), (b"a", nothing)],
        rows: [(b"b", nothing), (b"a", nothing)],
    }
    assert errors_of(live, names.processor("p")) == []
    live.run(f"DROP PROCESSOR {names.processor('p')}")


def test_what_no_letter_can_be_fails_the_processor(live: LiveServer, kafka_broker: KafkaBroker) -> None:
    broker, names = Broker(kafka_broker.bootstrap), Names(live)
    dead, pads, last = (names[name] for name in ("dead", "pads", "last"))
    begun(
        live, names, "p",
        f"""
        SET error.policy.write = dlq;
        SET dead.letter.queue = '{dead}';
        SET defaults.topic.max.message.bytes = 2000;
        INSERT INTO {pads} SELECT STREAM v, pad FROM {names['in']};
        INSERT INTO {last} SELECT TABLE MAX(pad) AS pad FROM {names['in']} GROUP BY _key;
        """,
    )  # fmt: skip
    broker.put(names["in"], record(b"a", 1, "x", 0), record(b"b", 2, pad(1), 1), record(b"c", 3, "y", 2))
    processor = names.processor("p")

    def both_have_failed() -> bool:
        return sorted(each[:2] for each in errors_of(live, processor)) == [(last, "FAILED"), (pads, "FAILED")]

    live.wait_for(both_have_failed, PATIENCE_S, f"errors: {errors_of(live, processor)}")
    told = [error for _, _, error in errors_of(live, processor)]
    assert any(f'the topic of dead letters "{dead}" refuses a record' in error for error in told), told
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    larger = ConfigEntry("max.message.bytes", "100000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, dead, incremental_configs=[larger])
    admin.incremental_alter_configs([resource])[resource].result(20)
    live.run(f"START PROCESSOR {processor}")
    assert [value["v"] for _, value in broker.records(pads, 2)] == [1, 3]
    broker.rows(last, {b"a": {"pad": "x"}, b"c": {"pad": "y"}})
    assert by_target(headed(kafka_broker.bootstrap, dead, 2)) == {
        pads: [(b"b", written(2, pad(1)))], last: [(b"b", b'{"pad":"%s"}' % pad(1).encode())],
    }  # fmt: skip
    assert errors_of(live, processor) == []
    live.run(f"DROP PROCESSOR {processor}")
