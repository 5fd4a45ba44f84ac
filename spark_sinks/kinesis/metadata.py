"""The metadata of a record in a Kinesis stream: its place, its partition key, and when it arrived."""

from __future__ import annotations

METADATA_TYPE = (
    "STRUCT<stream VARCHAR, partition_key VARCHAR, shard_id VARCHAR, sequence_number VARCHAR, "
    "subsequence_number BIGINT, timestamp BIGINT>"
)
