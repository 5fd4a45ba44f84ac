"""A sink whose records are not JSON and have no ids of schemas: what queries make of rows is encoded on its way."""

from __future__ import annotations

from spark_sinks.base import Position, SinkRecords, TransactionalSink
from spark_sinks.encode.refused import encoded
from spark_sinks.encode.written import Encode


class EncodedSink:
    """Around the sink of a store. Parts without an encoder are as they come; a part that is missing stays so."""

    def __init__(self, sink: TransactionalSink, value: Encode | None, key: Encode | None = None) -> None:
        self._sink = sink
        self._value = value
        self._key = key

    def committed_position(self, *, expected: bool = False) -> Position | None:
        return self._sink.committed_position(expected=expected)

    def renew(self, position: Position) -> None:
        self._sink.renew(position)

    def write(self, records: SinkRecords, position: Position) -> None:
        self._sink.write(encoded(records, self._key, self._value), position)

    def close(self) -> None:
        self._sink.close()
