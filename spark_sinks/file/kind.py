"""The kind FILE: directories of immutable files, under a folder that is open to stores, or in a cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mvserver import config_values as read
from mvserver.config_values import Row
from spark_sinks.file.metadata import METADATA_TYPE
from spark_sinks.file.objects.options import AZURE, GOOGLE, SECRET_KEYS, ObjectOptions, object_options, service_of
from spark_sinks.file.options import FileOptions
from spark_sinks.store_kind import Source, StoreKind, StoreSettings, Target

if TYPE_CHECKING:
    from spark_sinks.base import SourceReader, StoreClient, TransactionalSink
    from spark_sinks.file.entity_files import EntityFiles
    from spark_sinks.file.objects.base import ObjectStore
    from spark_sinks.file.objects.sink import ObjectSink
    from spark_sinks.file.sink import FileSink

_ROOTS = Row(
    "file_roots", read.PATHS, "{data_dir}/files",
    "Folders under which what stores have on this machine may lie, separated as in PATH; a list in TOML.",
    after="finished_rows_memory",
)  # fmt: skip
_POLL_INTERVAL = Row(
    "file_poll_interval", read.POSITIVE_DURATION, "50ms", "How often a directory is looked at for new files.",
    after="batch_timeout",
)  # fmt: skip
_OBJECT_POLL_INTERVAL = Row(
    "object_poll_interval", read.POSITIVE_DURATION, "1s",
    "How often the objects of an entity in S3, Azure or Google's storage are listed.", after="file_poll_interval",
)  # fmt: skip
_REQUEST_TIMEOUT = Row(
    "object_request_timeout", read.POSITIVE_DURATION, "10s",
    "When S3, Azure or Google's storage counts as not answering a store of type FILE.", after="object_poll_interval",
)  # fmt: skip
_BYTES_MAX = Row(
    "object_bytes_max", read.SIZE, "4GB",
    "How large an object of a store of type FILE may be. A batch's objects are brought to this machine.",
    after="object_request_timeout",
)  # fmt: skip


Place = FileOptions | ObjectOptions


def _options(properties: Mapping[str, Any], settings: StoreSettings) -> Place:
    service = service_of(properties.get("uris"))
    if service is None:
        return FileOptions.from_properties(properties, settings.values[_ROOTS.name])
    return object_options(service, properties)


def _objects(store: str, options: ObjectOptions, settings: StoreSettings) -> ObjectStore:
    timeout_s = float(settings.values[_REQUEST_TIMEOUT.name])
    if options.service is AZURE:
        from spark_sinks.file.objects.azure import AzureObjects

        return AzureObjects(store, options, timeout_s)
    if options.service is GOOGLE:
        from spark_sinks.file.objects.google import GoogleObjects

        return GoogleObjects(store, options, timeout_s)
    from spark_sinks.file.objects.s3 import S3Objects

    return S3Objects(store, options, timeout_s)


def _client(store: str, options: Place, settings: StoreSettings) -> StoreClient:
    if isinstance(options, ObjectOptions):
        from spark_sinks.file.objects.client import ObjectClient

        objects = _objects(store, options, settings)
        return ObjectClient(store, options, objects, settings.values[_BYTES_MAX.name])
    from spark_sinks.file.client import FileClient

    return FileClient(store, options)


def _reader(source: Source[Place], settings: StoreSettings) -> SourceReader:
    from spark_sinks.file.entity_files import DirectoryFiles
    from spark_sinks.file.source import FileReader

    options, poll = source.options, _POLL_INTERVAL
    files: EntityFiles
    if isinstance(options, ObjectOptions):
        from spark_sinks.file.objects.files import ObjectFiles

        prefix, place = options.below(source.entity)
        objects = _objects(source.store, options, settings)
        files = ObjectFiles(objects, prefix, place, settings.values[_BYTES_MAX.name])
        poll = _OBJECT_POLL_INTERVAL
    else:
        files = DirectoryFiles(options.directory / source.entity, options.root)
    return FileReader(
        files,
        source.work,
        source.schema,
        files_max=options.files_max,
        poll_s=settings.values[poll.name],
        record_bytes_max=settings.record_bytes_max,
        format=source.format,
    )


def _unopened(target: Target[Place], settings: StoreSettings) -> FileSink | ObjectSink:
    from spark_sinks.file.forms import form_of

    options, form = target.options, form_of(target.format, target.columns)
    if isinstance(options, ObjectOptions):
        from spark_sinks.file.objects.sink import ObjectSink

        prefix, place = options.below(target.entity)
        objects = _objects(target.store, options, settings)
        return ObjectSink(target.store, objects, prefix, place, target.query_id, form)
    from spark_sinks.file.sink import FileSink

    return FileSink(target.store, options.directory / target.entity, options.root, target.query_id, form)


def _sink(target: Target[Place], settings: StoreSettings) -> TransactionalSink:
    sink = _unopened(target, settings)
    try:
        sink.open()
    except BaseException:
        sink.close()
        raise
    return sink


def _forget(target: Target[Place], settings: StoreSettings) -> None:
    sink = _unopened(target, settings)
    try:
        sink.forget()
    finally:
        sink.close()


FILE = StoreKind(
    name="FILE",
    options=_options,
    client=_client,
    reader=_reader,
    sink=_sink,
    forget=_forget,
    written_formats=("json", "csv", "text", "parquet", "orc"),
    exactly_once=True,
    formats=("json", "csv", "text", "parquet", "orc"),
    partitions=True,
    metadata=METADATA_TYPE,
    entity_hint="An entity of such a store is a directory; it has no partitions, replicas or topic settings.",
    settings=(_ROOTS, _POLL_INTERVAL, _OBJECT_POLL_INTERVAL, _REQUEST_TIMEOUT, _BYTES_MAX),
    secret_keys=SECRET_KEYS,
)
