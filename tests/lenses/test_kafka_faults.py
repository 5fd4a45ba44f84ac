"""Processors of the dialect lenses whose records are refused, and whose server or topics go while rows come."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
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
from tests.services.kafka import create_topic

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


def wait_told(live: LiveServer, processor: str, wanted: list[tuple[str, str, str]]) -> None:
    """Until exactly these targets have these states, and errors with these words."""

    def are_told() -> bool:
        found = errors_of(live, processor)
        return [each[:2] for each in found] == [each[:2] for each in wanted] and all(
            words in error for (_, _, error), (_, _, words) in zip(found, wanted, strict=True)
        )

    live.wait_for(are_told, PATIENCE_S, f"{processor} does not tell of {wanted}")


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

    live.wait_for(both_have_failed, PATIENCE_S, "not both have failed")
    told = [error for _, _, error in errors_of(live, processor)]
    assert any(f'the topic of dead letters "{dead}" refuses a record' in error for error in told), told
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    larger = ConfigEntry("max.message.bytes", "100000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, dead, incremental_configs=[larger])
    admin.incremental_alter_configs([resource])[resource].result(20)

    def goes_on() -> bool:  # what was under way at the first START fails behind it
        if errors_of(live, processor):
            live.run(f"START PROCESSOR {processor}")
        return all(row[8] == 3 for row in live.query(f"DESCRIBE PROCESSOR {processor}") if row[0] == pads)

    live.wait_for(goes_on, PATIENCE_S, "it does not go on")
    assert [value["v"] for _, value in broker.records(pads, 2)] == [1, 3]
    broker.rows(last, {b"a": {"pad": "x"}, b"c": {"pad": "y"}})
    assert by_target(headed(kafka_broker.bootstrap, dead, 2)) == {
        pads: [(b"b", written(2, pad(1)))], last: [(b"b", b'{"pad":"%s"}' % pad(1).encode())],
    }  # fmt: skip
    assert errors_of(live, processor) == []
    live.run(f"DROP PROCESSOR {processor}")


def test_it_starts_stops_and_dies_while_rows_come(live: LiveServer, kafka_broker: KafkaBroker) -> None:
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    chance, broker, names = random.Random(seed), Broker(kafka_broker.bootstrap), Names(live)
    copies, sums, other = (names[name] for name in ("copies", "sums", "other"))
    program = (
        "INSERT INTO {} SELECT STREAM v FROM " + names["in"] + "; "
        "INSERT INTO {} SELECT STREAM SUM(v) AS s, COUNT(*) AS n FROM " + names["in"] + " GROUP BY _key"
    )
    begun(live, names, "p", program.format(copies, sums))
    processor, put = names.processor("p"), list[tuple[bytes, int]]()

    def more() -> None:
        for _ in range(chance.randrange(1, 6)):
            number = len(put)
            put.append((chance.choice((b"a", b"b", b"c")), number))
            broker.put(names["in"], record(*put[-1], "x", number))

    steps = [f"STOP PROCESSOR {processor}", f"START PROCESSOR {processor}", f"SCALE PROCESSOR {processor} 1", "kill"]
    for step in [*steps, *(chance.choice(steps) for _ in range(3)), f"START PROCESSOR {processor}"]:
        more()
        if step == "kill":
            live.kill()
            more()
            live.start()
        else:
            live.run(step)
        more()
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        live.run(f"SCALE PROCESSOR {processor} 2")
    wanted: dict[bytes | None, Any] = {
        key: {"s": sum(v for k, v in put if k == key), "n": sum(k == key for k, _ in put)}
        for key in {k for k, _ in put}
    }
    broker.rows(sums, wanted)
    found = headed(kafka_broker.bootstrap, copies, len(put))
    assert [(key, value) for key, value, _ in found] == [(key, b'{"v":%d}' % v) for key, v in put]
    live.run(f"DROP PROCESSOR {processor}")
    broker.put(names["in"], record(b"a", 1000, "x", 1000))
    begun(live, names, "q", program.format(other, names["othersums"]))
    assert len(headed(kafka_broker.bootstrap, other, len(put) + 1)) == len(put) + 1
    assert len(headed(kafka_broker.bootstrap, copies, len(put))) == len(put)
    live.run(f"DROP PROCESSOR {names.processor('q')}")


def test_topics_that_go_are_told_of(live: LiveServer, kafka_broker: KafkaBroker) -> None:
    broker, names = Broker(kafka_broker.bootstrap), Names(live)
    copies, sums = names["copies"], names["sums"]
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    program = (
        f"INSERT INTO {copies} SELECT STREAM v FROM {names['in']}; "
        f"INSERT INTO {sums} SELECT STREAM SUM(v) AS s FROM {names['in']} GROUP BY _key"
    )
    begun(live, names, "p", program)
    processor = names.processor("p")
    broker.put(names["in"], record(b"a", 1, "x", 0))
    broker.rows(sums, {b"a": {"s": 1}})
    assert broker.records(copies, 1) == [(b"a", {"v": 1})]
    # a target goes
    admin.delete_topics([copies])[copies].result(20)
    broker.put(names["in"], record(b"a", 2, "x", 1))
    wait_told(live, processor, [(copies, "STALLED", copies)])
    live.run(f"DROP PROCESSOR {processor}")
    # the source goes, and another one has its name
    begun(live, names, "q", program.replace(copies, names["others"]).replace(sums, names["othersums"]))
    broker.rows(names["othersums"], {b"a": {"s": 3}})
    assert broker.records(names["others"], 2) == [(b"a", {"v": 1}), (b"a", {"v": 2})]
    admin.delete_topics([names["in"]])[names["in"]].result(20)
    live.wait_for(lambda: names["in"] not in admin.list_topics(timeout=10).topics, PATIENCE_S, "the topic is there")
    create_topic(kafka_broker, names["in"])
    broker.put(names["in"], record(b"a", 10, "x", 0))
    processor = names.processor("q")
    wait_told(live, processor, [(names[target], "FAILED", names["in"]) for target in ("others", "othersums")])
    live.run(f"DROP PROCESSOR {processor}")
    begun(live, names, "r", program.replace(copies, names["thirds"]).replace(sums, names["thirdsums"]))
    broker.rows(names["thirdsums"], {b"a": {"s": 10}})
    live.run(f"DROP PROCESSOR {names.processor('r')}")
