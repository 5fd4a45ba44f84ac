"""The cause of a failure of Spark's connector, asked of the cluster rather than read from Java's words.

The text of a Java exception decides only whether the connector is to blame; what is missing, and where, is asked of the
cluster, which knows exactly.
"""

from __future__ import annotations

import re
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.base import Position
from spark_sinks.kafka.admin import Cluster
from spark_sinks.kafka.errors import could_not_connect
from spark_sinks.kafka.health import examine, topic_gone
from spark_sinks.kafka.jars import CONNECTOR

_NO_CONNECTOR = re.compile(r"KAFKA_DATA_SOURCE_NOT_ENABLED|Failed to find data source: kafka|kafka010\.\S+ not found")
_TOPIC = re.compile(r"UnknownTopicOrPartition|UnknownTopicId|InvalidTopicException")
_DATA_LOSS = re.compile(
    r"KAFKA_DATA_LOSS|failOnDataLoss|OffsetOutOfRange|[Dd]ata (?:may|might) have been (?:lost|missed)"
    r"|MISMATCHED_TOPIC_PARTITIONS|Cannot fetch (?:offset|record)"
)
_TIMEOUT = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:\w*Timeout\w*|Disconnect\w*|Network\w*)|TimeoutException: "
    r"|Failed to (?:construct kafka consumer|create new KafkaAdminClient)|No resolvable bootstrap urls"
)
# A task's exceptions reach the driver without a name where their class is in a jar that only the session has.
_UNNAMED = re.compile(r"\bUnknownReason\b")
_AUTHENTICATION = re.compile(r"(?:Sasl|Ssl)?AuthenticationException: (?P<reason>[^\n]+)")
_PLACE = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)")


def explain(
    error: BaseException, cluster: Cluster, topic: str, position: Position, jar_directory: Path | None
) -> Exception:
    """The named error; the given one where the source has nothing to do with it."""
    if isinstance(error, SqlError):
        return error
    text = _whole_text(error)
    if _NO_CONNECTOR.search(text):
        return CONNECTOR.unavailable(jar_directory)
    if refused := _AUTHENTICATION.search(text):
        return could_not_connect(cluster.store, refused["reason"])
    named = any(pattern.search(text) for pattern in (_TOPIC, _DATA_LOSS, _TIMEOUT))
    if named or _UNNAMED.search(text):
        finding = examine(cluster, topic, position)
        if finding.error is not None:
            return finding.error
        if named:
            return _by_text(text, cluster.store, topic)
    return error if isinstance(error, Exception) else SqlError(sqlstates.INTERNAL_ERROR, words_of(error))


def _by_text(text: str, store: str, topic: str) -> SqlError:
    """The cluster is well now: what the connector complained of has passed, or it lies behind the position."""
    if _DATA_LOSS.search(text):
        return SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            f'records of topic "{topic}" in store "{store}" went away while they were read{_place(text, topic)}',
            detail=f"Spark's connector said: {_first_reason(text, _DATA_LOSS)}.",
            hint="RESTART QUERY goes on from the query's position when all is there.",
        )
    if _TOPIC.search(text):
        return topic_gone(store, topic)
    return could_not_connect(store, _first_reason(text, _TIMEOUT))


def _place(text: str, topic: str) -> str:
    for match in _PLACE.finditer(text):
        if match["topic"] == topic:
            return f", in partition {match['partition']}"
    return ""


def _first_reason(text: str, pattern: re.Pattern[str]) -> str:
    lines = [line.strip() for line in text.splitlines() if pattern.search(line)]
    return lines[0].removesuffix(".") if lines else "nothing more"


def _whole_text(error: BaseException) -> str:
    """The error's text with the causes that Python and Java keep."""
    texts = []
    seen: BaseException | None = error
    known: set[int] = set()  # one that is raised from itself is its own cause
    while seen is not None and id(seen) not in known:
        known.add(id(seen))
        texts.append(f"{type(seen).__name__}: {words_of(seen)}")
        trace = getattr(seen, "_stackTrace", None) or getattr(seen, "stackTrace", None)
        if isinstance(trace, str):
            texts.append(trace)
        seen = seen.__cause__ or getattr(seen, "cause", None)
        if not isinstance(seen, BaseException):
            if seen is not None:
                texts.append(words_of(seen))
            break
    return "\n".join(texts)
