"""What a PostgreSQL store knows of a record: the transaction that it comes from, and when that committed."""

from __future__ import annotations

METADATA_TYPE = "STRUCT<lsn VARCHAR, transaction BIGINT, timestamp BIGINT>"
