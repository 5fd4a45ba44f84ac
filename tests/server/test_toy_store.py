"""A kind of stores that this file alone knows: lists in memory, read in rounds. Adding a kind touches nothing else."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from mvserver import config, sqlstates
from mvserver.errors import SqlError
from mvserver.pgwire.server import PgWireServer
from mvserver.server import Rooms
from spark_sinks.base import Entity, Position, RecordOrder
from spark_sinks.duckdb.changes.log_reader import LogHealth, LogPositions
from spark_sinks.kinds import KINDS
from spark_sinks.store_kind import Source, StoreKind, StoreSettings
from tests.services import class_archives

LISTS: dict[str, list[bytes]] = {}
ANSWERS: dict[str, threading.Event] = {}  # of lists that say nothing until this is set
ASKED: set[str] = set()  # those of them that were asked for a batch
NOON = dt.datetime(2024, 5, 17, 12, tzinfo=dt.UTC)
RAW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("position", pa.string()),
        ("record_time", pa.timestamp("us", "UTC")),
        ("metadata", pa.struct([("number", pa.int64())])),
    ]
)
FOUND_WITHIN_S = 60.0


# --- the kind -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ToyOptions:
    prefix: str  # of the names of its lists

    @classmethod
    def of(cls, properties: Mapping[str, Any], settings: StoreSettings) -> ToyOptions:
        for key in properties:
            if key not in ("type", "prefix"):
                raise SqlError(
                    sqlstates.INVALID_PARAMETER_VALUE, f'property "{key}" is not known for a store of type TOY'
                )
        return cls(str(properties.get("prefix", "")))


@dataclass(frozen=True)
class ToyClient:
    store: str
    options: ToyOptions
    settings: StoreSettings

    def check(self) -> None: ...

    def close(self) -> None: ...

    def entity_exists(self, name: str) -> bool:
        return self.options.prefix + name in LISTS

    def describe_entity(self, name: str) -> Entity:
        return Entity(name, (("records", str(len(LISTS[self.options.prefix + name]))),))

    def position(self, name: str, starting: str) -> Position:
        return {"seq": 0 if starting == "earliest" else len(LISTS[self.options.prefix + name])}


class ToyReader:
    positions = LogPositions()  # of numbered records
    record_order = RecordOrder("'0'", "cast(position as bigint)")
    logged = held = schemas = live = None
    opened = closed = 0

    def __init__(self, source: Source[ToyOptions], settings: StoreSettings) -> None:
        self._name = source.options.prefix + source.entity
        self._list = LISTS[self._name]
        self.health = LogHealth(lambda: (0, len(self._list)), lambda: True)
        self.rounds = self
        ToyReader.opened += 1

    def adopt(self, position: Position, *, fresh: bool) -> Position:
        return position

    def wait(self, timeout_s: float) -> None:
        time.sleep(0.02)

    def next_batch(self, start: Position, records: int) -> Position:
        if self._name in ANSWERS:
            ASKED.add(self._name)
            assert ANSWERS[self._name].wait(300)
        self._end = self.positions.limit(start, {"seq": len(self._list)}, records)
        return self._end

    def bounded(self, start: Position, end: Position, records: int) -> Position:
        return self.positions.limit(start, end, records)

    def batch_end(self, checkpoint: str, batch_id: int, start: Position) -> Position:
        return self._end

    def batch(self, spark: Any, start: Position, end: Position) -> Any:
        rows = [
            {"value": self._list[n], "position": str(n), "record_time": NOON, "metadata": {"number": n}}
            for n in range(start["seq"], end["seq"])
        ]
        return spark.createDataFrame(pa.Table.from_pylist(rows, RAW))

    def confirm(self, position: Position) -> None: ...

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        return [position for position, _ in records]

    def give_up(self) -> None: ...

    def close(self) -> None:
        ToyReader.closed += 1


TOY = StoreKind(
    name="TOY",
    options=ToyOptions.of,
    client=ToyClient,  # what nobody calls here is not written
    reader=ToyReader,
    formats=("json",),
    metadata="STRUCT<number BIGINT>",
    entity_hint="An entity of such a store is a list.",
    creates_entities=False,
    takes_copies=False,
)


# --- a server that has it ---------------------------------------------------------------------------------------------
@contextmanager
def serving(rooms: Rooms) -> Iterator[int]:
    """The port at which the rooms are served meanwhile."""
    listening, loop, stop = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    ports: list[int] = []

    async def serve() -> None:
        wire = PgWireServer(rooms.backend, "127.0.0.1", 0)
        await wire.start()
        ports.append(wire.port)
        listening.set()
        await stop.wait()
        await wire.shutdown(0.0)

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert listening.wait(30)
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("toy")
    given = {"data_dir": str(folder / "data"), "spark_driver_memory": "1GB"}
    settings = config.load({**given, "spark_class_archives": class_archives.prepared()}, {})
    with Rooms(settings, (*KINDS, TOY)) as rooms, serving(rooms) as port:
        rooms.start_engine()
        yield port
        rooms.engine.stop()


@pytest.fixture
def connection(port: int) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", autocommit=True) as made:
        yield made


def add(name: str, *records: dict[str, Any]) -> None:
    LISTS.setdefault(name, []).extend(json.dumps(record).encode() for record in records)


@pytest.mark.spark
def test_a_view_over_a_store_of_a_new_kind(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    add("toy.clicks", *({"url": f"./page{n % 3}"} for n in range(9)))
    connection.execute("CREATE STORE t WITH ('type' = toy, 'prefix' = 'toy.')")
    connection.execute("CREATE STREAM clicks (url VARCHAR) WITH ('store' = t, 'value.format' = json)")
    connection.execute("CREATE MATERIALIZED VIEW visits AS SELECT url, count(*) AS n FROM clicks GROUP BY url")
    rows = "SELECT url, n FROM visits ORDER BY url"
    assert connection.execute(rows).fetchall() == [("./page0", 3), ("./page1", 3), ("./page2", 3)]
    add("toy.clicks", {"url": "./page1"}, {"url": "./page3"})
    wanted = [("./page0", 3), ("./page1", 4), ("./page2", 3), ("./page3", 1)]
    deadline = time.monotonic() + FOUND_WITHIN_S
    while (found := connection.execute(rows).fetchall()) != wanted:
        assert time.monotonic() < deadline, found
    described = connection.execute("DESCRIBE STORE t").fetchone()
    assert described is not None
    assert "TOY" in described
    entity = connection.execute("DESCRIBE ENTITY clicks IN STORE t").fetchone()
    assert entity is not None
    assert entity[2] == {"records": "11"}
    connection.execute("DROP MATERIALIZED VIEW visits")
    assert (ToyReader.opened, ToyReader.closed) == (1, 1)


def wait_for_rows(connection: psycopg.Connection[Any], query: Any, wanted: list[tuple[Any, ...]]) -> None:
    deadline = time.monotonic() + FOUND_WITHIN_S
    while (found := connection.execute(query).fetchall()) != wanted:
        assert time.monotonic() < deadline, found


def state_of(connection: psycopg.Connection[Any], view: str) -> tuple[str, str, str | None]:
    """The query's id, its state and why."""
    rows = connection.execute("SELECT id, state, error FROM mv_catalog.queries WHERE sink LIKE %s", (f"%{view}",))
    (found,) = rows.fetchall()
    return found


