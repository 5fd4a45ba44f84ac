"""Random programs over random topics, cut into random batches, with kills between them: each view is in the end what
PostgreSQL computes from the whole input.

``make test-oracle N=200`` runs more; MV_ORACLE_SEED repeats a run.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import random
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, temporary_server
from tests.oracle.input import CUSTOMERS, ORDERS, PARTITIONS, PAYMENTS, Record, Topic, customers, load, orders, payments
from tests.oracle.programs import Program, ProgramWriter
from tests.services.kafka import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.postgres]

EACH_CHANGE = 24  # programs of the tier that every change runs: each kind of clause is met, another seed each day
PROGRAMS = int(os.environ.get("MV_ORACLE_PROGRAMS", EACH_CHANGE))
ACCEPTED_TIMES_MIN = 3  # that each kind of clause is met by a longer run
ROUNDS = 3 if PROGRAMS > EACH_CHANGE else 2  # of input, with a kill after each but the last
WRITTEN_OF_FIVE = 2 if PROGRAMS > EACH_CHANGE else 1  # programs by way of a topic: each is two queries
SETTLE_S = 300.0


@pytest.fixture
def live_server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        yield live.start()


def test_views_are_what_postgresql_computes(
    live_server: LiveServer, kafka_broker: KafkaBroker, postgres_server: Any
) -> None:
    drawn = random.SystemRandom().getrandbits(32) if PROGRAMS > EACH_CHANGE else dt.date.today().toordinal()
    seed = int(os.environ.get("MV_ORACLE_SEED", drawn))
    print(f"seed {seed} (MV_ORACLE_SEED), {PROGRAMS} programs")
    rng = random.Random(seed)
    topics = (orders(rng, 400), payments(rng, 250), customers(rng, 120))
    names = {topic.name: f"{topic.name}-{uuid.uuid4().hex[:8]}" for topic in topics}
    for name in names.values():
        create_topic(kafka_broker, name, PARTITIONS)
    writer = ProgramWriter(rng)
    programs = [writer.next() for _ in range(PROGRAMS)]
    programs += [writer.forgetting() for _ in range(max(2, PROGRAMS // 14))]
    chains = writer.chain_forms if PROGRAMS > EACH_CHANGE else writer.chain_forms // 2  # of others on the next day
    programs += [writer.chain() for _ in range(max(chains, PROGRAMS // 8))]
    programs = [
        _written(each) if each.keys and number % 5 < WRITTEN_OF_FIVE else each for number, each in enumerate(programs)
    ]
    views, refused = _create(live_server, kafka_broker, names, programs)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    pieces = [topic.pieces(rng, ROUNDS) for topic in topics]
    for number in range(ROUNDS):
        _produce(producer, names, topics, [piece[number] for piece in pieces], rng)
        if number < ROUNDS - 1:
            time.sleep(rng.uniform(0, 3))  # where in a batch the kill falls is left to chance
            live_server.kill()
            live_server.start()
    with psycopg.connect(postgres_server.dsn) as postgres:
        load(postgres, topics)
        expected = {name: postgres.execute(program.theirs.encode()).fetchall() for name, program in views.items()}
        postgres.rollback()
    wrong = _differences(live_server, views, expected)
    print("\n".join(wrong))
    assert wrong == [], live_server.log_tail()
    clauses = Counter(clause for program in views.values() for clause in set(program.clauses))
    print(f"{len(views)} of {len(programs)} accepted; {dict(clauses)}")
    assert len(views) >= 0.8 * len(programs), refused
    assert clauses["chain"] == sum("chain" in program.clauses for program in programs), refused
    assert {clause for program in programs for clause in program.clauses} >= _EACH_MET
    if PROGRAMS > EACH_CHANGE:
        assert [clause for clause in sorted(_EACH_MET) if clauses[clause] < ACCEPTED_TIMES_MIN] == []


_EACH_MET = frozenset(
    {"projection", "DISTINCT", "GROUP BY", "HAVING", "WHERE", "FILTER", "grouping sets", "changelog", "TUMBLE", "HOP"}
    | {"CUMULATE", "SESSION", "EMIT FINAL", "UNION ALL", "UNNEST", "changelog join", "written"}
    | {"forgotten groups", "STRUCT"}
)


def _create(
    server: LiveServer, broker: KafkaBroker, names: dict[str, str], programs: list[Program]
) -> tuple[dict[str, Program], list[str]]:
    timed = "'value.format' = 'json', 'timestamp' = 'ts'"
    server.run(
        f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{broker.bootstrap}')",
        f"CREATE STREAM orders ({ORDERS}) WITH ('store' = 's', 'topic' = '{names['orders']}', {timed})",
        f"CREATE STREAM payments ({PAYMENTS}) WITH ('store' = 's', 'topic' = '{names['payments']}', {timed})",
        f"CREATE CHANGELOG customers ({CUSTOMERS}, PRIMARY KEY (ck)) WITH ('store' = 's', "
        f"'topic' = '{names['customers']}', 'key.format' = 'primitive', 'key.type' = 'VARCHAR', {timed})",
    )
    views: dict[str, Program] = {}
    refused = []
    for number, program in enumerate(programs):
        name = f"v{number}"
        try:
            server.run(*_statements(name, program))
        except psycopg.errors.FeatureNotSupported as error:
            refused.append(f"{program.ours}: {error}")
        else:
            views[name] = program
    return views, refused


def _written(program: Program) -> Program:
    """The same by way of a topic, where rows with a NULL in their key are not."""
    known = " AND ".join(f"k{i} IS NOT NULL" for i in range(program.keys))
    theirs = f"SELECT * FROM ({program.theirs}) AS rows WHERE {known}"
    return replace(program, theirs=theirs, clauses=(*program.clauses, "written"))


def _statements(name: str, program: Program) -> list[str]:
    properties = f" WITH ({program.properties})" if program.properties else ""
    if "written" not in program.clauses:
        made = [f"CREATE MATERIALIZED VIEW {name}{properties} AS {program.ours}"]
    else:
        given = ", ".join(
            [f"'store' = 's', 'topic' = '{name}-{uuid.uuid4().hex[:8]}', 'topic.partitions' = 2, 'topic.replicas' = 1"]
            + ([program.properties] if program.properties else [])
        )
        made = [
            f"CREATE CHANGELOG {name}_topic WITH ({given}, 'key.format' = 'json') AS {program.ours}",
            f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM {name}_topic",
        ]
    if not program.virtual:
        return made
    return [
        f"BEGIN APPLICATION {name}; CREATE VIRTUAL STREAM t AS {program.virtual}; {made[0]}; END APPLICATION",
        *made[1:],
    ]


def _produce(
    producer: Producer, names: dict[str, str], topics: tuple[Topic, ...], pieces: list[list[Record]], rng: random.Random
) -> None:
    """The records of all topics, mixed, each topic's in its order."""
    waiting = [(names[topic.name], list(reversed(piece))) for topic, piece in zip(topics, pieces, strict=True)]
    while any(records for _, records in waiting):
        name, records = rng.choice([each for each in waiting if each[1]])
        record = records.pop()
        producer.produce(
            name,
            value=record.payload(),
            key=None if record.key is None else record.key.encode(),
            partition=record.partition,
            timestamp=max(0, int(record.time.timestamp() * 1000)),  # Kafka has no earlier ones; no program reads it
        )
    assert producer.flush(30) == 0


