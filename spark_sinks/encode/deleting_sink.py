"""A sink whose records all have a value: a row that is gone is an object of its key, with a field that says so."""

from __future__ import annotations

import json
from dataclasses import replace

from spark_sinks.base import SinkRecords, TransactionalSink
from spark_sinks.encode.sink_around import SinkAround


class DeletingSink(SinkAround):
    """Around a sink; ``name`` is the field. Keys are JSON objects of the columns by which rows are told apart."""

    def __init__(self, sink: TransactionalSink, name: str) -> None:
        super().__init__(sink)
        self._marked = f",{json.dumps(name)}:true}}".encode()

    def _changed(self, records: SinkRecords) -> SinkRecords:
        pairs = zip(records.keys, records.values, strict=True)
        values = [self._gone(key) if value is None else value for key, value in pairs]
        return replace(records, values=values)

    def _gone(self, key: bytes | None) -> bytes | None:
        return None if key is None else key[:-1] + self._marked
