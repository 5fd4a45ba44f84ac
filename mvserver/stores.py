"""The kinds of stores that the server has: from a catalog record to its client, its readers and its sinks.

A new kind is a folder in ``spark_sinks`` and a row in ``_KINDS``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from catalog.model import Relation, Store
from mvserver import sqlstates
from mvserver.compiler.plans import ContinuousPlan
from mvserver.errors import SqlError
from mvserver.limits import FILE_RECORD_BYTES_MAX
from mvserver.sql.statements.base import Value
from mvserver.streaming.csas import TransactionalSink
from mvserver.streaming.spark_types import spark_schema
from spark_sinks.base import SourceReader, StoreClient
from spark_sinks.decode import supported_formats
from spark_sinks.file.client import FileClient
from spark_sinks.file.options import FileOptions
from spark_sinks.file.source import METADATA_TYPE as FILE_METADATA
from spark_sinks.file.source import FileReader
from spark_sinks.kafka.client import KafkaClient
from spark_sinks.kafka.options import KafkaOptions
from spark_sinks.kafka.sink import TransactionalSink as KafkaSink
from spark_sinks.kafka.source import METADATA_TYPE as KAFKA_METADATA
from spark_sinks.kafka.source import KafkaReader


@dataclass(frozen=True)
class StoreSettings:
    file_roots: tuple[Path, ...]
    certificate_folders: tuple[Path, ...]
    jar_directory: Path | None
    kafka_timeout_s: float
    file_poll_s: float = 0.05
    record_bytes_max: int = FILE_RECORD_BYTES_MAX


class StoreRegistry:
    """Implements the routing room's ``StoreClients`` and the engine's ``Stores``."""

    def __init__(self, settings: StoreSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._clients: dict[str, tuple[float, StoreClient]] = {}

    def kinds(self) -> Sequence[str]:
        return ("FILE", "KAFKA")

    def formats(self, kind: str) -> Sequence[str]:
        return supported_formats() if kind == "FILE" else ("json", "csv")

    def metadata(self, kind: str) -> str:
        return FILE_METADATA if kind == "FILE" else KAFKA_METADATA

    def check_properties(self, kind: str, properties: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
        if kind == "FILE":
            self._file_options(properties)
        elif kind == "KAFKA":
            self._kafka_options(properties)
        else:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"stores of type {kind} are not supported",
                hint=f"Types are {', '.join(self.kinds())}.",
            )
        return tuple((key, _text(value)) for key, value in properties.items() if key != "type")

    def client(self, store: Store) -> StoreClient:
        with self._lock:
            known = self._clients.get(store.id)
            if known is not None and known[0] == store.updated_at:
                return known[1]
        client: StoreClient
        if store.type == "FILE":
            client = FileClient(store.name, self._file_options(dict(store.properties)))
        else:
            options = self._kafka_options(dict(store.properties))
            client = KafkaClient(store.name, options, timeout_s=self._settings.kafka_timeout_s)
        with self._lock:
            old = self._clients.get(store.id)
            self._clients[store.id] = (store.updated_at, client)
        if old is not None:
            old[1].close()
        return client

    def forget(self, store_id: str) -> None:
        with self._lock:
            known = self._clients.pop(store_id, None)
        if known is not None:
            known[1].close()

    def reader(self, store: Store, stream: Relation, plan: ContinuousPlan, work: Path) -> SourceReader:
        entity = stream.entity or ""
        if store.type == "FILE":
            options = self._file_options(dict(store.properties))
            parquet = None
            if plan.scan.value_format == "parquet":
                parquet = spark_schema(plan.scan.columns)
            return FileReader(
                options.directory / entity,
                work,
                parquet,
                root=options.root,
                poll_s=self._settings.file_poll_s,
                record_bytes_max=self._settings.record_bytes_max,
            )
        return KafkaReader(
            store.name,
            self._kafka_options(dict(store.properties)),
            entity,
            jar_directory=self._settings.jar_directory,
            timeout_s=self._settings.kafka_timeout_s,
            record_bytes_max=self._settings.record_bytes_max,
        )

    def sink(self, store: Store, stream: Relation, query_id: str) -> Callable[[], TransactionalSink]:
        if store.type != "KAFKA":
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"a stream in a store of type {store.type} cannot be written to by a query",
                hint="Use a store of type KAFKA.",
            )
        options = self._kafka_options(dict(store.properties))

        def open_sink() -> TransactionalSink:
            sink = KafkaSink(
                store.name, options, stream.entity or "", query_id, timeout_s=self._settings.kafka_timeout_s
            )
            sink.open()
            return sink

        return open_sink

    def close(self) -> None:
        with self._lock:
            clients = [client for _, client in self._clients.values()]
            self._clients.clear()
        for client in clients:
            client.close()

    def _file_options(self, properties: Mapping[str, Value] | Mapping[str, str]) -> FileOptions:
        return FileOptions.from_properties(properties, self._settings.file_roots)

    def _kafka_options(self, properties: Mapping[str, Value] | Mapping[str, str]) -> KafkaOptions:
        return KafkaOptions.from_properties(properties, certificate_folders=self._settings.certificate_folders)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
