"""Decoding: raw bytes to typed columns, or to the reason why a record is rejected.

A record is rejected by the declared columns of its relation alone, never by which of them a query uses. Each format
yields *stages*: lists of Spark SQL expressions, each stage selecting over the one before it, so that the expensive
parse is evaluated once and the slow path only for the records that need it.
"""

from __future__ import annotations

from spark_sinks.decode.checked_records import decode_checked
from spark_sinks.decode.columns import CheckFunction, DecodeColumn, Decoded, RecordFunction, parquet_column
from spark_sinks.decode.described_records import columns_of_descriptor, decode_described
from spark_sinks.decode.formats import decode, format_of, needs_schemas

__all__ = [
    "CheckFunction", "DecodeColumn", "Decoded", "RecordFunction", "columns_of_descriptor", "decode", "decode_checked",
    "decode_described", "format_of", "needs_schemas", "parquet_column",
]  # fmt: skip
