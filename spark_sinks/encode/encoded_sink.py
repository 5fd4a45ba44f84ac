"""A sink whose values are not JSON and have no schema: what queries make of rows is encoded on its way."""

from __future__ import annotations

from dataclasses import replace

from spark_sinks.base import Position, SinkRecords, TransactionalSink
from spark_sinks.encode.written import Encode


class EncodedSink:
    """Around the sink of a store. Deletions have no value, and stay so."""

    def __init__(self, sink: TransactionalSink, encode: Encode) -> None:
        self._sink = sink
        self._encode = encode

    def committed_position(self, *, expected: bool = False) -> Position | None:
        return self._sink.committed_position(expected=expected)

    def renew(self, position: Position) -> None:
        self._sink.renew(position)

    def write(self, records: SinkRecords, position: Position) -> None:
        values = [None if value is None else self._encode(value) for value in records.values]
        self._sink.write(replace(records, values=values), position)

    def close(self) -> None:
        self._sink.close()
