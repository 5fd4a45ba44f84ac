"""Events as JSON, made in bulk and reproducibly: the n-th event of a seed is always the same.

DuckDB is used as a fast formatter (a Python loop would be slower than the broker); the server under measurement is
another process and does not share it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import pyarrow as pa

Message = dict[str, bytes]  # as the producer takes it: a value, and where it is a changelog's, the key of its row

_CHUNK = 200_000
_ZIPF_BUCKETS = 1 << 16
EVENT_TIME_START_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Workload:
    """``columns`` is the stream's declaration, ``json`` a DuckDB expression over ``i`` and the hashes h1, h2, h3.

    ``marker`` is one event in the same form whose url is the marker's own; the other columns are ordinary values.
    """

    name: str
    columns: str
    urls: int
    json: str
    marker: str
    primary_key: str | None = None  # of a changelog
    timestamp: str | None = "event_ts"  # without one the event time is the record's own, which goes with the clock

    def declare(self, stream: str, store: str, topic: str) -> str:
        kind, key = ("STREAM", "") if self.primary_key is None else ("CHANGELOG", f", PRIMARY KEY ({self.primary_key})")
        timestamp = "" if self.timestamp is None else f", 'timestamp' = '{self.timestamp}'"
        return (
            f"CREATE {kind} {stream} ({self.columns}{key}) WITH ('store' = '{store}', 'topic' = '{topic}', "
            f"'topic.partitions' = 4, 'topic.replicas' = 1, 'value.format' = 'json'{timestamp});"
        )

    def marker_message(self, number: int) -> Message:
        value = self.marker.format(url=marker_url(number), ts=EVENT_TIME_START_MS)
        if self.primary_key is None:
            return {"value": value.encode()}
        return {"key": str(json.loads(value)[self.primary_key]).encode(), "value": value.encode()}


def marker_url(number: int) -> str:
    return f"marker-{number:07d}"


CLICKS = Workload(
    "clicks",  # the workload on which the other systems of docs/performance.md were measured
    "event_ts BIGINT, user_id BIGINT, url VARCHAR, device_id VARCHAR, ip VARCHAR",
    1_000,
    """'{"event_ts": ' || (1700000000000 + i) || ', "user_id": ' || (h1 % 10000)
       || ', "url": "./catalog/page_' || z.rank || '", "device_id": "device_' || (h2 % 5)
       || '", "ip": "10.' || (h1 % 10000) // 2500 || '.' || (h3 % 100) || '.' || (h2 % 100) || '"}'""",
    '{{"event_ts": {ts}, "user_id": 1, "url": "{url}", "device_id": "device_1", "ip": "10.0.0.1"}}',
)
WIDE = Workload(
    "wide",  # eight columns that can be keys, two that can be summed
    "event_ts BIGINT, user_id BIGINT, url VARCHAR, device_id VARCHAR, country VARCHAR, campaign VARCHAR, "
    "browser VARCHAR, plan VARCHAR, referrer VARCHAR, amount BIGINT, duration INTEGER",
    200,
    """'{"event_ts":' || (1700000000000 + i) || ',"user_id":' || (h1 % 20000) || ',"url":"./u' || z.rank
       || '","device_id":"d' || (h2 % 5) || '","country":"c' || (h2 // 5 % 40) || '","campaign":"k'
       || (h2 // 200 % 50) || '","browser":"b' || (h3 % 8) || '","plan":"p' || (h1 % 4) || '","referrer":"r'
       || (h3 // 8 % 30) || '","amount":' || (h3 // 240 % 10000) || ',"duration":' || (h2 // 10000 % 600) || '}'""",
    '{{"event_ts":{ts},"user_id":1,"url":"{url}","device_id":"d1","country":"c1","campaign":"k1","browser":"b1",'
    '"plan":"p1","referrer":"r1","amount":1,"duration":1}}',
)
KEYS = Workload(
    "keys",  # every event a new key
    "event_ts BIGINT, url VARCHAR, amount BIGINT",
    1,
    """'{"event_ts":' || (1700000000000 + i) || ',"url":"key-' || i || '","amount":' || (h1 % 1000) || '}'""",
    '{{"event_ts":{ts},"url":"{url}","amount":1}}',
)
ORDERS = Workload(
    "orders",  # changes of about 100,000 rows, each of one of as many customers
    "event_ts BIGINT, url VARCHAR, customer VARCHAR, amount BIGINT",
    1,
    """'{"event_ts":' || (1700000000000 + i) || ',"url":"o' || (h1 % 100000) || '","customer":"c' || (h2 % 100000)
       || '","amount":' || (h3 % 1000) || '}'""",
    '{{"event_ts":{ts},"url":"{url}","customer":"c1","amount":1}}',
    "url",
)
CUSTOMERS = Workload(
    "customers",
    "event_ts BIGINT, url VARCHAR, plan VARCHAR",
    1,
    """'{"event_ts":' || (1700000000000 + i) || ',"url":"c' || (h1 % 100000) || '","plan":"p' || (h2 % 50) || '"}'""",
    '{{"event_ts":{ts},"url":"{url}","plan":"p1"}}',
    "url",
)
VISITS = Workload(
    "visits",  # each with an id of its own, which the visit of the same number in another topic has too
    "event_ts BIGINT, id VARCHAR, url VARCHAR, customer VARCHAR, amount BIGINT",
    1,
    """'{"event_ts":' || (1700000000000 + i) || ',"id":"v' || i || '","url":"./u' || (h1 % 1000) || '","customer":"c'
       || (h2 % 100000) || '","amount":' || (h3 % 1000) || '}'""",
    '{{"event_ts":{ts},"id":"{url}","url":"{url}","customer":"{url}","amount":1}}',
)


