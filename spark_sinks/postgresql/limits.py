"""Limits of PostgreSQL stores."""

from __future__ import annotations

POSTGRES_TIMEOUT_S = 10.0  # for one request; a statement must not hang on a dead host
SLOT_TIMEOUT_S = 60.0  # for a new slot, which waits for all transactions that are running
START_TIMEOUT_S = 5.0  # for the slot of a query that begins at the latest change; a statement waits for it
STATUS_INTERVAL_S = 10.0  # between two words to the server; it ends a connection that is silent for 60 s
RECONNECT_PAUSE_S = 1.0
CHUNK_RECORDS = 8_192  # of records that are kept together
CHUNK_BYTES = 8 * 1024 * 1024
SPOOL_MEMORY_BYTES = 64 * 1024 * 1024  # of a pipeline's changes; what is beyond lies in files
SPOOL_AHEAD_BYTES = 1024 * 1024 * 1024  # received and not read yet; beyond, no more is received
FRAME_MEMORY_BYTES = 64 * 1024 * 1024  # of a batch that the driver hands to Spark; Spark reads a larger one from files
COPY_ROWS = 5_000  # of one FETCH of a snapshot
PIN_S = 120.0  # so long a start is held for a query that is being made
PRINT_POLL_S = 0.1
PRINT_RECORD_BYTES_MAX = 16 * 1024 * 1024  # of a change that PRINT ENTITY shows
SLOT_LAG_WARNING_BYTES = 1024 * 1024 * 1024  # of the log that a slot holds back
NAME_BYTES_MAX = 63  # PostgreSQL's NAMEDATALEN - 1
