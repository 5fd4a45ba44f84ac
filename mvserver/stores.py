"""The server's stores: from a catalog record to its client, its readers and its sinks, by the record's kind.

The kinds are given, by default those of ``spark_sinks.kinds``: this module knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from catalog.dependencies import DESCRIPTORS, REGISTRY_OF_STORE
from catalog.model import Relation, Store
from mvserver import sqlstates
from mvserver.client_cache import ClientCache
from mvserver.compiler.changelogs import CHANGELOG
from mvserver.compiler.plans import ContinuousPlan
from mvserver.errors import SqlError
from mvserver.record_keys import field_of_key
from mvserver.routing.properties import text_of
from mvserver.sql.statements.base import Value
from mvserver.streaming.spark.types import decode_column, spark_schema
from mvserver.table_shapes import table_shape
from spark_sinks.base import KeptPosition, RefusedRecords, SourceReader, StoreClient, TableSink, TransactionalSink
from spark_sinks.decode import format_of
from spark_sinks.decode.csv_format import COMMA
from spark_sinks.decode.primitive_format import is_made_plain
from spark_sinks.encode.deleting_sink import DeletingSink
from spark_sinks.encode.encoded_sink import EncodedSink
from spark_sinks.encode.identified_sink import IdentifiedSink
from spark_sinks.encode.refusing_sink import RefusingSink
from spark_sinks.encode.written import Encode
from spark_sinks.kinds import KINDS
from spark_sinks.schema_registry.book import SchemaBook
from spark_sinks.store_kind import Source, StoreKind, StoreSettings, TableTarget, Target, require_extra
from spark_sinks.table_options import TableOptions
from spark_sinks.table_writes import RetriedTable


class SchemaBooks(Protocol):
    def book(self, store: Store) -> SchemaBook | None:
        """A new one over the registry that the store names; None where it names none."""

    def registering(
        self, store: Store, sink: Relation, open_sink: Callable[[], TransactionalSink]
    ) -> Callable[[], TransactionalSink]:
        """The sink with schemas of a registry before its records, if the relation's formats have them."""

    def described(self, sink: Relation, part: str) -> Encode | None:
        """How keys or values are written by a descriptor; ``part`` is the property that names it."""

    def has_identity(self, sink: Relation, name: str) -> bool:
        """Whether values have a place for an identity of this name: not where a descriptor has none."""


class _NoBooks:
    def book(self, store: Store) -> None:
        return None

    def registering(
        self, store: Store, sink: Relation, open_sink: Callable[[], TransactionalSink]
    ) -> Callable[[], TransactionalSink]:
        return open_sink

    def described(self, sink: Relation, part: str) -> None:
        return None

    def has_identity(self, sink: Relation, name: str) -> bool:
        return True


NO_BOOKS = _NoBooks()


