"""How a query writes to a table, whatever the kind of its store: when it commits, and how it tries again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TableProperty:
    """A whole number within bounds, in CREATE TABLE."""

    name: str
    default: int
    least: int
    most: int

    def of(self, properties: Mapping[str, str]) -> int:
        return int(properties.get(self.name, self.default))


COMMIT_INTERVAL = TableProperty("commit.interval.millis", 10_000, 100, 3_600_000)
COMMIT_ROWS = TableProperty("commit.rows.max", 100_000, 1_000, 1_000_000)
FILE_BYTES = TableProperty("file.bytes.max", 128 << 20, 1 << 20, 1 << 30)
RETRY_ATTEMPTS = TableProperty("retry.attempts", 3, 1, 10)
RETRY_BACKOFF = TableProperty("retry.backoff.millis", 500, 10, 10_000)

TABLE_PROPERTIES = (COMMIT_INTERVAL, COMMIT_ROWS, FILE_BYTES, RETRY_ATTEMPTS, RETRY_BACKOFF)


@dataclass(frozen=True)
class TableOptions:
    commit_interval_s: float  # between two commits, unless so many rows wait
    commit_rows_max: int
    file_bytes_max: int
    retry_attempts: int  # of a commit, before the query is shown as stalled
    retry_backoff_s: float  # behind the first of them; twice as long behind each other one

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> TableOptions:
        """``properties`` are checked."""
        return cls(
            commit_interval_s=COMMIT_INTERVAL.of(properties) / 1000,
            commit_rows_max=COMMIT_ROWS.of(properties),
            file_bytes_max=FILE_BYTES.of(properties),
            retry_attempts=RETRY_ATTEMPTS.of(properties),
            retry_backoff_s=RETRY_BACKOFF.of(properties) / 1000,
        )
