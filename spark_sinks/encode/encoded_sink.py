"""A sink whose records are encoded on their way: what queries make of rows is JSON.

A record that cannot be encoded is an error, or is refused alone where its records allow that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mvserver.errors import SqlError
from spark_sinks.base import Refusal, SinkRecords, TransactionalSink
from spark_sinks.encode.sink_around import SinkAround
from spark_sinks.encode.written import Encode

_OF_RECORDS = ("22", "54")  # the classes of SQLSTATEs that blame a value, and not what encodes it


class EncodedSink(SinkAround):
    """Around the sink of a store, which gets bytes. Parts without an encoder are as they come."""

    def __init__(self, sink: TransactionalSink, value: Encode | None, key: Encode | None = None) -> None:
        super().__init__(sink)
        self._value = value
        self._key = key

    def _changed(self, records: SinkRecords) -> SinkRecords:
        return encoded(records, self._key, self._value)


def encoded(records: SinkRecords, key: Encode | None, value: Encode | None) -> SinkRecords:
    """Parts without an encoder are as they come; a part that is missing stays so, and so do refused records."""
    if records.refusals is None:
        return replace(records, keys=_encoded(records.keys, key), values=_encoded(records.values, value))
    keys, values, refusals = list(records.keys), list(records.values), list(records.refusals.found)
    for number, refusal in enumerate(refusals):
        if refusal is not None:
            continue
        for parts, encode in ((keys, key), (values, value)):
            try:
                (parts[number],) = _encoded(parts[number : number + 1], encode)
            except SqlError as error:
                if error.sqlstate[:2] not in _OF_RECORDS:
                    raise
                refusals[number] = refusals[number] or Refusal(error.message, in_key=parts is keys)
    return replace(records, keys=keys, values=values, refusals=replace(records.refusals, found=refusals))


def _encoded(parts: Sequence[bytes | None], encode: Encode | None) -> Sequence[bytes | None]:
    return parts if encode is None else [None if part is None else encode(part) for part in parts]
