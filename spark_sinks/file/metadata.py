"""A directory's metadata of a record: the file that it stands in, and when that was last changed."""

from __future__ import annotations

METADATA_TYPE = "STRUCT<file VARCHAR, timestamp BIGINT>"
SPARK_TYPE = METADATA_TYPE.replace("VARCHAR", "STRING")  # its fields may be NULL, for Arrow
METADATA_EXPRESSION = (  # Spark gives names as in a URL, but leaves a plus sign as it is
    "cast(named_struct('file', url_decode(replace(_metadata.file_name, '+', '%2B')), "
    f"'timestamp', unix_millis(_metadata.file_modification_time)) AS {SPARK_TYPE})"
)
