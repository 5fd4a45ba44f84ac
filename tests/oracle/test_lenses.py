"""Random programs of the dialect lenses on a real Kafka: each target has in the end what PostgreSQL computes from the
whole input.

``MV_ORACLE_LENSES=50`` runs that many programs; MV_ORACLE_SEED repeats a run.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, temporary_server
from tests.oracle.lenses_programs import HELPERS, Insert, LensesWriter, Letters
from tests.oracle.lenses_records import FIELDS, PARTITIONS, Record, ends, load, records
from tests.services.kafka import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.postgres]

SEED = 20_261_124
EACH_CHANGE = 4  # programs of the tier that every change runs
PROGRAMS = int(os.environ.get("MV_ORACLE_LENSES", "0"))
SETTLE_S = 240.0
_RELATION = (
    "CREATE STREAM {0} ({1}) WITH ('store' = 'k', 'topic' = '{2}', 'value.format' = 'json', "
    "'key.format' = 'primitive', 'key.type' = 'VARCHAR')"
)


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        yield live.start()


@pytest.mark.parametrize(
    ("programs", "kills"), [(PROGRAMS or EACH_CHANGE, 0), pytest.param(PROGRAMS or 40, 2, marks=pytest.mark.night)]
)
def test_targets_are_what_postgresql_computes(
    server: LiveServer, kafka_broker: KafkaBroker, postgres_server: Any, programs: int, kills: int
) -> None:
    drawn = random.SystemRandom().getrandbits(32) if programs > EACH_CHANGE else SEED
    seed = int(os.environ.get("MV_ORACLE_SEED", drawn))
    print(f"seed {seed} (MV_ORACLE_SEED), {programs} programs")
    began = time.monotonic()
    rng = random.Random(seed)
    mark = uuid.uuid4().hex[:8]
    topics, whole = (f"one{mark}", f"two{mark}"), (f"onewhole{mark}", f"twowhole{mark}")
    given = [[*records(rng, 150), *ends()] for _ in topics]
    server.run(f"CREATE STORE k WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')")
    for topic in (*topics, *whole):
        create_topic(kafka_broker, topic, PARTITIONS)
        server.run(_RELATION.format(topic, FIELDS, topic))
    pieces = [_pieces(rng, each, kills + 2) for each in given]
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    _produce(producer, topics, [piece[0] for piece in pieces], rng)
    _produce(producer, whole, given, rng)
    inserts, letters = _register(server, LensesWriter(rng, topics, whole), programs)
    print(f"{time.monotonic() - began:.0f} s until all was registered")
    for number in range(1, kills + 2):
        _produce(producer, topics, [piece[number] for piece in pieces], rng)
        if number <= kills:
            server.kill()
            server.start()
    with psycopg.connect(postgres_server.dsn) as postgres:
        for name, each in zip(("one", "two"), given, strict=True):
            load(postgres, name, each)
        for helper in HELPERS:
            postgres.execute(helper.encode())
        expected = {each.target: _theirs(each, postgres.execute(each.theirs.encode()).fetchall()) for each in inserts}
        postgres.rollback()
    print(dict(Counter(clause for each in inserts for clause in set(each.clauses))))
    wrong = _differences(kafka_broker, server, inserts, expected)
    assert wrong == [], "\n".join(wrong)
    by_topic = dict(zip((*topics, *whole), (*given, *given), strict=True))
    for each in letters:
        _compare_letters(kafka_broker, each, by_topic)


def _compare_letters(broker: KafkaBroker, letters: Letters, given: dict[str, Sequence[Record]]) -> None:
    """A STREAM rejects what has no value, a TABLE what has no key: each of them is there once, as it was."""
    wanted = Counter(
        (topic, each.key, None if each.payload is None else each.payload.decode())
        for topic, table in letters.sources
        for each in given[topic]
        if (each.key if table else each.value) is None
    )
    deadline = time.monotonic() + SETTLE_S
    while True:
        found, places = _letters(broker, letters.target)
        if found == wanted or time.monotonic() > deadline:
            break
    assert found == wanted, (letters, found - wanted, wanted - found)
    assert len(set(places)) == len(places), letters


def _letters(broker: KafkaBroker, topic: str) -> tuple[Counter[Any], list[Any]]:
    found: Counter[Any] = Counter()
    places = []
    for message in _messages(broker, topic):
        headers = {name: value.decode() for name, value in message.headers()}
        source = headers["error.topic"]
        key, value = (None if part is None else part.decode() for part in (message.key(), message.value()))
        found[source, key, value] += 1
        places.append((source, headers["error.partition"], headers["error.offset"]))
    return found, places


def _pieces(rng: random.Random, given: Sequence[Record], count: int) -> list[Sequence[Record]]:
    cuts = sorted(rng.sample(range(1, len(given)), count - 1))
    return [given[a:b] for a, b in zip([0, *cuts], [*cuts, len(given)], strict=True)]


def _produce(producer: Producer, topics: Sequence[str], pieces: Sequence[Sequence[Record]], rng: random.Random) -> None:
    """Mixed, or one partition after the other: which of them is read first decides nothing."""
    every = set(range(PARTITIONS))
    turns = [every] if rng.random() < 0.3 else [{partition} for partition in rng.sample(range(PARTITIONS), PARTITIONS)]
    for partitions in turns:
        waiting = [
            (topic, [each for each in reversed(piece) if each.partition in partitions])
            for topic, piece in zip(topics, pieces, strict=True)
        ]
        while any(left for _, left in waiting):
            topic, left = rng.choice([each for each in waiting if each[1]])
            each = left.pop()
            key = None if each.key is None else each.key.encode()
            moment = int(each.time.timestamp() * 1000)
            producer.produce(topic, key=key, value=each.payload, partition=each.partition, timestamp=moment)
        assert producer.flush(30) == 0


def _register(server: LiveServer, writer: LensesWriter, programs: int) -> tuple[list[Insert], list[Letters]]:
    """The INSERTs of those that are not refused, and their dead letters; a few forms are refused, by name."""
    found: list[Insert] = []
    letters: list[Letters] = []
    refused: list[str] = []
    with server.connect() as connection:
        connection.execute("USE STORE k")
        for _ in range(programs):
            text, inserts, dead = writer.next(3 if programs > EACH_CHANGE else 2)
            try:
                connection.execute(f"LENSES $${text}$$".encode())
            except psycopg.errors.FeatureNotSupported as error:
                refused.append(f"{text}\n  {error}")
            else:
                found += inserts
                letters += [] if dead is None else [dead]
    assert len(refused) <= programs // 5, "\n".join(refused)
    return found, letters


# --- what is there --------------------------------------------------------------------------------------------------
Rows = list[tuple[str | None, tuple[Any, ...]]]


def _differences(
    broker: KafkaBroker, server: LiveServer, inserts: Sequence[Insert], expected: dict[str, Rows]
) -> list[str]:
    deadline = time.monotonic() + SETTLE_S
    wrong = {each.target: "" for each in inserts}
    while wrong and time.monotonic() < deadline:
        for each in [each for each in inserts if each.target in wrong]:
            difference = _difference(_ours(broker, each), expected[each.target])
            if difference is None:
                del wrong[each.target]
            else:
                wrong[each.target] = f"{each.ours}\n  {each.theirs}\n  {difference}"
    for each in inserts:  # and nothing comes after it
        difference = None if wrong else _difference(_ours(broker, each), expected[each.target])
        if difference is not None:
            wrong[each.target] = f"{each.ours}: at first right, then {difference}"
    return [*wrong.values(), server.log_tail()] if wrong else []


def _messages(broker: KafkaBroker, topic: str) -> Iterator[Any]:
    """All that are committed."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": uuid.uuid4().hex, "isolation.level": "read_committed",
         "enable.partition.eof": True}
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    while True:
        message = consumer.poll(20)
        assert message is not None, topic
        if message.error() is not None:
            break
        yield message
    consumer.close()


