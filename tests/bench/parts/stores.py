"""Each kind of stores: records a second of a backlog, beside a client that reads them alone, and freshness.

The backlog comes in while the server is stopped. The rate counts from the first look that shows any record until all
are there, since Spark's start is the same for all kinds.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, LiteralString

from confluent_kafka import Consumer, Producer, TopicPartition

from mvserver.demo.kafka_broker import KafkaBroker
from mvserver.demo.server import Server
from tests.bench.bench import Bench, Client
from tests.bench.processes import usage
from tests.bench.stats import latency_summary, percentile, rate_after_first
from tests.conformance import stores
from tests.conformance.stores import StoreUnderTest
from tests.services.kinesis import KinesisEmulator, Stream
from tests.services.postgres import LogicalPostgres

RATE = 1_000
_EVERY_S = 0.1
_POLL_S = 0.005
_WAIT_S = 600.0
_AT_ONCE = 10_000
_KEYS = 100  # the last of each tenth of a second have one key, and so their order
_BATCHES = 20  # so that the first one may be left out


@dataclass(frozen=True)
class Source:
    """``relation`` is STREAM or CHANGELOG; ``alone`` reads so many records of the entity as a client of its own.
    ``folder`` is where directories may be, ``before`` are statements that the store needs."""

    store: StoreUnderTest
    folder: Path
    relation: str
    records: int
    alone: Callable[[str, int], None]
    before: Sequence[str] = ()


def measure(bench: Bench) -> dict[str, Any]:
    rows = []
    with _sources(bench) as sources:
        for source in sources:
            relation = source.relation.lower()
            row = {"type": source.store.kind, "relation": relation}
            row |= measured(bench, source, f"{source.store.name}_{relation}")
            rows.append(row)
            print(f"    {row}")
    return {"records_per_s": RATE, "rows": rows}


def measured(bench: Bench, source: Source, name: str) -> dict[str, Any]:
    """The figures of its backlog, and of its freshness; ``name`` begins those of its entities."""
    with _declared(bench, source, f"{name}_backlog") as server:
        row = _backlog(server, source, f"{name}_backlog")
    with _declared(bench, source, f"{name}_live") as server:
        ages = _ages(server, source, f"{name}_live", bench.settings.warm_up_s, bench.settings.seconds)
        return row | latency_summary(ages)


# --- the stores -----------------------------------------------------------------------------------------------------
@contextmanager
def _sources(bench: Bench) -> Iterator[Sequence[Source]]:
    scale = bench.settings.scale
    with ExitStack() as stack:
        folder = stack.enter_context(stores.folder())
        emulator = KinesisEmulator().start()
        stack.callback(emulator.stop)
        folder.chmod(0o755)  # PostgreSQL runs as another user where the bench runs as root
        (folder / "postgres").mkdir(mode=0o755)
        postgres = LogicalPostgres(folder / "postgres")
        stack.callback(postgres.stop, "immediate")
        files = folder / "files"
        many, few = (int(records * scale) for records in (2_000_000, 100_000))
        yield [
            Source(stores.files(files), folder, "STREAM", many, _read_files(files)),
            Source(topics(bench.broker, _value), folder, "STREAM", many, read_topic(bench.broker, _number)),
            Source(_streams(emulator), folder, "STREAM", few, _read_stream(emulator)),
            Source(_table(postgres), folder, "STREAM", many, _read_slot(postgres)),
            Source(replace(_table(postgres), n="n"), folder, "CHANGELOG", many, _read_slot(postgres)),
        ]


def _read_files(folder: Path) -> Callable[[str, int], None]:
    def read(entity: str, records: int) -> None:
        found = 0
        for path in (folder / "store" / entity).glob("*.json"):
            with path.open("rb") as lines:
                found += sum(_number(line) >= 0 for line in lines)
        assert found == records

    return read


def topics(broker: KafkaBroker, value: Callable[[int], bytes]) -> StoreUnderTest:
    """With records of its own form."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "log_level": 0})

    def put(entity: str, numbers: Sequence[int]) -> None:
        for number in numbers:
            producer.produce(entity, value(number), key=str(number % _KEYS))
        assert producer.flush(60) == 0

    return replace(stores.topics(broker), put=put)


