"""Every limit of the server, by name, with its unit and its reason."""

from __future__ import annotations

# --- the wire -------------------------------------------------------------------------------------------------------
STARTUP_PACKET_BYTES_MAX = 10_000  # PostgreSQL's own bound
MESSAGE_BEFORE_READY_BYTES_MAX = 64 * 1024  # nothing longer is legal before log-in
MESSAGE_BYTES_MAX = 16 * 1024 * 1024  # statement text, parameters, COPY data
AUTHENTICATION_TIMEOUT_S = 60.0
CONNECTIONS_MAX = 200
WRITE_HIGH_WATER_BYTES = 4 * 1024 * 1024  # a client that stops reading costs at most this and one chunk
RESULT_CHUNK_ROWS = 8_192

# --- statements -----------------------------------------------------------------------------------------------------
STATEMENT_BYTES_MAX = 1024 * 1024  # checked before the parser sees the text
STATEMENT_DEPTH_MAX = 40  # nested brackets and CASEs; sqlglot recurses, and Python's stack is finite
STATEMENTS_PER_TEXT_MAX = 1_000
IDENTIFIER_BYTES_MAX = 63  # PostgreSQL's NAMEDATALEN - 1
COLUMNS_MAX = 1_600  # PostgreSQL's
PREPARED_STATEMENTS_MAX = 1_000  # per session
PORTALS_MAX = 200  # per session

# --- transactions ---------------------------------------------------------------------------------------------------
IDLE_IN_TRANSACTION_TIMEOUT_S = 60.0  # a pinned snapshot slows every merge
