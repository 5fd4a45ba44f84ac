"""A topic's metadata of a record: its place, and its time."""

from __future__ import annotations

METADATA_TYPE = "STRUCT<topic VARCHAR, partition INTEGER, offset BIGINT, timestamp BIGINT, timestamp_type VARCHAR>"
METADATA_EXPRESSION = (
    "cast(named_struct('topic', topic, 'partition', partition, 'offset', offset, 'timestamp', unix_millis(timestamp), "
    "'timestamp_type', CASE timestampType WHEN 0 THEN 'CreateTime' WHEN 1 THEN 'LogAppendTime' END) "
    f"AS {METADATA_TYPE.replace('VARCHAR', 'STRING')})"  # whose fields may be NULL, for Arrow
)
