"""An engine and stores in memory behind the routing room's ports, and a server without sockets around a router."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from catalog.model import Relation, SchemaRegistry, Store
from catalog.store import Catalog
from mvserver import sqlstates
from mvserver.compiler.compile import compile_select
from mvserver.compiler.plans import ContinuousPlan
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.java_functions.jars import JarFolder
from mvserver.routing.ports import Services
from mvserver.routing.router import Router
from mvserver.serving.api import PullScope
from mvserver.session.context import SessionContext
from mvserver.sql import parse_one
from mvserver.sql.statements.base import Value
from mvserver.streaming.api import QueryState, QueryStatus
from spark_sinks.base import Entity, EntityRecord, Position, TableShape
from spark_sinks.kinds import KINDS
from spark_sinks.schema_registry.base import RegisteredSchema
from spark_sinks.schema_registry.options import RegistryOptions
from spark_sinks.store_kind import StoreKind, Tables
from spark_sinks.table_options import COMMIT_INTERVAL
from tests.fake_pulls import FakePulls


class FakeEngine:
    """Remembers what it was asked; ``fails`` maps a method's name to the error it raises."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails: dict[str, Exception] = {}
        self.known: dict[str, QueryStatus] = {}

    def planned_lane(self, plan: ContinuousPlan) -> Sequence[str]:
        return ()

    def _call(self, name: str, *arguments: Any) -> None:
        self.calls.append((name, *arguments))
        if name in self.fails:
            raise self.fails[name]

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]

    def reconcile(self) -> None:
        self._call("reconcile")

    def status(self, query_id: str) -> QueryStatus:
        return self.known.get(query_id, QueryStatus(query_id, QueryState.STARTING))

    def statuses(self) -> Sequence[QueryStatus]:
        return tuple(self.known.values())

    def restart(self, query_id: str, *, skip_rejected: bool = False) -> None:
        self._call("restart", query_id, skip_rejected)

    def refresh(self, query_id: str) -> None:
        self._call("refresh", query_id)

    def resolve_position(self, store: Store, entity: str, starting: str) -> str:
        self._call("resolve_position", store.name, entity, starting)
        return json.dumps({"entity": entity, "starting": starting})

    def wait_until_ready(self, timeout_s: float) -> None:
        self._call("wait_until_ready")

    def wait_while_filling(self, view_ids: Sequence[str], timeout_s: float) -> None:
        self._call("wait_while_filling", tuple(view_ids))

    def check_plan(self, plan: object) -> None:
        self._call("check_plan")

    def check_reading(self, store: Store, relation: object, scan: object) -> None:
        return