class Generator:
    """Chunks of a workload's events. One per thread: it owns a connection."""

    def __init__(self, workload: Workload, seed: int) -> None:
        self._seed = seed
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")
        self._connection.register("zipf_ranks", _zipf(workload.urls))
        self._connection.execute("CREATE TABLE zipf AS FROM zipf_ranks")
        key = "" if workload.primary_key is None else f"encode(value ->> '$.{workload.primary_key}') AS key, "
        self._select = (
            "WITH e AS (SELECT range AS i, hash(range, $seed, 1) AS h1, hash(range, $seed, 2) AS h2, "
            "hash(range, $seed, 3) AS h3 FROM range($start, $stop))"
            f", v AS (SELECT {workload.json} AS value FROM e JOIN zipf z ON z.bucket = hash(e.i, $seed, 4) % "
            f"{_ZIPF_BUCKETS}) SELECT {key}encode(value) AS value FROM v"
        )

    def chunk(self, start: int, stop: int) -> list[Message]:
        """The events start to stop - 1; their order within a chunk is not part of the promise."""
        parameters = {"seed": self._seed, "start": start, "stop": stop}
        messages: list[Message] = self._connection.sql(self._select, params=parameters).to_arrow_table().to_pylist()
        return messages

    def chunks(self, start: int, stop: int, size: int = _CHUNK) -> Iterator[list[Message]]:
        for at in range(start, stop, size):
            yield self.chunk(at, min(stop, at + size))

    def close(self) -> None:
        self._connection.close()


def _zipf(ranks: int) -> pa.Table:
    """Buckets of equal probability to ranks with weight 1 / rank."""
    weights = [1 / rank for rank in range(1, ranks + 1)]
    total = sum(weights)
    assigned = []
    rank, reached = 1, weights[0] / total
    for bucket in range(_ZIPF_BUCKETS):
        while (bucket + 0.5) / _ZIPF_BUCKETS > reached and rank < ranks:
            rank += 1
            reached += weights[rank - 1] / total
        assigned.append(rank)
    return pa.table({"bucket": pa.array(range(_ZIPF_BUCKETS), pa.uint64()), "rank": pa.array(assigned, pa.int32())})