def _streams(emulator: KinesisEmulator) -> StoreUnderTest:
    client = emulator.client()

    def put(entity: str, numbers: Sequence[int]) -> None:
        Stream(client, entity).put([(str(number % _KEYS), _value(number)) for number in numbers])

    return replace(stores.streams(emulator), put=put)


def _value(number: int) -> bytes:
    return json.dumps({"n": number, "price": stores.NOTHING_WRONG}).encode()


def _number(record: bytes) -> int:
    return int(json.loads(record)["n"])


def read_topic(broker: KafkaBroker, number: Callable[[bytes], int]) -> Callable[[str, int], None]:
    """``number`` decodes a record."""

    def read(entity: str, records: int) -> None:
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": uuid.uuid4().hex, "log_level": 0}
        consumer = Consumer(settings)
        partitions = list(consumer.list_topics(entity, timeout=30).topics[entity].partitions)
        consumer.assign([TopicPartition(entity, partition, 0) for partition in partitions])
        found = 0
        while found < records:
            found += sum(number(message.value() or b"") >= 0 for message in consumer.consume(_AT_ONCE, 10))
        consumer.close()

    return read


def _read_stream(emulator: KinesisEmulator) -> Callable[[str, int], None]:
    def read(entity: str, records: int) -> None:
        found = sum(_number(data) >= 0 for _, data in Stream(emulator.client(), entity).values())
        assert found == records

    return read


def _table(postgres: LogicalPostgres) -> StoreUnderTest:
    """Its rows come by COPY, as many in a transaction as are given at once; a second slot has the same changes."""
    tables = stores.tables(postgres)
    assert tables.make is not None
    make = tables.make

    def make_with_slot(entity: str) -> None:
        make(entity)
        with postgres.connect() as connection:
            connection.execute(f"CREATE PUBLICATION alone_{entity} FOR TABLE {entity}")
            connection.execute(f"SELECT pg_create_logical_replication_slot('alone_{entity}', 'pgoutput')")

    connection = postgres.connect()

    def put(entity: str, numbers: Sequence[int]) -> None:
        with connection.cursor().copy(f"COPY {entity} FROM STDIN") as rows:
            for number in numbers:
                rows.write_row((number, "1.00"))

    return replace(tables, make=make_with_slot, put=put)


def _read_slot(postgres: LogicalPostgres) -> Callable[[str, int], None]:
    def read(entity: str, records: int) -> None:
        changes = (
            f"SELECT data FROM pg_logical_slot_get_binary_changes('alone_{entity}', NULL, NULL, "
            f"'proto_version', '1', 'publication_names', 'alone_{entity}')"
        )
        with postgres.connect() as connection, connection.cursor(binary=True) as cursor:
            found = sum(data[:1] == b"I" for (data,) in cursor.stream(changes))
            connection.execute(f"SELECT pg_drop_replication_slot('alone_{entity}')")
        assert found == records

    return read


