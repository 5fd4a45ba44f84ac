"""The kind KINESIS: streams of an account and region, read in rounds and written at least once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mvserver import config_values as read
from mvserver.config_values import Row
from spark_sinks.kinesis.metadata import METADATA_TYPE
from spark_sinks.kinesis.options import SECRET_KEYS, KinesisOptions
from spark_sinks.kinesis.properties import DELETED, IDENTITY, SHARDS
from spark_sinks.store_kind import EntityProperty, Source, StoreKind, StoreSettings, Target

if TYPE_CHECKING:
    from spark_sinks.base import SourceReader, StoreClient, TransactionalSink

_POLL_INTERVAL = Row(
    "kinesis_poll_interval", read.POSITIVE_DURATION, "250ms",
    "How often a shard of a Kinesis stream that is read to its end is asked for new records; at least 200 ms apart.",
    after="kafka_request_timeout",
)  # fmt: skip
_REQUEST_TIMEOUT = Row(
    "kinesis_request_timeout", read.POSITIVE_DURATION, "10s", "When the Kinesis service counts as not answering.",
    after="kinesis_poll_interval",
)  # fmt: skip


def _options(properties: Mapping[str, Any], settings: StoreSettings) -> KinesisOptions:
    return KinesisOptions.from_properties(properties)


def _poll_s(settings: StoreSettings) -> float:
    return float(settings.values[_POLL_INTERVAL.name])


def _timeout_s(settings: StoreSettings) -> float:
    return float(settings.values[_REQUEST_TIMEOUT.name])


def _client(store: str, options: KinesisOptions, settings: StoreSettings) -> StoreClient:
    from spark_sinks.kinesis.client import KinesisClient

    return KinesisClient(store, options, poll_s=_poll_s(settings), timeout_s=_timeout_s(settings))


def _reader(source: Source[KinesisOptions], settings: StoreSettings) -> SourceReader:
    from spark_sinks.kinesis.source import KinesisReader

    return KinesisReader(
        source.store,
        source.options,
        source.entity,
        poll_s=_poll_s(settings),
        record_bytes_max=settings.record_bytes_max,
        timeout_s=_timeout_s(settings),
    )


def _sink(target: Target[KinesisOptions], settings: StoreSettings) -> TransactionalSink:
    from spark_sinks.kinesis.sink import KinesisSink

    return KinesisSink(
        target.store, target.options, target.entity, target.query_id, target.kept, timeout_s=_timeout_s(settings)
    )


KINESIS = StoreKind(
    name="KINESIS",
    options=_options,
    client=_client,
    reader=_reader,
    sink=_sink,
    formats=("json", "csv", "delimited", "xml", "primitive"),
    described_formats=("avro", "protobuf"),
    written_formats=("json",),
    deletion_field=DELETED,
    written_identity=IDENTITY,
    metadata=METADATA_TYPE,
    secret_keys=SECRET_KEYS,
    written_keys="text",
    entity_properties=(
        EntityProperty(SHARDS[0], is_count=True, required=True, shown_as="shards", older_name=SHARDS[1]),
    ),
    entity_hint="An entity of such a store is a stream, which has 'topic.shards'.",
    exactly_once=True,
    starts_at_moments=True,
    sink_exactly_once=False,
    takes_copies=False,
    settings=(_POLL_INTERVAL, _REQUEST_TIMEOUT),
)
