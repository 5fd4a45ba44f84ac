"""Bounds of the traffic with schema registries."""

from __future__ import annotations

REQUEST_TIMEOUT_S = 5.0  # to connect, and between two parts of an answer
RETRIES_MAX = 1  # of a request that met a broken connection or a failing server
RETRY_PAUSE_MS = 200
ABSENCE_KEPT_S = 30.0  # for so long an id counts as absent that a registry does not have
ABSENT_IDS_MAX = 10_000  # of one entity; bytes that are no records can look like any id
PAUSE_AFTER_FAILURE_S = 5.0  # a registry that did not answer is not asked again by a running batch
COMPILE_TIMEOUT_S = 60.0  # of one schema of Protobuf, on a busy machine a hundred times what it takes
SCHEMA_BYTES_MAX = 1024 * 1024  # of a schema with all that it refers to
REFERENCES_MAX = 100  # schemas that a schema refers to, by whatever way