def _differences(
    server: LiveServer, views: dict[str, Program], expected: dict[str, list[tuple[Any, ...]]]
) -> list[str]:
    deadline = time.monotonic() + SETTLE_S
    waiting = dict(views)
    wrong: dict[str, str] = {}
    while waiting:
        for name, program in list(waiting.items()):
            difference = _difference(server.query(f"SELECT * FROM {name}"), expected[name])
            if difference is None:
                del waiting[name]
                wrong.pop(name, None)
            else:
                wrong[name] = f"{program.ours}\n  {program.theirs}\n  {difference}; {server.states().get(name)}"
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    return list(wrong.values())


def _difference(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> str | None:
    ours, theirs = sorted(map(_plain, found), key=_order), sorted(map(_plain, expected), key=_order)
    if len(ours) == len(theirs) and all(map(_same, ours, theirs)):
        return None
    missing = [row for row in theirs if row not in ours][:3]
    extra = [row for row in ours if row not in theirs][:3]
    return f"{len(ours)} rows, not {len(theirs)}: missing {missing}, too many {extra}"


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Averages have six digits at least here, and more there."""
    return tuple(round(value, 4).normalize() if isinstance(value, Decimal) else value for value in row)


def _order(row: tuple[Any, ...]) -> list[tuple[bool, str]]:
    return [(value is None, str(value)) for value in row]


def _same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return all(
        math.isclose(x, y, rel_tol=1e-9) if isinstance(x, float) and isinstance(y, float) else x == y
        for x, y in zip(a, b, strict=True)
    )
