"""The server's schema registries: from a catalog record to its client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from catalog.dependencies import DESCRIPTORS, REGISTRY_OF_STORE
from catalog.model import Relation, SchemaRegistry, Store
from catalog.store import Catalog
from mvserver import sqlstates
from mvserver.client_cache import ClientCache
from mvserver.described_schemas import described, has_field
from mvserver.errors import SqlError
from mvserver.record_keys import field_of_key
from mvserver.routing.properties import text_of
from mvserver.routing.registered_columns import subject_of
from mvserver.sql.statements.base import Value
from mvserver.streaming.spark.types import decode_column
from spark_sinks.base import TransactionalSink
from spark_sinks.decode import format_of
from spark_sinks.encode.described import described_encoder
from spark_sinks.encode.encoded_sink import EncodedSink
from spark_sinks.encode.registered_form import RegisteredForm
from spark_sinks.encode.written import Encode, FullName, WrittenForm
from spark_sinks.schema_registry.base import RegistryClient
from spark_sinks.schema_registry.book import SchemaBook
from spark_sinks.schema_registry.options import RegistryOptions

OpenSink = Callable[[], TransactionalSink]


class SchemaRegistryClients:
    """Implements the routing room's ``RegistryClients``."""

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        self._catalog = catalog
        self._folder = folder
        self._clients: ClientCache[RegistryClient] = ClientCache()

    def check_properties(self, type_: str, properties: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
        RegistryOptions.from_properties(type_, properties, self._folder)
        return tuple((key, text_of(value)) for key, value in properties.items())

    def client(self, registry: SchemaRegistry) -> RegistryClient:
        def make() -> RegistryClient:
            from spark_sinks.schema_registry.client import ConfluentClient  # a fifth of what the server imports

            options = RegistryOptions.from_properties(registry.type, dict(registry.properties), self._folder)
            return ConfluentClient(registry.name, options)

        return self._clients.get(registry.id, registry.updated_at, make)

    def book(self, store: Store) -> SchemaBook | None:
        name = store.property(REGISTRY_OF_STORE)
        if name is None:
            return None
        return SchemaBook(lambda: self.client(self._catalog.schema_registries.get(name)))

    def check_written(self, store: Store, sink: Relation) -> None:
        registry = self._of(store)
        if registry is None:
            return
        for subject, made in _written_parts(sink):
            client = self.client(registry)
            newest = client.latest(subject)
            form = made(None if newest is None else newest.text)
            if newest is not None and not client.is_compatible(subject, form.kind, form.schema):
                raise SqlError(
                    sqlstates.INVALID_PARAMETER_VALUE,
                    f'the columns do not fit the schemas of subject "{subject}"',
                    detail=f"The schema registry says that they are not compatible with schema {newest.id}.",
                    hint="Change the columns, write to another entity, or change the subject's compatibility.",
                )

    def registering(self, store: Store, sink: Relation, open_sink: OpenSink) -> OpenSink:
        """The sink that writes records with schemas; the given one where the relation's formats have none."""
        registry, parts = self._of(store), dict(_written_parts(sink))
        if registry is None or not parts:
            return open_sink

        def opened() -> TransactionalSink:
            client = self.client(self._catalog.schema_registries.get(registry.name))
            forms = {subject: _registered(client, subject, made) for subject, made in parts.items()}
            value, key = (forms.get(subject_of(sink.entity or "", key=is_key)) for is_key in (False, True))
            inner = open_sink()
            try:
                value_encoder, key_encoder = (None if form is None else form.encoder(client) for form in (value, key))
                return EncodedSink(inner, value_encoder, key_encoder)
            except BaseException:
                inner.close()
                raise

        return opened

    def described(self, sink: Relation, part: str) -> Encode | None:
        """How keys or values are written that a descriptor describes; ``part`` is the property that names it."""
        found = described(sink, part, self._catalog)
        return None if found is None else described_encoder(found)

    def has_identity(self, sink: Relation, name: str) -> bool:
        return has_field(sink, name, self._catalog)

    def _of(self, store: Store) -> SchemaRegistry | None:
        name = store.property(REGISTRY_OF_STORE)
        return None if name is None else self._catalog.schema_registries.get(name)

    def forget(self, registry_id: str) -> None:
        self._clients.forget(registry_id)

    def close(self) -> None:
        self._clients.close()


def _registered(client: RegistryClient, subject: str, made: Callable[[str | None], WrittenForm]) -> RegisteredForm:
    newest = client.latest(subject)
    return RegisteredForm(subject, made(None if newest is None else newest.text))


def _written_parts(sink: Relation) -> Iterator[tuple[str, Callable[[str | None], WrittenForm]]]:
    """The subject of each part of a relation's records that has a schema, and the maker of how it is written."""
    excluded = sink.columns_of("value.columns.exclude")
    columns = [decode_column(c.name, c.type, c.not_null) for c in sink.columns]
    of_value = [column for column in columns if column.name not in excluded]
    key = sink.key_columns or sink.columns_of("key.columns")
    of_key = [replace(column, name=field_of_key(name)) for name in key for column in columns if column.name == name]
    formats = (sink.property("value.format") or "json", sink.property("key.format") if key else None)
    for format_, part, is_key in ((formats[0], of_value, False), (formats[1], of_key, True)):
        make = None if format_ is None else format_of(format_).written
        if make is not None and sink.property(DESCRIPTORS[is_key]) is None:
            yield subject_of(sink.entity or "", key=is_key), partial(make, _record_name(sink, is_key=is_key), part)


def _record_name(sink: Relation, *, is_key: bool) -> str:
    """As its properties say, else after its entity."""
    part = "key" if is_key else "value"
    given, namespace = (sink.property(f"{part}.avro.{what}") for what in ("record", "namespace"))
    if given is None and namespace is None:
        return f"{sink.entity}_{part}"
    return FullName(given or f"{sink.entity}_{part}", namespace)