@pytest.mark.spark
def test_a_store_that_says_nothing_is_changed_and_holds_up_nobody(connection: psycopg.Connection[Any]) -> None:
    """What reads by its former properties hangs meanwhile. Its view then goes on by the new ones, where it stood."""
    numbers = [{"n": number} for number in range(10)]
    add("old.numbers", *numbers[:5])
    add("new.numbers", *numbers)  # the same list, as it is found at the other place
    add("other.numbers", *numbers[:3])
    for name in ("old", "other"):
        connection.execute(f"CREATE STORE {name} WITH ('type' = toy, 'prefix' = '{name}.')")
        connection.execute(
            f"CREATE STREAM {name}_numbers (n BIGINT) "
            f"WITH ('store' = {name}, 'topic' = 'numbers', 'value.format' = json)"
        )
    counted = "SELECT count(*), sum(n)::bigint FROM {}_numbers"
    connection.execute(f"CREATE MATERIALIZED VIEW old_sum AS {counted.format('old')}")
    wait_for_rows(connection, "SELECT * FROM old_sum", [(5, 10)])
    ANSWERS["old.numbers"] = answers = threading.Event()
    add("old.numbers", {"n": 5})
    try:
        began = time.monotonic()
        while "old.numbers" not in ASKED:
            assert time.monotonic() - began < FOUND_WITHIN_S
            time.sleep(0.01)
        began = time.monotonic()
        connection.execute("UPDATE STORE old WITH ('prefix' = 'new.')")
        connection.execute(f"CREATE MATERIALIZED VIEW other_sum AS {counted.format('other')}")
        wait_for_rows(connection, "SELECT * FROM other_sum", [(3, 3)])
        assert time.monotonic() - began < FOUND_WITHIN_S
        query_id, state, error = state_of(connection, "old_sum")
        assert (state, error) == (
            "STALLED",
            "a store was changed, and what reads or writes by its former properties has not ended yet",
        )
        for statement in (f"RESTART QUERY {query_id}", "REFRESH MATERIALIZED VIEW old_sum"):
            with pytest.raises(psycopg.errors.ObjectInUse, match="is about to begin again"):
                connection.execute(statement)  # type: ignore[arg-type]
        assert connection.execute("SELECT * FROM old_sum").fetchall() == [(5, 10)]
        connection.execute("DROP MATERIALIZED VIEW other_sum")
    finally:
        answers.set()
    wait_for_rows(connection, "SELECT * FROM old_sum", [(10, 45)])
    add("new.numbers", {"n": 100})
    wait_for_rows(connection, "SELECT * FROM old_sum", [(11, 145)])
    assert state_of(connection, "old_sum")[1:] == ("RUNNING", None)
    connection.execute("DROP MATERIALIZED VIEW old_sum")


