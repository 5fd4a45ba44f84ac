"""An ICEBERG store without Spark: the tables of its catalog as entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchNamespaceError, TableAlreadyExistsError
from pyiceberg.table import Table

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Entity, EntityRecord, TableShape
from spark_sinks.iceberg.catalog import load_table, open_catalog, reported
from spark_sinks.iceberg.columns import check_columns, schema_of, type_words
from spark_sinks.iceberg.limits import ICEBERG_METADATA_VERSIONS_MAX
from spark_sinks.iceberg.options import IcebergOptions
from spark_sinks.iceberg.sink import POSITION
from spark_sinks.table_options import FILE_BYTES
from spark_sinks.table_rows import object_of, row_of
from spark_sinks.written_tables import WrittenTables, printed


class IcebergClient(WrittenTables):
    """A :class:`spark_sinks.base.StoreClient` and :class:`spark_sinks.base.TableClient`. Keeps nothing open."""

    kind = "ICEBERG"

    def __init__(self, store: str, options: IcebergOptions, *, timeout_s: float) -> None:
        self._store = store
        self._options = options
        self._timeout_s = timeout_s

    def check(self) -> None:
        with self._opened() as catalog:
            catalog.list_namespaces()

    def list_entities(self) -> Sequence[Entity]:
        with self._opened() as catalog:
            names = [name for space in _namespaces(catalog) for name in catalog.list_tables(space)]
            return [Entity(".".join(name)) for name in sorted(set(names))]

    def describe_entity(self, name: str) -> Entity:
        with self._opened() as catalog:
            table = load_table(catalog, self._options, self._store, name)
            snapshot = table.current_snapshot()
            totals = {} if snapshot is None or snapshot.summary is None else snapshot.summary
            key = [f.name for f in table.schema().fields if f.field_id in table.schema().identifier_field_ids]
            details = [
                ("location", table.location()),
                ("format version", str(table.format_version)),
                ("rows", str(totals.get("total-records") or 0)),
                ("files", str(totals.get("total-data-files") or 0)),
                ("bytes", str(totals.get("total-files-size") or 0)),
                ("snapshots", str(len(table.metadata.snapshots))),
                ("key", ", ".join(key)),
            ]
            columns = [(f"column {column}", words) for column, words in type_words(table)]
            writers = [
                (f"query {known.removeprefix(f'{POSITION}.')}", position)
                for known, position in sorted(table.properties.items())
                if known.startswith(f"{POSITION}.")
            ]
            return Entity(name, (*details, *columns, *writers))

    def entity_exists(self, name: str) -> bool:
        with self._opened() as catalog:
            return "." in name and bool(catalog.table_exists(name))

    def drop_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        """With its files."""
        with self._opened() as catalog:
            load_table(catalog, self._options, self._store, name)
            catalog.purge_table(name)

    def print_entity(
        self, name: str, *, from_beginning: bool, limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        """The rows as they are now, in either case: a table has no order in which they came."""
        with self._opened() as catalog:
            table = load_table(catalog, self._options, self._store, name)
            batches = table.scan(limit=limit).to_arrow_batch_reader()
        return self._printed(batches, limit, stopped)

    def _printed(
        self, batches: Iterable[Any], limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        with reported(self._store):
            yield from printed(batches, limit, stopped)

    def insert_record(self, name: str, value: str | None, key: str | None, properties: Mapping[str, Any]) -> None:
        """A row, as a snapshot of its own."""
        given = object_of(name, value, key, properties)
        with self._opened() as catalog:
            table = load_table(catalog, self._options, self._store, name)
            table.append(row_of(name, given, table.schema().as_arrow()))

    # --- what queries write to --------------------------------------------------------------------------------------
    def check_table(self, name: str, shape: TableShape, properties: Mapping[str, str]) -> bool:
        _namespace_of(name)
        with self._opened() as catalog:
            try:
                table = load_table(catalog, self._options, self._store, name)
            except SqlError as error:
                if error.sqlstate != sqlstates.UNDEFINED_OBJECT:
                    raise
                schema_of(shape)
                return False
            check_columns(table, shape, name)
            return True

    def create_table(self, name: str, shape: TableShape, properties: Mapping[str, str]) -> None:
        namespace = _namespace_of(name)
        with self._opened() as catalog:
            with suppress(NamespaceAlreadyExistsError):
                catalog.create_namespace(namespace)
            try:
                made = catalog.create_table(name, schema=schema_of(shape), properties=_properties(properties))
            except TableAlreadyExistsError as error:
                raise SqlError(
                    sqlstates.DUPLICATE_OBJECT, f'entity "{name}" already exists in store "{self._store}"'
                ) from error
            self._check_place(catalog, made, name)

    def _check_place(self, catalog: Catalog, made: Table, name: str) -> None:
        try:
            self._options.check_location(made.location())
        except SqlError:
            catalog.drop_table(name)
            raise

    def close(self) -> None:
        """Nothing is open between calls."""

    @contextmanager
    def _opened(self) -> Iterator[Catalog]:
        with reported(self._store):
            catalog = open_catalog(self._options, self._timeout_s)
            try:
                yield catalog
            finally:
                catalog.close()


def _namespace_of(name: str) -> str:
    """22023 for what names no table."""
    namespace, _, table = name.rpartition(".")
    if not namespace or not table:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'"{name}" is not namespace.table')
    return namespace


def _properties(given: Mapping[str, str]) -> dict[str, str]:
    return {
        "write.target-file-size-bytes": str(FILE_BYTES.of(given)),
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": str(ICEBERG_METADATA_VERSIONS_MAX),
    }


def _namespaces(catalog: Catalog, parent: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for found in catalog.list_namespaces(parent):
        if len(found) <= len(parent) or found[: len(parent)] != parent:  # a service may not know of parents
            continue
        yield found
        try:
            yield from _namespaces(catalog, found)
        except NoSuchNamespaceError:  # dropped meanwhile
            continue
