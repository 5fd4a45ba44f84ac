"""The health of a topic: whether it still has what a reader wants next. Each way of not having it has a named error.

Spark's connector compares offsets only: a topic that was deleted and made again looks like the old one as soon as it
is long enough. The topic's id tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position, SourceHealth
from spark_sinks.kafka.admin import Cluster, Topic
from spark_sinks.kafka.positions import make_position, offsets_of, topic_id_of, with_partitions


@dataclass(frozen=True)
class Finding:
    """``error`` is None when all is well; ``latest`` is known whenever the topic is the right one and answers.

    ``position`` is the one asked about, with partitions that were added to the topic since.
    """

    state: str  # ok, stalled, failed
    position: Position
    error: SqlError | None = None
    latest: Position | None = None

    def health(self) -> SourceHealth:
        if self.error is None:
            return SourceHealth(self.state, None, self.latest)
        return SourceHealth(self.state, cause_text(self.error), self.latest)


def cause_text(error: SqlError) -> str:
    """Message and detail in one line; the hint is for those who can act on it at once."""
    return error.message if error.detail is None else f"{error.message}: {error.detail}"


def examine(cluster: Cluster, topic_name: str, position: Position) -> Finding:
    """Asks the cluster; does not raise for what the cluster says."""
    try:
        topic = cluster.topic_or_none(topic_name)
        if topic is None:
            return Finding("failed", position, topic_gone(cluster.store, topic_name))
        if topic.id != topic_id_of(position):
            return Finding("failed", position, topic_recreated(cluster.store, topic, topic_id_of(position)))
        position = with_partitions(position, topic.partitions)
        wanted = offsets_of(position)
        present = cluster.offsets(topic_name, topic.partitions)
        error = _missing(cluster, topic_name, wanted, dict(present.low), dict(present.stable))
    except SqlError as unanswered:
        if unanswered.sqlstate == sqlstates.DATA_CORRUPTED:
            raise
        if unanswered.sqlstate == sqlstates.UNDEFINED_OBJECT and _is_gone(cluster, topic_name):
            return Finding("failed", position, topic_gone(cluster.store, topic_name))
        return Finding("stalled", position, unanswered)
    latest = make_position(topic.id, present.stable)
    if error is not None:
        return Finding("failed", position, error, latest)
    return Finding("ok", position, None, latest)


def _is_gone(cluster: Cluster, topic: str) -> bool:
    """Whether it was deleted between two of the requests: a client that loses its broker between them may say that of
    a topic that is there."""
    try:
        return cluster.topic_or_none(topic) is None
    except SqlError:  # nobody answers: the next look will tell
        return False


def _missing(
    cluster: Cluster, topic: str, wanted: dict[int, int], low: dict[int, int], stable: dict[int, int]
) -> SqlError | None:
    for partition, offset in sorted(wanted.items()):
        if partition not in low:
            return partition_gone(cluster.store, topic, partition)
        if offset < low[partition]:
            return offsets_gone(cluster.store, topic, partition, offset, low[partition])
    ahead = [partition for partition, offset in sorted(wanted.items()) if offset > stable[partition]]
    if not ahead:
        return None
    # The stable end can lie before a position that was the plain end of the topic, never the plain end itself.
    ends = cluster.ends(topic, ahead)
    for partition in ahead:
        if wanted[partition] > ends[partition]:
            return offsets_beyond_end(cluster.store, topic, partition, wanted[partition], ends[partition])
    return None


def topic_gone(store: str, topic: str) -> SqlError:
    return SqlError(
        sqlstates.UNDEFINED_OBJECT,
        f'topic "{topic}" does not exist in store "{store}"',
        detail="It was there when the query was created.",
    )


def topic_recreated(store: str, topic: Topic, known_id: str) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'topic "{topic.name}" in store "{store}" was deleted and created again',
        detail=f"The query reads the topic with id {known_id}; the present one has id {topic.id}.",
        hint="What was read before stays; a new definition reads the new topic.",
    )


def partition_gone(store: str, topic: str, partition: int) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'partition {partition} of topic "{topic}" in store "{store}" does not exist any more',
    )


def offsets_gone(store: str, topic: str, partition: int, wanted: int, first_left: int) -> SqlError:
    last = first_left - 1
    lost = f"offset {wanted} is" if last == wanted else f"offsets {wanted} to {last} are"
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'{lost} gone from partition {partition} of topic "{topic}" in store "{store}"',
        detail=f"The query's next offset is {wanted}; the first one still there is {first_left}.",
        hint="REFRESH MATERIALIZED VIEW rebuilds a view from what is left.",
    )


def offsets_beyond_end(store: str, topic: str, partition: int, wanted: int, end: int) -> SqlError:
    return SqlError(
        sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
        f'partition {partition} of topic "{topic}" in store "{store}" ends at offset {end}, before the query\'s '
        f"position {wanted}",
        detail="Records that the query has read are not in the topic any more.",
        hint="REFRESH MATERIALIZED VIEW rebuilds a view from what is left.",
    )
