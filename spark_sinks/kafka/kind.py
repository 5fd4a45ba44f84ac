"""The kinds KAFKA and CONFLUENT_KAFKA: topics of a cluster, read and written exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mvserver import config_values as read
from mvserver.config_values import Row
from spark_sinks.kafka.authentication import SECRET_KEYS
from spark_sinks.kafka.jars import CONNECTOR
from spark_sinks.kafka.metadata import METADATA_TYPE
from spark_sinks.kafka.options import KafkaOptions
from spark_sinks.kafka.properties import CONFIG, PARTITIONS, REPLICAS
from spark_sinks.store_kind import EntityProperty, Source, StoreKind, StoreSettings, Target

if TYPE_CHECKING:
    from spark_sinks.base import KeyedCopies, SourceReader, StoreClient, TransactionalSink

_REQUEST_TIMEOUT = Row(
    "kafka_request_timeout", read.POSITIVE_DURATION, "10s", "When a Kafka broker counts as not answering.",
    after="kafka_poll_interval",
)  # fmt: skip


def _options(properties: Mapping[str, Any], settings: StoreSettings) -> KafkaOptions:
    return KafkaOptions.from_properties(properties, certificate_folders=settings.certificate_folders)


def _confluent_options(properties: Mapping[str, Any], settings: StoreSettings) -> KafkaOptions:
    return KafkaOptions.from_properties(
        properties,
        certificate_folders=settings.certificate_folders,
        kind=CONFLUENT_KAFKA.name,
        always_verified=True,
    )


def _timeout_s(settings: StoreSettings) -> float:
    return float(settings.values[_REQUEST_TIMEOUT.name])


def _client(store: str, options: KafkaOptions, settings: StoreSettings) -> StoreClient:
    from spark_sinks.kafka.client import KafkaClient

    return KafkaClient(store, options, timeout_s=_timeout_s(settings))


def _reader(source: Source[KafkaOptions], settings: StoreSettings) -> SourceReader:
    from spark_sinks.kafka.source import KafkaReader

    return KafkaReader(
        source.store,
        source.options,
        source.entity,
        jar_directory=settings.jar_directory,
        timeout_s=_timeout_s(settings),
        record_bytes_max=settings.record_bytes_max,
        schemas=source.schemas,
    )


def _sink(target: Target[KafkaOptions], settings: StoreSettings) -> TransactionalSink:
    from spark_sinks.kafka.sink import KafkaSink

    sink = KafkaSink(
        target.store,
        target.options,
        target.entity,
        target.query_id,
        timeout_s=_timeout_s(settings),
        letters=target.letters,
    )
    sink.open()
    return sink


KAFKA = StoreKind(
    name="KAFKA",
    options=_options,
    client=_client,
    reader=_reader,
    sink=_sink,
    formats=("json", "csv", "delimited", "xml", "primitive", "avro", "protobuf", "json_schema"),
    described_formats=("avro", "protobuf"),
    written_formats=("json", "csv", "delimited", "xml", "primitive", "avro", "protobuf", "json_schema"),
    metadata=METADATA_TYPE,
    secret_keys=SECRET_KEYS,
    entity_properties=(
        EntityProperty(PARTITIONS[0], is_count=True, required=True, shown_as="partitions", older_name=PARTITIONS[1]),
        EntityProperty(REPLICAS[0], is_count=True, required=True, shown_as="replicas", older_name=REPLICAS[1]),
        EntityProperty(f"{CONFIG}*"),
    ),
    entity_hint="Such an entity has 'topic.partitions', 'topic.replicas' and 'kafka.topic.' with a topic setting.",
    changelog_properties={f"{CONFIG}cleanup.policy": "compact"},  # a topic keeps the last record of each key
    has_keys=True,
    reads_live=True,
    written_keys="bytes",
    written_headers=True,
    takes_schema_registry=True,
    keyed_copies=lambda client: cast("KeyedCopies", client),
    exactly_once=True,
    connector=CONNECTOR,
    spark_settings=(
        # Of queries that have ended; a consumer holds some megabytes that it has fetched ahead.
        ("spark.kafka.consumer.cache.timeout", "1m"),
        ("spark.kafka.consumer.cache.evictorThreadRunInterval", "20s"),
        ("spark.kafka.consumer.fetchedData.cache.timeout", "1m"),
        ("spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval", "20s"),
    ),
    settings=(_REQUEST_TIMEOUT,),
)

# What both have of the server, its settings and Spark's, is stated once.
CONFLUENT_KAFKA = replace(KAFKA, name="CONFLUENT_KAFKA", options=_confluent_options, settings=(), spark_settings=())
