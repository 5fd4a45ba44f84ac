"""The kind SNOWFLAKE: tables of an account that queries write to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from mvserver import config_values as read
from mvserver.config_values import Row
from spark_sinks.snowflake.options import DATABASE, SCHEMA, SECRET_KEYS, TABLE, SnowflakeOptions
from spark_sinks.store_kind import Extra, StoreKind, StoreSettings, Tables, TableTarget
from spark_sinks.table_options import COMMIT_INTERVAL

if TYPE_CHECKING:
    from spark_sinks.base import StoreClient, TableClient, TableSink
    from spark_sinks.snowflake.client import SnowflakeClient

_REQUEST_TIMEOUT = Row(
    "snowflake_request_timeout", read.POSITIVE_DURATION, "30s",
    "When Snowflake counts as not answering.", after="databricks_request_timeout",
)  # fmt: skip


def _options(properties: Mapping[str, Any], settings: StoreSettings) -> SnowflakeOptions:
    return SnowflakeOptions.from_properties(properties, settings.certificate_folders)


def _timeout_s(settings: StoreSettings) -> float:
    return float(settings.values[_REQUEST_TIMEOUT.name])


def _client(store: str, options: SnowflakeOptions, settings: StoreSettings) -> StoreClient:
    from spark_sinks.snowflake.client import SnowflakeClient

    return SnowflakeClient(store, options, timeout_s=_timeout_s(settings))


def _tables(client: StoreClient) -> TableClient:
    return cast("SnowflakeClient", client)


def _sink(target: TableTarget[SnowflakeOptions], settings: StoreSettings) -> TableSink:
    from spark_sinks.snowflake.sink import SnowflakeSink

    return SnowflakeSink(target, timeout_s=_timeout_s(settings))


def _entity(options: SnowflakeOptions, properties: Mapping[str, str], relation: str) -> str:
    return str(options.table_name(properties, relation))


SNOWFLAKE = StoreKind(
    name="SNOWFLAKE",
    options=_options,
    client=_client,
    tables=Tables(
        _tables, _sink, _entity, (DATABASE, SCHEMA, TABLE), aliases={"snowflake.buffer.millis": COMMIT_INTERVAL.name}
    ),
    extra=Extra("snowflake", "snowflake.connector"),
    secret_keys=SECRET_KEYS,
    entity_hint="An entity of such a store is a table.",
    creates_entities=False,
    takes_copies=False,
    settings=(_REQUEST_TIMEOUT,),
)
