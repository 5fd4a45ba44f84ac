"""A sink whose records may be written again: each has an identity, by which readers leave out what they have."""

from __future__ import annotations

import json
from dataclasses import replace

from spark_sinks.base import SinkRecords, TransactionalSink
from spark_sinks.encode.sink_around import SinkAround


class IdentifiedSink(SinkAround):
    """Around a sink that takes the JSON that queries make of rows: to each object the field ``name`` is added. A record
    without a value stays so."""

    def __init__(self, sink: TransactionalSink, query_id: str, name: str) -> None:
        super().__init__(sink)
        self._query_id = query_id
        self._field = json.dumps(name)

    def _changed(self, records: SinkRecords) -> SinkRecords:
        places = zip(records.values, records.places, strict=True)
        values = [None if value is None else self._identified(value, place) for value, place in places]
        return replace(records, values=values)

    def _identified(self, value: bytes, place: str) -> bytes:
        """A JSON object with one more field."""
        comma = b"" if value == b"{}" else b","
        return value[:-1] + comma + f"{self._field}:{json.dumps(f'{self._query_id}/{place}')}".encode() + b"}"
