"""A sink around another one, which changes the records on their way; all else is the inner sink's."""

from __future__ import annotations

from abc import ABC, abstractmethod

from spark_sinks.base import Position, SinkRecords, TransactionalSink


class SinkAround(ABC):
    """Around a sink of records."""

    def __init__(self, sink: TransactionalSink) -> None:
        self._sink = sink

    @abstractmethod
    def _changed(self, records: SinkRecords) -> SinkRecords:
        """The records that the inner sink writes."""

    def committed_position(self, *, expected: bool = False) -> Position | None:
        return self._sink.committed_position(expected=expected)

    def renew(self, position: Position) -> None:
        self._sink.renew(position)

    def write(self, records: SinkRecords, position: Position) -> None:
        self._sink.write(self._changed(records), position)

    def close(self) -> None:
        self._sink.close()
