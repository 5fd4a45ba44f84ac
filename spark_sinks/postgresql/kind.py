"""The kind POSTGRESQL: the tables of a database, read as they are and then change by change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from mvserver import config_values as read
from mvserver.config_values import Row
from spark_sinks.postgresql.metadata import METADATA_TYPE
from spark_sinks.postgresql.options import PostgresOptions
from spark_sinks.postgresql.slot_names import PROPERTY, check_name
from spark_sinks.store_kind import EntityProperty, Source, StoreKind, StoreSettings

if TYPE_CHECKING:
    from spark_sinks.base import KnownColumns, SourceReader, StoreClient
    from spark_sinks.postgresql.client import PostgresClient

_REQUEST_TIMEOUT = Row(
    "postgresql_request_timeout", read.POSITIVE_DURATION, "10s",
    "When a PostgreSQL server that is a store counts as not answering.", after="kafka_request_timeout",
)  # fmt: skip


def _options(properties: Mapping[str, Any], settings: StoreSettings) -> PostgresOptions:
    return PostgresOptions.from_properties(properties, certificate_folders=settings.certificate_folders)


def _timeout_s(settings: StoreSettings) -> float:
    return float(settings.values[_REQUEST_TIMEOUT.name])


def _client(store: str, options: PostgresOptions, settings: StoreSettings) -> StoreClient:
    from spark_sinks.postgresql.client import PostgresClient

    return PostgresClient(store, options, timeout_s=_timeout_s(settings))


def _known_columns(client: StoreClient) -> KnownColumns:
    return cast("PostgresClient", client)


def _reader(source: Source[PostgresOptions], settings: StoreSettings) -> SourceReader:
    from spark_sinks.postgresql.source import PostgresReader

    return PostgresReader(
        source.store,
        source.options,
        source.entity,
        source.work,
        keyed=source.changelog,
        timeout_s=_timeout_s(settings),
        record_bytes_max=settings.record_bytes_max,
        slot=source.reading.get(PROPERTY),
    )


def _check_reading(client: StoreClient, entity: str, reading: Mapping[str, str], is_read: bool) -> None:
    cast("PostgresClient", client).check_reading(reading[PROPERTY], is_read=is_read)


POSTGRESQL = StoreKind(
    name="POSTGRESQL",
    options=_options,
    client=_client,
    reader=_reader,
    formats=("json",),
    default_format="json",
    metadata=METADATA_TYPE,
    secret_keys=("postgres.password",),
    entity_properties=(EntityProperty(PROPERTY, reading=check_name),),
    check_reading=_check_reading,
    entity_hint="An entity of such a store is a table, which is made in its own database.",
    has_keys=True,
    key_formats=("json",),
    changelogs_apart=True,
    known_columns=_known_columns,
    reads_bounded=False,
    creates_entities=False,
    takes_copies=False,
    settings=(_REQUEST_TIMEOUT,),
)
