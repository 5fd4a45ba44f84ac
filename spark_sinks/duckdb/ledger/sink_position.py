"""The position of a query whose sink has no transactions, as the ledger keeps it."""

from __future__ import annotations

from spark_sinks.base import Position
from spark_sinks.duckdb.ledger.ledger import Ledger
from spark_sinks.duckdb.writer import Writer


class SinkPosition:
    """A :class:`spark_sinks.base.KeptPosition` of one query."""

    def __init__(self, writer: Writer, query_id: str) -> None:
        self._writer = writer
        self._query_id = query_id

    def read(self) -> Position | None:
        with self._writer.read_cursor() as cursor:
            return Ledger(cursor).sink_position(self._query_id)

    def write(self, position: Position) -> None:
        with self._writer.transaction() as ledger:
            ledger.set_sink_position(self._query_id, position)
