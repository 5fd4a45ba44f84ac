"""Rows that are only handed on: a query without a state of its own fills its outbox and keeps nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.quoting import quoted
from spark_sinks.duckdb.changes.outbox import Outbox
from spark_sinks.duckdb.joins.join_sides import Batch
from spark_sinks.duckdb.names import qualified


@dataclass(frozen=True)
class SentRows:
    outbox: Outbox

    @property
    def table(self) -> str:
        return self.outbox.table

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.outbox.table,)

    def create_statements(self) -> list[str]:
        return self.outbox.create_statements()

    @property
    def shown(self) -> str:
        """What waits to be sent."""
        columns = ", ".join(quoted(name) for name, _ in self.outbox.columns)
        return f"SELECT {columns} FROM {qualified(self.table)}"

    def take_statements(self, batch: Batch) -> tuple[str, ...]:
        columns = ", ".join(batch.columns)
        return self.outbox.append_statements(f"SELECT false, {columns} FROM {batch.relation} WHERE {batch.passing}")