def _ours(broker: KafkaBroker, insert: Insert) -> Rows:
    all_: Rows = []
    last: dict[bytes | None, tuple[Any, ...]] = {}
    for message in _messages(broker, insert.target):
        raw = message.value()
        if raw is None:
            last.pop(message.key(), None)
            continue
        value = json.loads(raw)
        last[message.key()] = row = tuple(value[name] for name in insert.names)
        all_.append((None if message.key() is None else message.key().decode(), row))
    return [(None if key is None else key.decode(), row) for key, row in last.items()] if insert.keyed else all_


def _theirs(insert: Insert, found: Sequence[tuple[Any, ...]]) -> Rows:
    rows: Rows = []
    for row in found:
        if not insert.keys:
            rows.append((row[0], row[1:]))
            continue
        key = dict(zip(insert.keys, row, strict=False))  # not there where all of its fields are NULL
        text = None if set(key.values()) == {None} else json.dumps(key, separators=(",", ":"))
        rows.append((text, row[len(insert.keys) :]))
    return rows


def _difference(ours: Rows, theirs: Rows) -> str | None:
    mine, its = sorted(ours, key=_order), sorted(theirs, key=_order)
    if len(mine) == len(its) and all(a[0] == b[0] and _same(a[1], b[1]) for a, b in zip(mine, its, strict=True)):
        return None
    missing = [row for row in its if not any(row[0] == each[0] and _same(row[1], each[1]) for each in mine)][:3]
    extra = [row for row in mine if not any(row[0] == each[0] and _same(row[1], each[1]) for each in its)][:3]
    return f"{len(mine)} rows, not {len(its)}: missing {missing}, too many {extra}"


def _order(row: tuple[str | None, tuple[Any, ...]]) -> tuple[Any, ...]:
    def plain(value: Any) -> str:
        return f"{value:.3f}" if isinstance(value, float) else f"{value:d}.000" if type(value) is int else str(value)

    return (row[0] or "", *map(plain, row[1]))


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return all(
        math.isclose(x, y, rel_tol=1e-9) if isinstance(x, float) and isinstance(y, float | int) else x == y
        for x, y in zip(a, b, strict=True)
    )
