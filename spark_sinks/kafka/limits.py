"""Limits of Kafka stores."""

from __future__ import annotations

KAFKA_TIMEOUT_S = 10.0  # for one request to a cluster; a statement must not hang on a dead host
KAFKA_TOPIC_NAME_CHARACTERS_MAX = 249  # Kafka's own bound
KAFKA_OFFSET_METADATA_BYTES_MAX = 4096  # the brokers' default of offset.metadata.max.bytes
KAFKA_TRANSACTION_TIMEOUT_S = 60.0  # after it the broker aborts what a dead sink left open; readers wait as long
KAFKA_RECORD_BYTES_MAX = 16 * 1024 * 1024  # of one record that is written; the topic may allow less
KAFKA_RECORDS_WORTH_SPLITTING = 10_000  # a bounded read of fewer records is not spread over more tasks than partitions
