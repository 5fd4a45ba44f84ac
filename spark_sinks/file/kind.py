"""The kind FILE: directories of immutable files under a folder that the server's configuration opens to stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mvserver import config_values as read
from mvserver.config_values import Row
from spark_sinks.file.metadata import METADATA_TYPE
from spark_sinks.file.options import FileOptions
from spark_sinks.store_kind import Source, StoreKind, StoreSettings, Target

if TYPE_CHECKING:
    from spark_sinks.base import SourceReader, StoreClient, TransactionalSink

_ROOTS = Row(
    "file_roots", read.PATHS, "{data_dir}/files",
    "Folders under which what stores have on this machine may lie, separated as in PATH; a list in TOML.",
    after="finished_rows_memory",
)  # fmt: skip
_POLL_INTERVAL = Row(
    "file_poll_interval", read.POSITIVE_DURATION, "50ms", "How often a directory is looked at for new files.",
    after="batch_timeout",
)  # fmt: skip


def _options(properties: Mapping[str, Any], settings: StoreSettings) -> FileOptions:
    return FileOptions.from_properties(properties, settings.values[_ROOTS.name])


def _client(store: str, options: FileOptions, settings: StoreSettings) -> StoreClient:
    from spark_sinks.file.client import FileClient

    return FileClient(store, options)


def _reader(source: Source[FileOptions], settings: StoreSettings) -> SourceReader:
    from spark_sinks.file.source import FileReader

    return FileReader(
        source.options.directory / source.entity,
        source.work,
        source.schema,
        root=source.options.root,
        files_max=source.options.files_max,
        poll_s=settings.values[_POLL_INTERVAL.name],
        record_bytes_max=settings.record_bytes_max,
    )


def _sink(target: Target[FileOptions], settings: StoreSettings) -> TransactionalSink:
    from spark_sinks.file.sink import FileSink

    directory = target.options.directory / target.entity
    sink = FileSink(target.store, directory, target.options.root, target.query_id)
    sink.open()
    return sink


FILE = StoreKind(
    name="FILE",
    options=_options,
    client=_client,
    reader=_reader,
    sink=_sink,
    written_formats=("json",),
    exactly_once=True,
    formats=("json", "csv", "parquet"),
    metadata=METADATA_TYPE,
    entity_hint="An entity of such a store is a directory; it has no partitions, replicas or topic settings.",
    settings=(_ROOTS, _POLL_INTERVAL),
)
