"""The kind ICEBERG: tables of a catalog that queries write to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from mvserver import config_values as read
from mvserver.config_values import Row
from spark_sinks.iceberg.options import SECRET_KEYS, IcebergOptions
from spark_sinks.store_kind import Extra, StoreKind, StoreSettings, Tables, TableTarget

if TYPE_CHECKING:
    from spark_sinks.base import StoreClient, TableClient, TableSink
    from spark_sinks.iceberg.client import IcebergClient

_REQUEST_TIMEOUT = Row(
    "iceberg_request_timeout", read.POSITIVE_DURATION, "10s",
    "When a catalog, or the place of its tables, counts as not answering.", after="kafka_request_timeout",
)  # fmt: skip
NAMESPACE, TABLE = "iceberg.namespace", "iceberg.table"
_DEFAULT_NAMESPACE = "default"


def _options(properties: Mapping[str, Any], settings: StoreSettings) -> IcebergOptions:
    return IcebergOptions.from_properties(properties, settings.values["file_roots"])


def _timeout_s(settings: StoreSettings) -> float:
    return float(settings.values[_REQUEST_TIMEOUT.name])


def _client(store: str, options: IcebergOptions, settings: StoreSettings) -> StoreClient:
    from spark_sinks.iceberg.client import IcebergClient

    return IcebergClient(store, options, timeout_s=_timeout_s(settings))


def _tables(client: StoreClient) -> TableClient:
    return cast("IcebergClient", client)


def _sink(target: TableTarget[IcebergOptions], settings: StoreSettings) -> TableSink:
    from spark_sinks.iceberg.sink import IcebergSink

    return IcebergSink(target, timeout_s=_timeout_s(settings))


def _entity(options: IcebergOptions, properties: Mapping[str, str], relation: str) -> str:
    return f"{properties.get(NAMESPACE, _DEFAULT_NAMESPACE)}.{properties.get(TABLE, relation)}"


ICEBERG = StoreKind(
    name="ICEBERG",
    options=_options,
    client=_client,
    tables=Tables(_tables, _sink, _entity, (NAMESPACE, TABLE)),
    extra=Extra("iceberg", "pyiceberg"),
    secret_keys=SECRET_KEYS,
    entity_hint="An entity of such a store is a table.",
    creates_entities=False,
    takes_copies=False,
    settings=(_REQUEST_TIMEOUT,),
)
