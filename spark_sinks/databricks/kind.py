"""The kind DATABRICKS: external Delta tables of Unity Catalog that queries write to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from mvserver import config_values as read
from mvserver.config_values import Row
from spark_sinks.databricks.options import SECRET_KEYS, DatabricksOptions
from spark_sinks.store_kind import Extra, StoreKind, StoreSettings, Tables, TableTarget

if TYPE_CHECKING:
    from spark_sinks.base import StoreClient, TableClient, TableSink
    from spark_sinks.databricks.client import DatabricksClient

_REQUEST_TIMEOUT = Row(
    "databricks_request_timeout", read.POSITIVE_DURATION, "10s",
    "When Unity Catalog, or the place of its tables, counts as not answering.", after="iceberg_request_timeout",
)  # fmt: skip
CATALOG, SCHEMA, TABLE, PLACE = (
    "databricks.catalog.name", "databricks.schema.name", "databricks.table.name", "table.data.file.location",
)  # fmt: skip
_DEFAULT_CATALOG, _DEFAULT_SCHEMA = "main", "default"


def _options(properties: Mapping[str, Any], settings: StoreSettings) -> DatabricksOptions:
    return DatabricksOptions.from_properties(properties, settings.values["file_roots"])


def _timeout_s(settings: StoreSettings) -> float:
    return float(settings.values[_REQUEST_TIMEOUT.name])


def _client(store: str, options: DatabricksOptions, settings: StoreSettings) -> StoreClient:
    from spark_sinks.databricks.client import DatabricksClient
    from spark_sinks.databricks.delta import Storage
    from spark_sinks.databricks.unity import UnityCatalog

    timeout_s = _timeout_s(settings)
    catalog = UnityCatalog(store, options.workspace, options.token, timeout_s=timeout_s)
    return DatabricksClient(store, catalog, Storage(store, options, timeout_s))


def _tables(client: StoreClient) -> TableClient:
    return cast("DatabricksClient", client)


def _sink(target: TableTarget[DatabricksOptions], settings: StoreSettings) -> TableSink:
    from spark_sinks.databricks.delta import Storage
    from spark_sinks.databricks.sink import DeltaSink
    from spark_sinks.databricks.unity import UnityCatalog

    timeout_s, options = _timeout_s(settings), target.options
    catalog = UnityCatalog(target.store, options.workspace, options.token, timeout_s=timeout_s)
    try:
        return DeltaSink(target, catalog, Storage(target.store, options, timeout_s))
    finally:
        catalog.close()


def _entity(options: DatabricksOptions, properties: Mapping[str, str], relation: str) -> str:
    catalog, schema = properties.get(CATALOG, _DEFAULT_CATALOG), properties.get(SCHEMA, _DEFAULT_SCHEMA)
    return f"{catalog}.{schema}.{properties.get(TABLE, relation)}"


DATABRICKS = StoreKind(
    name="DATABRICKS",
    options=_options,
    client=_client,
    tables=Tables(_tables, _sink, _entity, (CATALOG, SCHEMA, TABLE, PLACE), places=(PLACE,)),
    extra=Extra("databricks", "deltalake"),
    secret_keys=SECRET_KEYS,
    entity_hint="An entity of such a store is a table.",
    creates_entities=False,
    takes_copies=False,
    settings=(_REQUEST_TIMEOUT,),
)
