"""A sink whose records all have a value: a row that is gone is an object of its key, with a field that says so."""

from __future__ import annotations

import json
from dataclasses import replace

from spark_sinks.base import Position, SinkRecords, TransactionalSink


class DeletingSink:
    """Around a sink; ``name`` is the field. Keys are JSON objects of the columns by which rows are told apart."""

    def __init__(self, sink: TransactionalSink, name: str) -> None:
        self._sink = sink
        self._marked = f",{json.dumps(name)}:true}}".encode()

    def committed_position(self, *, expected: bool = False) -> Position | None:
        return self._sink.committed_position(expected=expected)

    def renew(self, position: Position) -> None:
        self._sink.renew(position)

    def write(self, records: SinkRecords, position: Position) -> None:
        pairs = zip(records.keys, records.values, strict=True)
        values = [self._gone(key) if value is None else value for key, value in pairs]
        self._sink.write(replace(records, values=values), position)

    def close(self) -> None:
        self._sink.close()

    def _gone(self, key: bytes | None) -> bytes | None:
        return None if key is None else key[:-1] + self._marked
