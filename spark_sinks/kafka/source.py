"""One topic as Spark reads it: exact starts and ends, nothing skipped, and the named reason when that cannot be."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spark_sinks.base import METADATA, RECORD_HEADERS, Position, RecordOrder, SourceHealth
from spark_sinks.kafka import positions
from spark_sinks.kafka.admin import Cluster
from spark_sinks.kafka.failures import explain
from spark_sinks.kafka.health import examine, topic_gone, topic_recreated
from spark_sinks.kafka.jars import CONNECTOR
from spark_sinks.kafka.limits import KAFKA_RECORD_BYTES_MAX, KAFKA_RECORDS_WORTH_SPLITTING, KAFKA_TIMEOUT_S
from spark_sinks.kafka.live import LiveTopic
from spark_sinks.kafka.metadata import METADATA_EXPRESSION
from spark_sinks.kafka.offset_log import batch_end_offsets
from spark_sinks.kafka.options import KafkaOptions
from spark_sinks.kafka.positions import KafkaPositions
from spark_sinks.oversize import marked_unless_small
from spark_sinks.schema_registry.book import SchemaBook

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Measured: the Java client's defaults cost 40 % and more of the rate of a scan.
_FETCHING = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": "8388608",
    "kafka.fetch.max.bytes": "67108864",
    "kafka.receive.buffer.bytes": "1048576",
    # After each poll the connector asks for a partition's ends, and that waits behind the client's own next fetch on
    # the same connection: with the default of 500 ms a live batch took 140 ms to read, with 1 ms it takes 40.
    "kafka.fetch.max.wait.ms": "1",
}


class TopicHealth:
    """A :class:`spark_sinks.base.Health` of one topic."""

    def __init__(self, cluster: Cluster, topic: str, jar_directory: Path | None) -> None:
        self._cluster = cluster
        self._topic = topic
        self._jar_directory = jar_directory

    def look(self, position: Position) -> SourceHealth:
        return examine(self._cluster, self._topic, position).health()

    def explain_failure(self, error: BaseException, position: Position) -> Exception:
        return explain(error, self._cluster, self._topic, position, self._jar_directory)

    def check_history(self, start: Position) -> None:
        self.readable(start)

    def readable(self, start: Position) -> Position:
        """With the partitions that the topic has now. Raises the named error where not all from there is left."""
        finding = examine(self._cluster, self._topic, start)
        if finding.error is not None:
            raise finding.error
        return finding.position

    def remaining(self, start: Position) -> tuple[Position, str | None]:
        """A topic made anew is read from its beginning."""
        topic = self._cluster.topic(self._topic)
        low = self._cluster.offsets(self._topic, topic.partitions).low
        if topic.id != positions.topic_id_of(start):
            again = f'rebuilt from topic "{self._topic}" as it was created again'
            return positions.make_position(topic.id, dict(low)), again
        wanted = positions.offsets_of(positions.with_partitions(start, topic.partitions))
        present = {partition: max(offset, low.get(partition, offset)) for partition, offset in wanted.items()}
        lost = [f"{p}:{wanted[p]}-{present[p] - 1}" for p in sorted(present) if present[p] > wanted[p]]
        note = f"rebuilt without offsets that are gone: {', '.join(lost)}" if lost else None
        return positions.make_position(topic.id, present), note


class KafkaReader:
    """A :class:`spark_sinks.base.SourceReader` over one topic.

    Besides the raw columns its frames have ``partition int``, ``offset bigint`` and the headers as they are.
    """

    positions = KafkaPositions()
    rounds = logged = held = None

    def __init__(
        self,
        store: str,
        options: KafkaOptions,
        topic: str,
        *,
        jar_directory: Path | None = None,
        timeout_s: float = KAFKA_TIMEOUT_S,
        record_bytes_max: int = KAFKA_RECORD_BYTES_MAX,
        schemas: SchemaBook | None = None,
    ) -> None:
        self.schemas = schemas
        self._options = options
        self._topic = topic
        self._jar_directory = jar_directory
        self._record_bytes_max = record_bytes_max
        self._cluster = Cluster(store, options, timeout_s=timeout_s)
        self.health = TopicHealth(self._cluster, topic, jar_directory)
        # The connector keeps consumers, and what they have fetched ahead, for each group; with one of its own for each
        # batch it would fill the memory with those of the batches before.
        self._batch_group = f"mvserver-{uuid.uuid4()}"
        self.live = LiveTopic(topic, options, self._live_frame)

    @contextmanager
    def stream(self, spark: SparkSession, start: Position, *, records_per_trigger: int) -> Iterator[DataFrame]:
        """Raises the named error at once where the topic cannot be read from ``start`` on."""
        self._add_jars(spark)
        if self.schemas is not None:
            self.schemas.catch_up()
        # The connector wants a start for every partition there is, so those added since are looked up.
        start = self.health.readable(start)
        options = {
            **self._common(),
            "subscribe": self._topic,
            "startingOffsets": positions.connector_offsets(self._topic, start),
            "maxOffsetsPerTrigger": str(records_per_trigger),
        }
        cores = spark.sparkContext.defaultParallelism
        if len(positions.offsets_of(start)) < cores:
            # A limit a task, not a number of tasks: a backlog is spread over the cores, a live batch stays whole.
            options["maxRecordsPerPartition"] = str(max(1, -(-records_per_trigger // cores)))
        yield _columns(spark.readStream.format("kafka").options(**options).load(), self._record_bytes_max)

    def _live_frame(self, spark: SparkSession, start: Position, more: Mapping[str, str]) -> DataFrame:
        self._add_jars(spark)
        if self.schemas is not None:
            self.schemas.catch_up()
        options = {
            **self._common(),
            **more,
            "subscribe": self._topic,
            "startingOffsets": positions.connector_offsets(self._topic, self.health.readable(start)),
        }
        return _columns(spark.readStream.format("kafka").options(**options).load(), self._record_bytes_max)

    def batch(self, spark: SparkSession, start: Position, end: Position) -> DataFrame:
        self._add_jars(spark)
        self.health.readable(start)
        spans = positions.ranges(start, end)
        topic_id = positions.topic_id_of(start)
        first = positions.make_position(topic_id, {partition: begin for partition, (begin, _) in spans.items()})
        last = positions.make_position(topic_id, {partition: stop for partition, (_, stop) in spans.items()})
        partitions = sorted(spans)
        options = {
            **self._common(),
            # assign rather than subscribe: partitions that appear later are no part of this range
            "assign": f'{{"{self._topic}": {partitions}}}',
            "startingOffsets": positions.connector_offsets(self._topic, first),
            "endingOffsets": positions.connector_offsets(self._topic, last),
            "kafka.group.id": self._batch_group,
        }
        cores = spark.sparkContext.defaultParallelism
        if len(partitions) < cores and positions.distance(start, end) >= KAFKA_RECORDS_WORTH_SPLITTING:
            options["minPartitions"] = str(cores)
        return _columns(spark.read.format("kafka").options(**options).load(), self._record_bytes_max)

    def batch_end(self, checkpoint: str, batch_id: int, start: Position) -> Position:
        """Partitions that the batch met for the first time are in the end, too."""
        ended = batch_end_offsets(checkpoint, batch_id, self._topic)
        return positions.make_position(positions.topic_id_of(start), {**positions.offsets_of(start), **ended})

    def confirm(self, position: Position) -> None:
        """The topic is still the one that the position belongs to; asked after a batch was read and before it counts,
        since the connector would read a topic made anew without a word. One short request."""
        topic = self._cluster.topic_or_none(self._topic)
        if topic is None:
            raise topic_gone(self._cluster.store, self._topic)
        known = positions.topic_id_of(position)
        if topic.id != known:
            raise topic_recreated(self._cluster.store, topic, known)

    def adopt(self, position: Position, *, fresh: bool) -> Position:
        return position

    @property
    def record_order(self) -> RecordOrder:
        return RecordOrder("cast(partition as string)", "offset", "cast(partition as string)")

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        return [position for position, _ in records]

    def give_up(self) -> None:
        """A batch is made without a long wait."""

    def close(self) -> None:
        self._cluster.close()
        self.live.close()

    def _add_jars(self, spark: SparkSession) -> None:
        for connector in self._options.connectors:
            connector.add_to(spark, self._jar_directory)
        login = self._options.authentication
        if login is not None and login.from_start:
            CONNECTOR.require_on_class_path(spark)

    def _common(self) -> dict[str, str]:
        return {
            **self._options.spark(),
            **_FETCHING,
            "kafka.isolation.level": "read_committed",
            "kafka.allow.auto.create.topics": "false",
            "failOnDataLoss": "true",
            "includeHeaders": "true",
        }


def _columns(raw: DataFrame, record_bytes_max: int) -> DataFrame:
    return raw.selectExpr(
        f"{marked_unless_small('key', record_bytes_max)} AS key",
        f"{marked_unless_small('value', record_bytes_max, 'key')} AS value",
        "concat(partition, ':', offset) AS position",
        "timestamp AS record_time",
        f"{METADATA_EXPRESSION} AS {METADATA}",
        f"headers AS {RECORD_HEADERS}",
        "partition",
        "offset",
    )
