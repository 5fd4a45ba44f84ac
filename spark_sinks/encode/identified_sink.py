"""A sink whose records may be written again: each has an identity, by which readers leave out what they have."""

from __future__ import annotations

import json
from dataclasses import replace

from spark_sinks.base import Position, SinkRecords, TransactionalSink


class IdentifiedSink:
    """Around a sink that takes the JSON that queries make of rows: to each object the field ``name`` is added. A record
    without a value stays so."""

    def __init__(self, sink: TransactionalSink, query_id: str, name: str) -> None:
        self._sink = sink
        self._query_id = query_id
        self._field = json.dumps(name)

    def committed_position(self, *, expected: bool = False) -> Position | None:
        return self._sink.committed_position(expected=expected)

    def renew(self, position: Position) -> None:
        self._sink.renew(position)

    def write(self, records: SinkRecords, position: Position) -> None:
        places = zip(records.values, records.places, strict=True)
        values = [None if value is None else self._identified(value, place) for value, place in places]
        self._sink.write(replace(records, values=values), position)

    def close(self) -> None:
        self._sink.close()

    def _identified(self, value: bytes, place: str) -> bytes:
        """A JSON object with one more field."""
        comma = b"" if value == b"{}" else b","
        return value[:-1] + comma + f"{self._field}:{json.dumps(f'{self._query_id}/{place}')}".encode() + b"}"
