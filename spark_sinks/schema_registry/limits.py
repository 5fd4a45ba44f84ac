"""Bounds of the traffic with schema registries."""

from __future__ import annotations

REQUEST_TIMEOUT_S = 5.0  # to connect, and between two parts of an answer
RETRIES_MAX = 1  # of a request that met a broken connection or a failing server
RETRY_PAUSE_MS = 200
SCHEMA_BYTES_MAX = 1024 * 1024  # of a schema with all that it refers to
REFERENCES_MAX = 100  # schemas that a schema refers to, by whatever way
