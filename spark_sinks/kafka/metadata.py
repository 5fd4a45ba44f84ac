"""A topic's metadata of a record: its place, its time, and its headers."""

from __future__ import annotations

from spark_sinks.decode.columns import valid_text

METADATA_TYPE = (
    "STRUCT<topic VARCHAR, partition INTEGER, offset BIGINT, timestamp BIGINT, timestamp_type VARCHAR, "
    "headers MAP<VARCHAR, VARCHAR>>"
)
# Of headers of one name the last counts, as in Java's client; a map of Spark refuses a name that is there twice.
_NAME, _VALUE = valid_text("h.key"), valid_text("element_at(filter(headers, h -> {} = name), -1).value")
_HEADERS = (
    f"map_from_entries(transform(array_distinct(transform(headers, h -> {_NAME})), "
    f"name -> struct(name, {_VALUE.format(_NAME)})))"
)
METADATA_EXPRESSION = (
    "cast(named_struct('topic', topic, 'partition', partition, 'offset', offset, 'timestamp', unix_millis(timestamp), "
    "'timestamp_type', CASE timestampType WHEN 0 THEN 'CreateTime' WHEN 1 THEN 'LogAppendTime' END, "
    f"'headers', {_HEADERS}) "
    f"AS {METADATA_TYPE.replace('VARCHAR', 'STRING')})"  # whose fields may be NULL, for Arrow
)
