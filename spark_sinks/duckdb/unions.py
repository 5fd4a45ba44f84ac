"""UNION ALL: both sides append to one log."""

from __future__ import annotations

from dataclasses import dataclass

from spark_sinks.duckdb import logs
from spark_sinks.duckdb.join_sides import Batch, Side
from spark_sinks.duckdb.logs import Log


@dataclass(frozen=True)
class UnionTables:
    """The sides keep nothing, and neither waits for the other: only the log is made."""

    left: Side
    right: Side
    log: Log

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.log.table,)

    def create_statements(self) -> list[str]:
        return logs.create_statements(self.log)

    def feed_statements(self, index: int, batch: Batch) -> list[str]:
        *columns, time, record_time = batch.columns
        rows = (
            f"SELECT {', '.join([record_time, *columns, f'make_timestamptz({time})'])} FROM {batch.relation} "
            f"WHERE {batch.taken}"
        )
        return [*logs.append_statements(self.log, [rows]), *logs.trim_statements(self.log)]