class StoreRegistry:
    """Implements the routing room's ``StoreClients`` and the engine's ``Stores``."""

    def __init__(
        self,
        settings: StoreSettings,
        kinds: Sequence[StoreKind[Any]] = KINDS,
        *,
        schemas: SchemaBooks = NO_BOOKS,
    ) -> None:
        self._settings = settings
        self._schemas = schemas
        self._kinds = {kind.name: kind for kind in kinds}
        self._clients: ClientCache[StoreClient] = ClientCache()

    def kinds(self) -> Sequence[StoreKind[Any]]:
        return tuple(self._kinds.values())

    def kind(self, name: str) -> StoreKind[Any]:
        found = self._kinds.get(name)
        if found is None:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"stores of type {name} are not supported",
                hint=f"Types are {', '.join(self._kinds)}.",
            )
        return found

    def check_properties(self, kind: str, properties: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
        known = self.kind(kind)
        require_extra(known)
        known.options(self._own(kind, properties), self._settings)
        return tuple((key, text_of(value)) for key, value in properties.items() if key != "type")

    def client(self, store: Store) -> StoreClient:
        kind = self.kind(store.type)
        require_extra(kind)
        return self._clients.get(
            store.id, store.updated_at, lambda: kind.client(store.name, self._options(store), self._settings)
        )

    def check(self, store: Store) -> None:
        kind = self.kind(store.type)
        require_extra(kind)
        with closing(kind.client(store.name, self._options(store), self._settings)) as client:
            client.check()

    def forget(self, store_id: str) -> None:
        self._clients.forget(store_id)

    def reader(self, store: Store, stream: Relation, plan: ContinuousPlan, work: Path) -> SourceReader:
        format_ = plan.scan.value_format
        schema = spark_schema(plan.scan.value_columns) if format_of(format_).typed_by_spark else None
        is_changelog = stream.kind == CHANGELOG
        book = self._schemas.book(store)
        entity, options = stream.entity or "", self._options(store)
        reading = dict(plan.scan.reading)
        source = Source(store.name, options, entity, work, schema, format_, is_changelog, book, reading)
        return self._reader(store, source)

    def held_reader(self, store: Store, entity: str, work: Path) -> SourceReader:
        source = Source(store.name, self._options(store), entity, work, None)
        return self._reader(store, source)

    def _reader(self, store: Store, source: Source[Any]) -> SourceReader:
        reader = self.kind(store.type).reader
        if reader is None:
            raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"nothing is read of a store of type {store.type}")
        return reader(source, self._settings)

    def sink(
        self, store: Store, stream: Relation, query_id: str, kept: KeptPosition, refused: RefusedRecords | None = None
    ) -> Callable[[], TransactionalSink]:
        target = self._target(store, stream, query_id, kept)
        letters = None if refused is None else refused.letters
        registered = self._schemas.registering(store, stream, self._open_sink(store, replace(target, letters=letters)))
        value, key = (self._schemas.described(stream, part) for part in DESCRIPTORS)
        make = format_of(target.format).encoder
        if value is None and make is not None:
            value = make(target.columns, stream.property("value.delimiter") or COMMA)
        if key is None:
            key = _key_encoder(stream)
        encoded = registered if value is None and key is None else lambda: EncodedSink(registered(), value, key)
        kind = self.kind(store.type)
        identity, deletion = kind.written_identity, kind.deletion_field
        identified = encoded
        if identity is not None and self._schemas.has_identity(stream, identity):
            identified = lambda: IdentifiedSink(encoded(), query_id, identity)  # noqa: E731
        if refused is not None and kind.written_headers:  # else its sinks know of no refusals
            return lambda: RefusingSink(identified(), keyed=stream.kind == CHANGELOG)
        if deletion is None or stream.kind != CHANGELOG:
            return identified
        return lambda: DeletingSink(identified(), deletion)

    def plain_sink(
        self, store: Store, stream: Relation, query_id: str, kept: KeptPosition
    ) -> Callable[[], TransactionalSink]:
        """Of records that are written as they are given."""
        return self._open_sink(store, self._target(store, stream, query_id, kept))

    def _open_sink(self, store: Store, target: Target[Any]) -> Callable[[], TransactionalSink]:
        open_sink = self.kind(store.type).sink
        if open_sink is None:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"a stream in a store of type {store.type} cannot be written to by a query",
                hint=f"Use a store of type {' or '.join(k.name for k in self.kinds() if k.sink is not None)}.",
            )
        return partial(open_sink, target, self._settings)

    def forget_output(self, store: Store, stream: Relation, query_id: str, kept: KeptPosition) -> Callable[[], None]:
        """What takes away that which a query has left beside its records, once it is dropped."""
        forget = self.kind(store.type).forget
        target = self._target(store, stream, query_id, kept)
        return (lambda: None) if forget is None else lambda: forget(target, self._settings)

    def _target(self, store: Store, stream: Relation, query_id: str, kept: KeptPosition) -> Target[Any]:
        elsewhere = {*stream.columns_of("value.columns.exclude"), *stream.columns_of("partition.columns")}
        of_value = tuple(decode_column(c.name, c.type, c.not_null) for c in stream.columns if c.name not in elsewhere)
        format_ = stream.property("value.format") or "json"
        return Target(store.name, self._options(store), stream.entity or "", query_id, kept, format_, of_value)

    def table_entity(self, store: Store, properties: Mapping[str, str], relation: str) -> str:
        tables = self.kind(store.type).tables
        if tables is None:
            raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"a store of type {store.type} has no tables to write to")
        return tables.entity(self._options(store), properties, relation)

    def table_sink(self, store: Store, table: Relation, query_id: str) -> Callable[[Callable[[], bool]], TableSink]:
        kind = self.kind(store.type)
        require_extra(kind)
        tables, properties = kind.tables, dict(table.properties)
        if tables is None:
            raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"a store of type {store.type} has no tables to write to")
        options = TableOptions.of(properties)
        target = TableTarget(
            store.name,
            self._options(store),
            table.entity or "",
            query_id,
            table_shape(table.columns, table.key_columns),
            options,
            {key: value for key, value in properties.items() if key in tables.properties},
        )
        open_sink = partial(tables.sink, target, self._settings)
        return lambda stopped: RetriedTable(open_sink, options, stopped)

    def close(self) -> None:
        self._clients.close()

    def _options(self, store: Store) -> Any:
        return self.kind(store.type).options(self._own(store.type, dict(store.properties)), self._settings)

    def _own(self, kind: str, properties: Mapping[str, Value]) -> dict[str, Value]:
        """Without the name of a schema registry, which is the server's matter and not the kind's."""
        shared = {REGISTRY_OF_STORE} if self.kind(kind).takes_schema_registry else set()
        return {key: value for key, value in properties.items() if key not in shared}


def _key_encoder(stream: Relation) -> Encode | None:
    """Of keys that queries make as objects of JSON and that are written otherwise."""
    names = stream.key_columns or stream.columns_of("key.columns")
    make = format_of(stream.property("key.format") or "json").encoder
    if not names or make is None:
        return None
    known = {column.name: column for column in stream.columns}
    columns = [decode_column(field_of_key(name), known[name].type, not_null=True) for name in names]
    if stream.property("key.format") == "primitive" and is_made_plain(columns[0].type):
        return None
    return make(columns, COMMA)
