"""The PostgreSQL version that clients are told: they shape their catalog queries by it."""

from __future__ import annotations

SERVER_VERSION = "15.8"
SERVER_VERSION_NUM = 150008
VERSION_TEXT = f"PostgreSQL {SERVER_VERSION} (mvserver), 64-bit"
