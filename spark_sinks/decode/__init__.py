"""Decoding: raw bytes to typed columns, or to the reason why a record is rejected.

A record is rejected by the declared columns of its relation alone, never by which of them a query uses. Each format
yields *stages*: lists of Spark SQL expressions, each stage selecting over the one before it, so that the expensive
parse is evaluated once and the slow path only for the records that need it.
"""

from __future__ import annotations

from spark_sinks.decode.columns import DecodeColumn, Decoded, RecordFunction, parquet_column
from spark_sinks.decode.formats import decode, format_of, needs_schemas

__all__ = ["DecodeColumn", "Decoded", "RecordFunction", "decode", "format_of", "needs_schemas", "parquet_column"]
