"""How fast each Nexmark query goes through events that are there already, beside reading and throwing away the bids.

One server makes the views one after the other, each alone, over the same three topics; a view is dropped before the
next one is made. The time of a query counts from its CREATE to the moment at which its view is complete; records that a
query reads twice, for two sides of a join, are still one event.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from mvserver.demo.server import Server
from tests.bench import completion
from tests.bench.bench import STORE, Bench, Client
from tests.bench.load import PARTITIONS
from tests.bench.parts.backlog import scan_only
from tests.nexmark.events import COLUMNS, Site
from tests.nexmark.queries import Query, declarations, queries

EVENTS = 600_000
_SCANNED_AT_A_TIME = 150_000  # of the bids: the rate is that of the batches after the first
_BETWEEN = dt.timedelta(milliseconds=1)  # of event time
_SEED = 1
_READS = {"person": ("q3", "q8"), "auction": ("q3", "q4", "q6", "q8", "q9")}
_NO_BIDS = ("q3", "q8")
_FLUSH_TIMEOUT_S = 120.0


def measure(bench: Bench) -> dict[str, Any]:
    topics = {kind: f"nexmark-{kind}" for kind in COLUMNS}
    admin = AdminClient({"bootstrap.servers": bench.broker.bootstrap})
    for made in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics.values()]).values():
        made.result()
    try:
        counts = _preload(bench.broker.bootstrap, topics, max(50_000, int(EVENTS * bench.settings.scale)))
        scanned = scan_only(bench.broker.bootstrap, topics["bid"], COLUMNS["bid"], _SCANNED_AT_A_TIME)
        with bench.server() as server:
            server.start()
            with server.connect() as client:
                client.execute(f"CREATE STORE {STORE} WITH ('type' = KAFKA, 'uris' = '{bench.broker.bootstrap}')")
                for statement in declarations(STORE, topics):
                    client.execute(statement.encode())
                client.execute("SET mv.read_while_filling = on")
                _run(server, client, queries()["q0"])  # warms up what all of them need
                rows = [_measured(server, client, query, counts) for query in queries().values()]
    finally:
        for deleted in admin.delete_topics(list(topics.values())).values():
            deleted.result()
    return {"events": sum(counts.values()), "scan_only_per_s": round(scanned), "rows": rows}


def _preload(bootstrap: str, topics: dict[str, str], count: int) -> dict[str, int]:
    """How many events of each kind there are then."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "log_level": 2, "compression.type": "lz4", "linger.ms": 50,
         "queue.buffering.max.messages": 1_000_000}
    )  # fmt: skip
    counts = dict.fromkeys(topics, 0)
    for event in Site(_SEED, _BETWEEN).events(count):
        key, value = str(event.key).encode(), event.value()
        while True:
            try:
                producer.produce(topics[event.kind], value, key)
                break
            except BufferError:
                producer.poll(0.05)
        counts[event.kind] += 1
    if left := producer.flush(_FLUSH_TIMEOUT_S):
        raise TimeoutError(f"{left} events were not acknowledged within {_FLUSH_TIMEOUT_S:g} s")
    return counts


def _measured(server: Server, client: Client, query: Query, counts: dict[str, int]) -> dict[str, Any]:
    events = sum(counts[kind] for kind, readers in _READS.items() if query.name in readers)
    events += 0 if query.name in _NO_BIDS else counts["bid"]
    seconds, cpu_s, rows = _run(server, client, query)
    measured = {
        "query": query.name,
        "events": events,
        "rows": rows,
        "events_per_s": round(events / seconds),
        "cpu_us_per_event": round(cpu_s * 1e6 / events, 1),
    }
    print(f"    {measured}, {seconds:.1f} s")
    if query.name in ("q0", "q1") and rows != events:
        raise AssertionError(f"{query.name} shows {rows} of {events} bids")
    return measured


def _run(server: Server, client: Client, query: Query) -> tuple[float, float, int]:
    """Seconds until the view is complete, those of processors that server and Spark took, and how many rows it has."""
    seconds, cpu_s = completion.create(server, client, query.create)
    row = client.execute(f"SELECT count(*) FROM {query.name}".encode()).fetchone()
    client.execute(f"DROP MATERIALIZED VIEW {query.name}".encode())
    return seconds, cpu_s, int(row[0]) if row else 0
