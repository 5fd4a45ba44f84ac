"""What a PostgreSQL store knows of a record: the transaction that it comes from, and when that committed."""

from __future__ import annotations

import pyarrow as pa

METADATA_TYPE = "STRUCT<lsn VARCHAR, transaction BIGINT, timestamp BIGINT>"
METADATA_ARROW = pa.struct([("lsn", pa.string()), ("transaction", pa.int64()), ("timestamp", pa.int64())])
