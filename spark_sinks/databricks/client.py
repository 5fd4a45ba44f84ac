"""A DATABRICKS store without Spark: the tables of Unity Catalog as entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyarrow.fs import FileSelector, FileType, SubTreeFileSystem

from mvserver.errors import SqlError
from spark_sinks.base import Entity, EntityRecord, TableShape
from spark_sinks.databricks import conditional_puts
from spark_sinks.databricks.columns import check_columns, registered_columns, schema_of, type_words
from spark_sinks.databricks.delta import DELTA, EXTERNAL, Storage, path_of, registered, written_location
from spark_sinks.databricks.features import check_features
from spark_sinks.databricks.options import check_name
from spark_sinks.databricks.unity import UnityCatalog
from spark_sinks.open_folders import LOCAL_SCHEMES
from spark_sinks.table_rows import object_of, row_of
from spark_sinks.written_tables import WrittenTables, printed

PLACE = "table.data.file.location"
_LOG = "_delta_log"
_MADE = "mvserver.made"  # a table's property: its files go with it


class DatabricksClient(WrittenTables):
    """A :class:`spark_sinks.base.StoreClient` and :class:`spark_sinks.base.TableClient`."""

    kind = "DATABRICKS"

    def __init__(self, store: str, catalog: UnityCatalog, storage: Storage) -> None:
        self._store = store
        self._catalog = catalog
        self._storage = storage

    def check(self) -> None:
        self._catalog.check()
        location = self._storage.options.location
        if location is not None:
            self._check_puts(location)

    def list_entities(self) -> Sequence[Entity]:
        return [Entity(name) for name in sorted(table.name for table in self._catalog.tables())]

    def describe_entity(self, name: str) -> Entity:
        found = registered(self._catalog, self._store, name)
        details = [("type", found.type), ("format", found.format), ("location", found.location or "")]
        if found.type != EXTERNAL or found.format != DELTA or found.location is None:
            return Entity(name, tuple(details))
        table = self._storage.table(found.location)
        with self._storage.reported():
            numbers = [("version", str(table.version())), ("rows", str(table.count()))]
            files = [("files", str(len(table.file_uris())))]
        return Entity(name, (*details, *numbers, *files, *((f"column {c}", words) for c, words in type_words(table))))

    def entity_exists(self, name: str) -> bool:
        return name.count(".") == 2 and self._catalog.table(name) is not None

    def drop_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        """An external table's files stay, as they do there, but for a table that the server has made."""
        location = written_location(registered(self._catalog, self._store, name))
        is_made = self._is_made(location)
        self._catalog.deregister(name)
        if is_made:
            self._remove_files(location)

    def _is_made(self, location: str) -> bool:
        self._storage.options.check_location(location)
        return self._storage.is_table(location) and _MADE in self._storage.table(location).metadata().configuration

    def _remove_files(self, location: str) -> None:
        """The log last: what is left by a failure is still a table, and can be dropped again."""
        with self._storage.reported():
            files, folder = self._storage.files(location)
            for found in files.get_file_info(FileSelector(folder)):
                if found.type == FileType.File:
                    files.delete_file(found.path)
                elif found.base_name != _LOG:
                    files.delete_dir(found.path)
            files.delete_dir(folder)

    def print_entity(
        self, name: str, *, from_beginning: bool, limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        """The rows as they are now, in either case: a table has no order in which they came."""
        location = written_location(registered(self._catalog, self._store, name))
        table = self._storage.table(location)
        with self._storage.reported():
            files = SubTreeFileSystem(*reversed(self._storage.files(location)))
            batches = table.to_pyarrow_dataset(filesystem=files).to_batches(batch_size=1000)
        return self._printed(batches, limit, stopped)

    def _printed(
        self, batches: Iterable[Any], limit: int | None, stopped: Callable[[], bool]
    ) -> Iterator[EntityRecord]:
        with self._storage.reported():
            yield from printed(batches, limit, stopped)

    def insert_record(self, name: str, value: str | None, key: str | None, properties: Mapping[str, Any]) -> None:
        """A row, as a commit of its own."""
        given = object_of(name, value, key, properties)
        table = self._storage.table(written_location(registered(self._catalog, self._store, name)))
        with self._storage.reported():
            check_features(table, is_keyed=False, entity=name)
            write_deltalake(table, row_of(name, given, pa.schema(table.schema())), mode="append")

    # --- what queries write to --------------------------------------------------------------------------------------
    def check_table(self, name: str, shape: TableShape, properties: Mapping[str, str]) -> bool:
        check_name(name)
        found = self._catalog.table(name)
        if found is not None:
            self._check_columns(self._storage.table(written_location(found)), shape, name)
            return True
        schema_of(shape)
        location = self._location(name, properties)
        if self._storage.is_table(location):  # it has only to be registered
            self._check_columns(self._storage.table(location), shape, name)
        return False

    def create_table(self, name: str, shape: TableShape, properties: Mapping[str, str]) -> None:
        location = self._location(name, properties)
        self._check_puts(location)
        is_there = self._storage.is_table(location)
        table = self._storage.table(location) if is_there else self._made(location, shape)
        try:
            self._catalog.register(name, location, registered_columns(table.schema()))
        except SqlError:
            if not is_there:
                self._remove_files(location)
            raise

    def _location(self, name: str, properties: Mapping[str, str]) -> str:
        return self._storage.options.table_location(properties.get(PLACE), name)

    def _made(self, location: str, shape: TableShape) -> DeltaTable:
        with self._storage.reported():
            return DeltaTable.create(
                path_of(location),
                schema=schema_of(shape),
                mode="error",
                configuration={_MADE: "true"},
                storage_options=self._storage.client_options(location),
                commit_properties=CommitProperties(max_commit_retries=0),
                raise_if_key_not_exists=False,
            )

    def _check_columns(self, table: DeltaTable, shape: TableShape, name: str) -> None:
        with self._storage.reported():
            check_columns(table, shape, name)
            check_features(table, is_keyed=bool(shape.key), entity=name)

    def _check_puts(self, location: str) -> None:
        if urlsplit(location).scheme not in LOCAL_SCHEMES:
            client = conditional_puts.client_of(self._storage.options.s3, self._storage.timeout_s)
            conditional_puts.check(self._store, location, client)

    def close(self) -> None:
        self._catalog.close()
