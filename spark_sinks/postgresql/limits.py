"""Limits of PostgreSQL stores."""

from __future__ import annotations

POSTGRES_TIMEOUT_S = 10.0  # for one request; a statement must not hang on a dead host
ANSWER_GRACE_S = 2.0  # beyond the server's own bound of a request, before it counts as not answering
CANCEL_TIMEOUT_S = 1.0  # for a word to the server that a command is not waited for any more
COPY_TIMEOUT_S = 300.0  # for a part of a snapshot, which may wait for a lock or for the server's disk
UNACKNOWLEDGED_S = 30.0  # what was sent to a host and not received there ends the connection
LOOK_S = 0.1  # between two looks of who waits for an answer, whether it is still wanted
SLOT_TIMEOUT_S = 60.0  # for a new slot, which waits for all transactions that are running
START_TIMEOUT_S = 5.0  # for the slot of a query that begins at the latest change; a statement waits for it
STATUS_INTERVAL_S = 10.0  # between two words to the server; it ends a connection that is silent for 60 s
RECONNECT_PAUSE_S = 1.0
SLOT_PAUSE_S = 0.1  # between two attempts to take up or to drop a slot
SLOT_FREE_S = 5.0  # so long a slot may be busy with a stream that has ended, before that is a problem
SLOT_FREE_PAUSE_S = 0.05
CHUNK_RECORDS = 8_192  # of records that are kept together
CHUNK_BYTES = 8 * 1024 * 1024
SPOOL_MEMORY_BYTES = 64 * 1024 * 1024  # of a pipeline's changes; what is beyond lies in files
SPOOL_AHEAD_BYTES = 1024 * 1024 * 1024  # received and not read yet; beyond, no more is received
SPOOL_BYTES_MAX = 16 * 1024 * 1024 * 1024  # of changes that somebody may still need; beyond, no more are received
FRAME_MEMORY_BYTES = 64 * 1024 * 1024  # of a batch that the driver hands to Spark; Spark reads a larger one from files
FRAMES_KEPT = 16  # of those in files
COPY_ROWS = 5_000  # of one FETCH of a snapshot
PIN_S = 120.0  # so long a start is held for a query that is being made
PRINT_POLL_S = 0.1
PRINT_RECORD_BYTES_MAX = 16 * 1024 * 1024  # of a change that PRINT ENTITY shows
SLOT_LAG_WARNING_BYTES = 1024 * 1024 * 1024  # of the log that a slot holds back
NAME_BYTES_MAX = 63  # PostgreSQL's NAMEDATALEN - 1
