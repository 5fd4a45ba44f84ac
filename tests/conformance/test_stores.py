"""What every kind of stores promises, asked of each kind in the same words.

One server has a store of each kind. The tests of this module follow each other: a view and a query that writes are made
of each store, and each test adds records, and does something to the server or to the store. After each, every record
is in the view once, and was written once where that is promised; else each is there, and told by its identity.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from mvserver.demo.kafka_broker import KafkaBroker
from tests.conformance import stores
from tests.conformance.stores import AT_ADDRESSES, BY_NIGHT, KINDS, OF_FILES, WRITTEN, StoreUnderTest, address_of
from tests.faults.live import LiveServer
from tests.services.kinesis import KinesisEmulator
from tests.services.lines import Line
from tests.services.postgres import LogicalPostgres

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.kinesis, pytest.mark.postgres]
EACH_KIND = [*KINDS, *(pytest.param(kind, marks=pytest.mark.night) for kind in BY_NIGHT)]
WITHIN_S = 240.0  # on a machine that many share
OTHERS_WITHIN_S = 30.0  # for statements about all other stores, while one says nothing
SOURCE = "'starting.position' = '{}', 'source.deserialization.error.handling' = 'IGNORE_AND_LOG'"


@dataclass
class World:
    """``once`` is what was done to the server, for all kinds together."""

    server: LiveServer
    stores: dict[str, StoreUnderTest]
    once: set[str] = field(default_factory=set)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    ends: list[Callable[[], None]] = field(default_factory=list)  # of services that were begun late

    def store(self, kind: str) -> StoreUnderTest:
        if kind not in self.stores:  # one of the night's
            self.stores[kind], end = stores.google_objects()
            self.ends.append(end)
            self.server.run(f"CREATE STORE {self.stores[kind].name} WITH ({self.stores[kind].properties})")
        return self.stores[kind]

    @property
    def begun(self) -> list[StoreUnderTest]:
        """Those that have a view and a query."""
        return [store for kind, store in self.stores.items() if f"begin {kind}" in self.once]

    def take(self, count: int) -> list[int]:
        return list(itertools.islice(self.numbers, count))

    def check_view(self, view: str, numbers: Sequence[int]) -> None:
        """Each record is there, once."""
        wanted, deadline = dict.fromkeys(numbers, 1), time.monotonic() + WITHIN_S
        while (found := self._counted(view)) != wanted:
            assert time.monotonic() < deadline, (view, len(found or ()), len(wanted), self.server.states())
            time.sleep(0.2)

    def _counted(self, view: str) -> dict[int, int] | None:
        try:
            return dict(self.server.query(f"SELECT n, records FROM {view}"))
        except psycopg.errors.ObjectNotInPrerequisiteState:  # it is being filled
            return None

    def check(self, kind: str) -> None:
        """The view has each record once, and the query has written each."""
        store = self.store(kind)
        self.check_view(f"{store.name}_view", store.sent)
        sink = self.stores[kind if kind in WRITTEN else "KAFKA"]
        assert sink.read is not None
        deadline = time.monotonic() + WITHIN_S
        while True:
            found = sink.read(f"{store.name}_out")
            if {number for number, _ in found} == set(store.sent):
                break
            assert time.monotonic() < deadline, (len(found), len(store.sent), self.server.states())
            time.sleep(0.2)
        written = [number for number, _ in found]
        if not store.exactly_once and sink.kind == kind:
            written = [number for number, _ in set(found)]  # as readers do who leave out what they have
        assert sorted(written) == sorted(store.sent)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with stores.folder() as folder:
        broker, emulator, postgres = KafkaBroker(folder / "kafka"), KinesisEmulator(), _postgres(folder)
        server = LiveServer(folder / "data")
        in_s3, end_s3 = stores.objects()
        ends: list[Callable[[], None]] = []
        try:
            made = [
                stores.files(folder / "files"),
                in_s3,
                stores.topics(broker.start()),
                stores.streams(emulator.start()),
                stores.tables(postgres),
            ]
            server.start(**_environment(server))
            world = World(server, {store.kind: store for store in made}, ends=ends)
            for store in made:
                server.run(f"CREATE STORE {store.name} WITH ({store.properties})")
            yield world
        finally:
            server.close()
            broker.stop()
            emulator.stop()
            postgres.stop("immediate")
            end_s3()
            for end in ends:
                end()


def _postgres(folder: Path) -> LogicalPostgres:
    folder.chmod(0o755)  # it runs as another user when the tests run as root
    (folder / "postgres").mkdir(mode=0o755)
    return LogicalPostgres(folder / "postgres")


def make_entity(world: World, store: StoreUnderTest, entity: str) -> None:
    if store.make is not None:
        store.make(entity)
    else:
        properties = f" WITH ({store.entity})" if store.entity else ""
        world.server.run(f"CREATE ENTITY {entity} IN STORE {store.name}{properties}")


def declare(world: World, store: StoreUnderTest, entity: str) -> None:
    world.server.run(
        f"CREATE STREAM {entity} {store.declared} WITH ('store' = '{store.name}', 'topic' = '{entity}'{store.format})"
    )


@pytest.mark.parametrize("kind", EACH_KIND)
def test_entities_come_and_go(world: World, kind: str) -> None:
    store, server = world.store(kind), world.server
    entity = f"{store.name}_short"
    in_store = f"{entity} IN STORE {store.name}"
    make_entity(world, store, entity)
    listed = [row[0].removeprefix("public.") for row in server.query(f"LIST ENTITIES IN STORE {store.name}")]
    assert entity in listed
    described = server.query(f"DESCRIBE ENTITY {in_store}")[0]
    assert described[0].removeprefix("public.") == entity
    if kind in WRITTEN:
        server.run(f"INSERT INTO ENTITY {in_store} VALUE ('{{\"n\": 7}}')")
        printed = server.query(f"PRINT ENTITY {in_store} WITH ('from_beginning') LIMIT 1")
        assert printed[0][1] == '{"n": 7}'
        files = " WITH ('delete.files' = TRUE)" if kind in OF_FILES else ""
        server.run(f"DROP ENTITY {in_store}{files}")
        assert entity not in [row[0] for row in server.query(f"LIST ENTITIES IN STORE {store.name}")]
    else:
        store.put(entity, [7])
        printed = server.query(f"PRINT ENTITY {in_store} WITH ('from_beginning') LIMIT 1")
        assert '"n":7' in printed[0][1].replace(" ", "")
        for statement in (f"INSERT INTO ENTITY {in_store} VALUE ('x')", f"DROP ENTITY {in_store}"):
            with pytest.raises(psycopg.errors.FeatureNotSupported):
                server.run(statement)
    with pytest.raises(psycopg.errors.UndefinedObject):
        server.run(f"DESCRIBE ENTITY nowhere IN STORE {store.name}")


def begin(world: World, *kinds: str) -> None:
    """The view and the query of each kind, once: by whichever test comes first, since not all may be asked for."""
    for kind in kinds:
        if f"begin {kind}" not in world.once:
            world.once.add(f"begin {kind}")
            read_from_earliest_and_from_latest(world, kind)


@pytest.mark.parametrize("kind", EACH_KIND)
def test_read_from_earliest_and_from_latest(world: World, kind: str) -> None:
    """And out: the query that writes begins with the earliest record, too."""
    begin(world, kind)


def read_from_earliest_and_from_latest(world: World, kind: str) -> None:
    store, server, entity = world.store(kind), world.server, world.store(kind).name + "_in"
    make_entity(world, store, entity)
    store.send(entity, before := world.take(50))
    declare(world, store, entity)
    for view, start in ((f"{store.name}_view", "earliest"), (f"{store.name}_later", "latest")):
        server.run(
            f"CREATE MATERIALIZED VIEW {view} AS SELECT {store.n} AS n, count(*) AS records "
            f"FROM {entity} WITH ({SOURCE.format(start)}) GROUP BY {store.n}"
        )
    sink = world.stores[kind if kind in WRITTEN else "KAFKA"]
    properties = f", {sink.entity}" if sink.entity and sink is not store else ""
    server.run(
        f"CREATE STREAM {store.name}_out "
        f"WITH ('store' = '{sink.name}', 'value.format' = 'json'{properties}{sink.keyed}) AS "
        f"SELECT {store.n} AS n FROM {entity} WITH ({SOURCE.format('earliest')})"
    )
    world.check(kind)  # a snapshot of a table waits for the transactions that are under way
    world.check_view(f"{store.name}_later", [])
    store.send(entity, after := world.take(50))
    world.check(kind)
    world.check_view(f"{store.name}_later", after)
    assert store.sent == before + after
    server.run(f"DROP MATERIALIZED VIEW {store.name}_later")


def restart(world: World) -> None:
    _send_to_all(world, 100)
    assert world.server.stop() == 0
    _send_to_all(world, 100)
    world.server.start(**_environment(world.server))


def kill(world: World) -> None:
    """``kill -9`` while records come in."""
    stopped = threading.Event()

    def produce() -> None:
        while not stopped.is_set():
            _send_to_all(world, 20)
            stopped.wait(0.05)

    producer = threading.Thread(target=produce)
    producer.start()
    try:
        world.server.wait_for(lambda: _running(world), WITHIN_S, "the queries do not run")
        seen = _records(world)
        world.server.wait_for(lambda: _records(world) > seen, WITHIN_S, "nothing comes in")
        world.server.kill()
        world.server.start(**_environment(world.server))
    finally:
        stopped.set()
        producer.join()


def _environment(server: LiveServer) -> dict[str, str]:
    return {"MVSERVER_FILE_ROOTS": str(server.data.parent / "files"), "MVSERVER_SPARK_START_TIMEOUT": "10min"}


def _running(world: World) -> bool:
    return all(state == "RUNNING" for state, _ in world.server.states().values())


def _records(world: World) -> int:
    counts = ", ".join(f"(SELECT count(*) FROM {store.name}_view)" for store in world.begun)
    return sum(world.server.query(f"SELECT {counts}")[0])


def _send_to_all(world: World, count: int) -> None:
    for store in world.begun:
        store.send(f"{store.name}_in", world.take(count))


ACTIONS = {"restart": restart, "kill": kill}


@pytest.mark.parametrize("kind", EACH_KIND)
@pytest.mark.parametrize("action", [pytest.param("restart", marks=pytest.mark.night), "kill"])
def test_the_server_ends_and_begins_again(world: World, action: str, kind: str) -> None:
    begin(world, *KINDS, kind)
    if action not in world.once:  # for all kinds together
        world.once.add(action)
        ACTIONS[action](world)
    world.check(kind)


@pytest.mark.night
@pytest.mark.parametrize("kind", EACH_KIND)
def test_many_kills(world: World, kind: str) -> None:
    begin(world, *KINDS, kind)
    if "kills" not in world.once:
        world.once.add("kills")
        for _ in range(10):
            kill(world)
    world.check(kind)


@pytest.mark.parametrize("kind", EACH_KIND)
@pytest.mark.parametrize(
    "seconds", [1, pytest.param(10, marks=pytest.mark.night), pytest.param(60, marks=pytest.mark.night)]
)
def test_the_store_goes_away_and_comes_back(world: World, kind: str, seconds: int) -> None:
    """Statements about the others go on meanwhile."""
    begin(world, kind)
    store, server = world.store(kind), world.server
    store.send(f"{store.name}_in", world.take(100))
    with store.away():
        began = time.monotonic()
        until = began + seconds
        for other in world.stores.values():
            if other is not store:
                server.query(f"LIST ENTITIES IN STORE {other.name}")
        assert server.query(f"SELECT count(*) FROM {store.name}_view")[0][0] > 0
        assert time.monotonic() - began < OTHERS_WITHIN_S
        time.sleep(max(0.0, until - time.monotonic()))  # the fault's own length
    store.send(f"{store.name}_in", world.take(100))
    world.check(kind)


@pytest.mark.parametrize(
    "kind", ["S3", "KAFKA", *(pytest.param(kind, marks=pytest.mark.night) for kind in ("FILE", "KINESIS"))]
)
def test_what_is_dropped_while_its_store_is_away_holds_up_nobody(world: World, kind: str) -> None:
    """Neither who drops it, nor statements about queries over others."""
    store, other, server = world.store(kind), world.store("KAFKA" if kind == "FILE" else "FILE"), world.server
    begin(world, kind, other.kind)
    server.run(
        f"CREATE STREAM {store.name}_gone WITH ('store' = '{store.name}', 'value.format' = 'json'{store.keyed}) AS "
        f"SELECT {store.n} AS n FROM {store.name}_in WITH ({SOURCE.format('earliest')})"
    )
    store.send(f"{store.name}_in", world.take(1000))  # it is amid these
    with store.away():
        began = time.monotonic()
        dropping = threading.Thread(target=lambda: server.run(f"DROP STREAM {store.name}_gone CASCADE"))
        dropping.start()
        server.run(
            f"CREATE MATERIALIZED VIEW {store.name}_meanwhile AS "
            f"SELECT {other.n} AS n, count(*) AS records FROM {other.name}_in WITH ({SOURCE.format('earliest')}) "
            f"GROUP BY {other.n}",
        )
        world.check_view(f"{store.name}_meanwhile", other.sent)
        server.run(f"DROP MATERIALIZED VIEW {store.name}_meanwhile")
        dropping.join()
        assert time.monotonic() - began < OTHERS_WITHIN_S
    world.check(kind)
    files = " WITH ('delete.files' = TRUE)" if kind in OF_FILES else ""
    server.wait_for(
        lambda: _dropped(server, f"{store.name}_gone IN STORE {store.name}{files}"), WITHIN_S, "it writes on"
    )


@pytest.mark.parametrize(
    "kind", [AT_ADDRESSES[0], *(pytest.param(k, marks=pytest.mark.night) for k in AT_ADDRESSES[1:])]
)
def test_a_store_is_changed_whose_former_address_says_nothing(world: World, kind: str) -> None:
    """Neither other stores nor their queries wait for what still reads by that address. The view goes on by the new
    one, exactly where it stood."""
    store, other, server = world.store(kind), world.store("FILE"), world.server
    begin(world, kind, other.kind)
    moved = f"{store.name}_moved"
    key, value, port = address_of(store.properties)
    with Line(port) as line:
        through = store.properties.replace(value, value.replace(f":{port}", f":{line.port}"))
        server.run(f"CREATE STORE {moved} WITH ({through})")
        server.run(
            f"CREATE STREAM {moved} {store.declared} "
            f"WITH ('store' = '{moved}', 'topic' = '{store.name}_in'{store.format})"
        )
        server.run(
            f"CREATE MATERIALIZED VIEW {moved}_view AS SELECT {store.n} AS n, count(*) AS records "
            f"FROM {moved} WITH ({SOURCE.format('earliest')}) GROUP BY {store.n}"
        )
        world.check_view(f"{moved}_view", store.sent)
        line.silence()
        store.send(f"{store.name}_in", world.take(100))  # it asks for these, and hears nothing
        began = time.monotonic()
        server.run(f"UPDATE STORE {moved} WITH ('{key}' = '{value}')")
        server.run(
            f"CREATE MATERIALIZED VIEW {moved}_meanwhile AS SELECT {other.n} AS n, count(*) AS records "
            f"FROM {other.name}_in WITH ({SOURCE.format('earliest')}) GROUP BY {other.n}"
        )
        world.check_view(f"{moved}_meanwhile", other.sent)
        assert time.monotonic() - began < OTHERS_WITHIN_S
        world.check_view(f"{moved}_view", store.sent)
    server.run(f"DROP MATERIALIZED VIEW {moved}_view")
    server.run(f"DROP MATERIALIZED VIEW {moved}_meanwhile")
    server.run(f"DROP STREAM {moved}")
    server.run(f"DROP STORE {moved}")


def _dropped(server: LiveServer, entity: str) -> bool:
    try:
        server.run(f"DROP ENTITY {entity}")
    except psycopg.errors.ObjectInUse:  # what was dropped has not ended yet
        return False
    return True


@pytest.mark.parametrize("kind", EACH_KIND)
def test_a_record_that_cannot_be_decoded_is_told(world: World, kind: str) -> None:
    begin(world, kind)
    store, server = world.store(kind), world.server
    entity = f"{store.name}_in"
    store.bad(entity)
    store.send(entity, world.take(10))
    world.check(kind)
    rejected = f"SELECT count(*) FROM mv_catalog.rejected_rows WHERE relation LIKE '%{store.name}_in'"
    server.wait_for(lambda: server.query(rejected)[0][0] >= 1, WITHIN_S, "the record is not told of")


@pytest.mark.parametrize("kind", EACH_KIND[::-1])  # the store of topics has what was written of tables
def test_nothing_is_left_of_what_is_dropped(world: World, kind: str) -> None:
    begin(world, kind)
    store, server = world.store(kind), world.server
    server.run(
        f"DROP STREAM {store.name}_out CASCADE",
        f"DROP MATERIALIZED VIEW {store.name}_view",
        f"DROP STREAM {store.name}_in",
    )
    if kind in WRITTEN:
        files = " WITH ('delete.files' = TRUE)" if kind in OF_FILES else ""
        for entity in (f"{store.name}_in", f"{store.name}_out"):
            server.run(f"DROP ENTITY {entity} IN STORE {store.name}{files}")
    server.run(f"DROP STORE {store.name}")
    assert store.name not in [row[0] for row in server.query("LIST STORES")]
    assert not [name for name in server.states() if name.startswith(store.name)]
