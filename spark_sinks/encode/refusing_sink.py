"""A sink whose records may be refused one by one. What then becomes of them is the store's matter."""

from __future__ import annotations

from dataclasses import replace

from spark_sinks.base import Refusals, SinkRecords, TransactionalSink
from spark_sinks.encode.sink_around import SinkAround


class RefusingSink(SinkAround):
    """``keyed``: the records are rows that their keys tell apart."""

    def __init__(self, sink: TransactionalSink, *, keyed: bool) -> None:
        super().__init__(sink)
        self._keyed = keyed

    def _changed(self, records: SinkRecords) -> SinkRecords:
        return replace(records, refusals=Refusals([None] * len(records.keys), self._keyed))
