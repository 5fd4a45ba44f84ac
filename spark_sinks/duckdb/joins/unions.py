"""UNION ALL: all sides append to one log."""

from __future__ import annotations

from dataclasses import dataclass

from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.logs import Log
from spark_sinks.duckdb.joins import join_sides
from spark_sinks.duckdb.joins.join_sides import Batch, Side
from spark_sinks.duckdb.state.windows import MARK, source_mark


@dataclass(frozen=True)
class UnionTables:
    """The sides keep nothing, and neither waits for the other: only the log is made."""

    sides: tuple[Side, ...]
    log: Log

    @property
    def tables(self) -> tuple[str, ...]:
        return self.log.tables

    def create_statements(self) -> list[str]:
        return logs.create_statements(self.log)

    def feed_statements(self, index: int, batch: Batch) -> list[str]:
        side = self.sides[index]
        *columns, time, record_time = batch.columns
        given = [record_time, *columns, f"make_timestamptz({time})", *([MARK] if self.log.marked else [])]
        rows = f"SELECT {', '.join(given)} FROM {join_sides.with_marks(side, batch).relation} WHERE {batch.taken}"
        return [
            *logs.append_statements(self.log, [rows]),
            *join_sides.carry_statements(side, batch),
            *logs.trim_statements(self.log),
        ]

    def low_statements(self) -> list[str]:
        """As far as the side that is behind: a window over all of them is one over all their partitions."""
        return logs.low_statements(self.log, source_mark([side.watched for side in self.sides]))