@pytest.mark.spark
def test_a_view_is_dropped_whose_changed_store_says_nothing(connection: psycopg.Connection[Any]) -> None:
    """Of two that read it, one goes at once; the other one goes on behind the change."""
    add("mute.numbers", {"n": 1})
    add("loud.numbers", {"n": 1}, {"n": 2})
    connection.execute("CREATE STORE mute WITH ('type' = toy, 'prefix' = 'mute.')")
    connection.execute(
        "CREATE STREAM mute_numbers (n BIGINT) WITH ('store' = mute, 'topic' = 'numbers', 'value.format' = json)"
    )
    for view in ("gone", "kept"):
        connection.execute(f"CREATE MATERIALIZED VIEW {view} AS SELECT sum(n)::bigint AS n FROM mute_numbers")  # type: ignore[arg-type]
    wait_for_rows(connection, "SELECT gone.n, kept.n FROM gone, kept", [(1, 1)])
    ANSWERS["mute.numbers"] = answers = threading.Event()
    try:
        connection.execute("UPDATE STORE mute WITH ('prefix' = 'loud.')")
        connection.execute("DROP MATERIALIZED VIEW gone")
    finally:
        answers.set()
    wait_for_rows(connection, "SELECT n FROM kept", [(3,)])
    connection.execute("DROP MATERIALIZED VIEW kept")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("CREATE STORE u WITH ('type' = toy, 'colour' = 'red')", "22023",
         'property "colour" is not known for a store of type TOY'),
        ("CREATE STREAM s (a INT) WITH ('store' = t2, 'value.format' = csv)", "0A000",
         'value.format "csv" is not supported in a store of type TOY'),
        ("CREATE STREAM s (a INT) WITH ('store' = t2, 'topic' = 'l', 'value.format' = json, 'topic.partitions' = 1)",
         "0A000", 'property "topic.partitions" is not supported for a store of type TOY'),
        ("CREATE STREAM s (a INT) WITH ('store' = t2, 'topic' = 'nowhere', 'value.format' = json)", "42704",
         'entity "nowhere" does not exist in store "t2"'),
        ("CREATE CHANGELOG s (a INT, PRIMARY KEY (a)) WITH ('store' = t2, 'topic' = 'l', 'value.format' = json, "
         "'key.format' = json)", "0A000", 'property "key.format" is not supported'),
        ("CREATE STREAM s WITH ('store' = t2) AS SELECT * FROM l", "0A000",
         "writing a query's result to a store of type TOY is not supported"),
        ("COPY l FROM STDIN", "0A000", "COPY to a stream in a store of type TOY is not supported"),
        ("UPDATE STORE t2 WITH ('type' = file)", "0A000", 'property "type" of a store cannot be changed'),
    ],
)  # fmt: skip
def test_what_the_kind_cannot_do_is_refused(
    connection: psycopg.Connection[Any], statement: str, sqlstate: str, message: str
) -> None:
    add("l", {"a": 1})
    connection.execute("CREATE STORE IF NOT EXISTS t2 WITH ('type' = toy)")
    connection.execute(
        "CREATE STREAM IF NOT EXISTS l (a INT) WITH ('store' = t2, 'topic' = 'l', 'value.format' = json)"
    )
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(statement)
    assert (refused.value.sqlstate, refused.value.diag.message_primary) == (sqlstate, message)