@dataclass
class MemoryClient:
    """One store: entities by name, each with its details and records."""

    store: str
    kind: str
    entities: dict[str, dict[str, str]] = field(default_factory=dict)
    records: dict[str, list[EntityRecord]] = field(default_factory=dict)
    made: dict[str, dict[str, Any]] = field(default_factory=dict)  # with which properties
    fails: dict[str, Exception] = field(default_factory=dict)
    closed: bool = False

    def _may_fail(self, method: str) -> None:
        if method in self.fails:
            raise self.fails[method]

    def check(self) -> None:
        self._may_fail("check")

    def list_entities(self) -> Sequence[Entity]:
        return [Entity(name, tuple(details.items())) for name, details in sorted(self.entities.items())]

    def describe_entity(self, name: str) -> Entity:
        if name not in self.entities:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'entity "{name}" does not exist in store "{self.store}"')
        return Entity(name, tuple(self.entities[name].items()))

    def entity_exists(self, name: str) -> bool:
        return name in self.entities

    def check_create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        self._may_fail("check_create_entity")
        if name in self.entities:
            raise SqlError(sqlstates.DUPLICATE_OBJECT, f'entity "{name}" already exists in store "{self.store}"')

    def create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        self._may_fail("create_entity")
        self.check_create_entity(name, properties)
        self.entities[name] = {}
        self.made[name] = dict(properties)
        if self.kind == "KAFKA":
            self.entities[name] = {
                "partitions": str(properties.get("topic.partitions", 1)),
                "replicas": str(properties.get("topic.replicas", 1)),
            }

    def drop_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        self._may_fail("drop_entity")
        self.describe_entity(name)
        del self.entities[name]

    def print_entity(
        self, name: str, *, from_beginning: bool, limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        self.describe_entity(name)
        records = self.records.get(name, []) if from_beginning else []
        return iter(records[:limit])

    def insert_record(self, name: str, value: str | None, key: str | None, properties: Mapping[str, Any]) -> None:
        self.describe_entity(name)
        rows = self.records.setdefault(name, [])
        rows.append(EntityRecord(_bytes(key), _bytes(value), f"0:{len(rows)}", 1_000))

    def check_table(self, name: str, shape: TableShape, properties: Mapping[str, str]) -> bool:
        self._may_fail("check_table")
        if name in self.entities and self.entities[name] != _columns(shape):
            raise SqlError(sqlstates.DATATYPE_MISMATCH, f'entity "{name}" has other columns')
        return name in self.entities

    def create_table(self, name: str, shape: TableShape, properties: Mapping[str, str]) -> None:
        self._may_fail("create_table")
        self.entities[name] = _columns(shape)
        self.made[name] = {"key": shape.key, **properties}

    def position(self, name: str, starting: str) -> Position:
        return {"starting": starting}

    def close(self) -> None:
        self.closed = True


def _columns(shape: TableShape) -> dict[str, str]:
    return {field.name: f"{field.type}{'' if field.nullable else ' NOT NULL'}" for field in shape.schema}


def _nothing(*_: Any) -> Any:
    raise AssertionError("nobody calls it")


WAREHOUSE = StoreKind(
    name="WAREHOUSE",
    options=_nothing,
    client=_nothing,
    tables=Tables(
        client=lambda client: cast(Any, client),
        sink=_nothing,
        entity=lambda options, own, name: own.get("table.name", name),
        properties=("table.name",),
        aliases={"buffer.millis": COMMIT_INTERVAL.name},
    ),
    creates_entities=False,
)
"""Of stores whose tables queries write to."""


class MemoryStores:
    """The kinds of stores that there are, and one with tables. A store's content is kept by its 'uris', as if it lay on
    another machine."""

    def __init__(self) -> None:
        self.places: dict[str, MemoryClient] = {}
        self.opened: set[str] = set()
        self.fails: dict[str, Exception] = {}

    def place(self, kind: str, uris: str) -> MemoryClient:
        return self.places.setdefault(uris, MemoryClient(uris, kind, fails=self.fails))

    def kinds(self) -> Sequence[StoreKind[Any]]:
        read = [replace(kind, metadata="STRUCT<place VARCHAR>") for kind in KINDS if kind.reader is not None]
        return [*read, *(kind for kind in KINDS if kind.reader is None), WAREHOUSE]

    def kind(self, name: str) -> StoreKind[Any]:
        return next(kind for kind in self.kinds() if kind.name == name)

    def check_properties(self, kind: str, properties: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
        for key in properties:
            if key not in ("uris", "access.region", "availability_zone", "kafka.sasl.password", "schema_registry.name"):
                raise SqlError(
                    sqlstates.INVALID_PARAMETER_VALUE, f'property "{key}" is not known for a store of type {kind}'
                )
        if "uris" not in properties:
            raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'a store of type {kind} needs the property "uris"')
        return tuple((key, str(value)) for key, value in properties.items())

    def table_entity(self, store: Store, properties: Mapping[str, str], relation: str) -> str:
        tables = self.kind(store.type).tables
        assert tables is not None
        return tables.entity(None, properties, relation)

    def check(self, store: Store) -> None:
        self.place(store.type, store.property("uris") or "").check()

    def client(self, store: Store) -> MemoryClient:
        self.opened.add(store.id)
        client = self.place(store.type, store.property("uris") or "")
        client.store = store.name
        return client

    def forget(self, store_id: str) -> None:
        self.opened.discard(store_id)


@dataclass
class MemoryRegistries:
    """Schema registries in memory, by their 'uris'; ``fails`` maps a method's name to the error it raises."""

    fails: dict[str, Exception] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)

    def check_properties(self, type_: str, properties: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
        given = RegistryOptions.from_properties(type_, properties, Path("."))
        assert given.uris
        return tuple((key, str(value)) for key, value in properties.items())

    def client(self, registry: SchemaRegistry) -> MemoryRegistry:
        self.opened.add(registry.id)
        return MemoryRegistry(self.fails)

    def forget(self, registry_id: str) -> None:
        self.opened.discard(registry_id)

    def check_written(self, store: Store, sink: Relation) -> None:
        pass


@dataclass
class MemoryRegistry:
    fails: dict[str, Exception]

    def check(self) -> None:
        if "check" in self.fails:
            raise self.fails["check"]

    def schema(self, id_: int) -> RegisteredSchema | None:
        return None

    def latest(self, subject: str) -> RegisteredSchema | None:
        return None

    def is_compatible(self, subject: str, kind: str, text: str) -> bool:
        return True

    def register(self, subject: str, kind: str, text: str) -> int:
        return 1

    def close(self) -> None:
        pass


def explain_plan(plan: ContinuousPlan) -> Sequence[str]:
    return [type(plan).__name__, f"  Scan {plan.scan.relation}"]


class Bench:
    """A router over a fresh catalog. ``run`` gives rows as dictionaries and keeps the statement's notices."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.catalog = Catalog.open(folder / "catalog.sqlite")
        self.engine = FakeEngine()
        self.stores = MemoryStores()
        self.registries = MemoryRegistries()
        self.config_folder = folder / "store-config"
        self.config_folder.mkdir(exist_ok=True)
        self.services = Services(
            catalog=self.catalog,
            engine=self.engine,
            stores=self.stores,
            schema_registries=self.registries,
            compile_select=compile_select,
            explain_plan=explain_plan,
            pulls=FakePulls(),
            store_config_dir=self.config_folder,
            jars=JarFolder(self.config_folder.parent / "function-sources"),
        )
        self.router = Router(self.services)
        self.context = SessionContext("postgres", "postgres")
        self.context.scope = lambda: PullScope(
            self.context.database,
            self.context.search_path,
            self.context.role,
            reads_streams=self.context.settings.get("mv.stream_reads") == "bounded",
        )
        self.notices: list[str] = []

    def result(self, text: str) -> Result:
        self.context.notices.clear()
        try:
            return self.router.execute(parse_one(text), self.context)
        finally:
            self.notices = [notice.message for notice in self.context.notices]

    def run(self, *texts: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for text in texts:
            rows = rows_of(self.result(text))
        return rows

    def error(self, text: str) -> SqlError:
        try:
            self.run(text)
        except SqlError as error:
            return error
        raise AssertionError(f"accepted: {text}")

    def dump(self) -> list[str]:
        """Everything that the catalog's file and the stores hold."""
        import sqlite3

        connection = sqlite3.connect(f"file:{self.catalog.path}?mode=ro", uri=True)
        try:
            lines = [line for line in connection.iterdump() if "user_version" not in line]
        finally:
            connection.close()
        return [*lines, *(f"{uris}: {sorted(place.entities.items())}" for uris, place in self.stores.places.items())]

    def kafka(self) -> MemoryClient:
        return self.stores.place("KAFKA", "k:9092")

    def close(self) -> None:
        self.catalog.close()


def rows_of(result: Result) -> list[dict[str, Any]]:
    try:
        if result.fields is None:
            assert list(result.batches) == []
            return []
        rows: list[dict[str, Any]] = []
        for batch in result.batches:
            assert batch.schema.names == [f.name for f in result.fields]
            rows += batch.to_pylist()
        return rows
    finally:
        result.close()


SETUP = (
    "CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'k:9092')",
    "CREATE STORE f WITH ('type' = FILE, 'uris' = 'clicks')",
    "CREATE STREAM clicks (event_time BIGINT, device_id VARCHAR, url VARCHAR, ip VARCHAR, userid VARCHAR) "
    "WITH ('store' = k, 'topic' = 'clicks', 'value.format' = 'json', 'timestamp' = 'event_time', "
    "'topic.partitions' = 4, 'topic.replicas' = 1)",
    "CREATE STREAM file_clicks (event_time BIGINT, url VARCHAR) WITH ('store' = f, 'value.format' = 'json')",
)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