# --- a server over one of them --------------------------------------------------------------------------------------
@contextmanager
def _declared(bench: Bench, source: Source, entity: str) -> Iterator[Server]:
    """With the store, an empty entity, and one view over it."""
    store = source.store
    columns, format_ = (store.declared, store.format) if source.relation == "STREAM" else ("", "")
    at_once = str(max(1, source.records // _BATCHES))
    with bench.server(("--file-roots", str(source.folder), "--records-per-trigger", at_once)) as server:
        server.start()
        with server.connect() as client:
            for statement in (*source.before, f"CREATE STORE {store.name} WITH ({store.properties})"):
                client.execute(statement)
            if store.make is not None:
                store.make(entity)
            else:
                made = f" WITH ({store.entity})" if store.entity else ""
                client.execute(f"CREATE ENTITY {entity} IN STORE {store.name}{made}")
            over = f"'store' = '{store.name}', 'topic' = '{entity}'"
            client.execute(f"CREATE {source.relation} records {columns} WITH ({over}{format_})")
            client.execute(
                f"CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n, max({store.n}) AS last FROM records"
            )
            _until(lambda: _state(client) == "RUNNING" and _has_begun(client), "the view is not running")
        yield server


def _backlog(server: Server, source: Source, entity: str) -> dict[str, Any]:
    server.stop()
    for first in range(0, source.records, _AT_ONCE):
        source.store.put(entity, range(first, min(first + _AT_ONCE, source.records)))
    began = time.monotonic()
    source.alone(entity, source.records)
    alone = source.records / (time.monotonic() - began)
    server.start()
    points: list[tuple[float, int]] = []
    with server.connect() as client:
        client.execute("SET mv.read_while_filling = on")

        def all_there() -> bool:
            points.append((time.monotonic(), int(_row(client, "SELECT coalesce(max(n), 0) FROM counted")[0])))
            return points[-1][1] >= source.records

        _until(all_there, "the backlog does not end")
    assert points[-1][1] == source.records, (points[-1], source.records)
    rate = rate_after_first(points, source.records)
    cpu_s = usage(server.pid).cpu_s
    return {
        "records": source.records,
        "records_per_s": round(rate),
        "alone_per_s": round(alone),
        "share_of_alone": round(rate / alone, 3),
        "cpu_us_a_record": round(cpu_s / source.records * 1e6, 1),
    }


def _ages(server: Server, source: Source, entity: str, warm_up_s: float, seconds: float) -> list[float]:
    """Of the last record of each tenth of a second, in ms, from just before it is handed over."""
    batch = int(RATE * _EVERY_S)
    stamps: dict[int, float] = {}
    late: list[float] = []
    began = time.time()
    ends = began + warm_up_s + seconds

    def send() -> None:
        for number in range(int((warm_up_s + seconds) / _EVERY_S)):
            time.sleep(max(0.0, began + number * _EVERY_S - time.time()))  # the load's own pace
            stamps[(number + 1) * batch - 1] = now = time.time()
            late.append(now - began - number * _EVERY_S)
            source.store.put(entity, range(number * batch, (number + 1) * batch))

    sender = threading.Thread(target=send)
    sender.start()
    seen: dict[int, float] = {}
    with server.connect() as client:
        while time.time() < ends or (sender.is_alive() or max(seen, default=-1) < max(stamps)):
            last = _row(client, "SELECT max(last) FROM counted")[0]
            now = time.time()
            for number in [n for n in list(stamps) if last is not None and n <= last and n not in seen]:
                seen[number] = now
            assert now < ends + _WAIT_S, "records do not become visible"
            time.sleep(_POLL_S)  # the client's own interval
    sender.join()
    assert percentile(late, 0.99) < 1.0, f"the load did not keep its pace: {max(late):.1f} s late"
    return [(seen[n] - stamp) * 1000 for n, stamp in stamps.items() if stamp >= began + warm_up_s]


def _until(done: Callable[[], bool], problem: str) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(problem)
        time.sleep(0.05)  # asking more often would take the cores from what is measured


def _row(client: Client, text: LiteralString) -> tuple[Any, ...]:
    found = client.execute(text).fetchone()
    assert found is not None
    return found


def _has_begun(client: Client) -> bool:
    """Else what comes while the server is stopped is among the rows that a table has when its view begins."""
    positions = [json.loads(row[0] or "{}") for row in client.execute("SELECT position FROM mv_catalog.pipelines")]
    return bool(positions) and not any("start" in position for position in positions)


def _state(client: Client) -> str:
    return next(str(row[5]) for row in client.execute("LIST QUERIES"))
