"""One topic as Spark reads it: exact starts and ends, nothing skipped, and the named reason when that cannot be."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mvserver.limits import KAFKA_RECORD_BYTES_MAX, KAFKA_RECORDS_WORTH_SPLITTING, KAFKA_TIMEOUT_S
from spark_sinks.base import METADATA, Position, RecordOrder, SourceHealth
from spark_sinks.kafka import positions
from spark_sinks.kafka.admin import Cluster
from spark_sinks.kafka.failures import explain
from spark_sinks.kafka.health import Finding, examine, topic_gone, topic_recreated
from spark_sinks.kafka.jars import add_kafka_jars
from spark_sinks.kafka.offset_log import batch_end_offsets
from spark_sinks.kafka.options import KafkaOptions
from spark_sinks.oversize import marked_unless_small

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

METADATA_TYPE = "STRUCT<topic VARCHAR, partition INTEGER, offset BIGINT, timestamp BIGINT, timestamp_type VARCHAR>"
_METADATA = (
    "cast(named_struct('topic', topic, 'partition', partition, 'offset', offset, 'timestamp', unix_millis(timestamp), "
    "'timestamp_type', CASE timestampType WHEN 0 THEN 'CreateTime' WHEN 1 THEN 'LogAppendTime' END) "
    f"AS {METADATA_TYPE.replace('VARCHAR', 'STRING')})"  # whose fields may be NULL, for Arrow
)
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


class KafkaReader:
    """A :class:`spark_sinks.base.SourceReader` over one topic.

    Besides the raw columns its frames have ``partition int`` and ``offset bigint``.
    """

    counts_records = True

    def __init__(
        self,
        store: str,
        options: KafkaOptions,
        topic: str,
        *,
        jar_directory: Path | None = None,
        timeout_s: float = KAFKA_TIMEOUT_S,
        record_bytes_max: int = KAFKA_RECORD_BYTES_MAX,
    ) -> None:
        self._options = options
        self._topic = topic
        self._jar_directory = jar_directory
        self._record_bytes_max = record_bytes_max
        self._cluster = Cluster(store, options, timeout_s=timeout_s)
        # The connector keeps consumers, and what they have fetched ahead, for each group; with one of its own for each
        # batch it would fill the memory with those of the batches before.
        self._batch_group = f"mvserver-{uuid.uuid4()}"

    def stream(self, spark: SparkSession, start: Position, *, records_per_trigger: int) -> DataFrame:
        """Raises the named error at once where the topic cannot be read from ``start`` on."""
        add_kafka_jars(spark, self._jar_directory)
        # The connector wants a start for every partition there is, so those added since are looked up.
        start = self._readable(start)
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
        return _columns(spark.readStream.format("kafka").options(**options).load(), self._record_bytes_max)

    def batch(self, spark: SparkSession, start: Position, end: Position) -> DataFrame:
        add_kafka_jars(spark, self._jar_directory)
        self._readable(start)
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

    def close_stream(self) -> None:
        """Nothing is held beside the Spark query."""

    def advance(self, start: Position, end: Position) -> Position:
        return positions.furthest(start, end)

    def divisible(self, start: Position, end: Position, least: int) -> bool:
        return positions.divisible(start, end, least)

    def initial(self, wanted: Sequence[Position]) -> Position:
        return positions.nearest(wanted)

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

    def check_history(self, start: Position) -> None:
        self._readable(start)

    @property
    def record_order(self) -> RecordOrder:
        return RecordOrder("cast(partition as string)", "offset", "cast(partition as string)")

    def segment_ranks(self, segments: Sequence[str]) -> Sequence[int]:
        """Partitions by number: which of two was written first is not known."""
        return [int(segment) for segment in segments]

    def partitions(self, position: Position) -> Mapping[str, int]:
        return {str(partition): offset for partition, offset in positions.offsets_of(position).items()}

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        return [position for position, _ in records]

    def limit(self, start: Position, end: Position, records: int) -> Position:
        return positions.limited(start, end, records)

    def distance(self, start: Position, end: Position) -> int:
        return positions.distance(start, end)

    def reached(self, position: Position, target: Position) -> bool:
        return positions.reached(position, target)

    def health(self, position: Position) -> SourceHealth:
        return self._examine(position).health()

    def explain_failure(self, error: BaseException, position: Position) -> Exception:
        return explain(error, self._cluster, self._topic, position, self._jar_directory)

    def give_up(self) -> None:
        """A batch is made without a long wait."""

    def close(self) -> None:
        self._cluster.close()

    def _examine(self, position: Position) -> Finding:
        return examine(self._cluster, self._topic, position)

    def _readable(self, start: Position) -> Position:
        finding = self._examine(start)
        if finding.error is not None:
            raise finding.error
        return finding.position

    def _common(self) -> dict[str, str]:
        return {
            **self._options.spark(),
            **_FETCHING,
            "kafka.isolation.level": "read_committed",
            "kafka.allow.auto.create.topics": "false",
            "failOnDataLoss": "true",
        }


def _columns(raw: DataFrame, record_bytes_max: int) -> DataFrame:
    return raw.selectExpr(
        f"{marked_unless_small('key', record_bytes_max)} AS key",
        f"{marked_unless_small('value', record_bytes_max, 'key')} AS value",
        "concat(partition, ':', offset) AS position",
        "timestamp AS record_time",
        f"{_METADATA} AS {METADATA}",
        "partition",
        "offset",
    )
