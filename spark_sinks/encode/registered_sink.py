"""A sink whose records have the ids of their schemas before them. The schemas are registered when the sink opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spark_sinks.base import Position, SinkRecords, TransactionalSink
from spark_sinks.encode.written import WrittenForm
from spark_sinks.schema_registry.base import RegistryClient


@dataclass(frozen=True)
class RegisteredForm:
    """How one part of the records, keys or values, is written; ``subject`` is where its schema is registered."""

    subject: str
    form: WrittenForm

    def header(self, client: RegistryClient) -> bytes:
        return b"\0" + client.register(self.subject, self.form.kind, self.form.schema).to_bytes(4, "big")


class RegisteredSink:
    """Around the sink of a store, which gets bytes. Parts without a form are as the query makes them."""

    def __init__(
        self, sink: TransactionalSink, client: RegistryClient, value: RegisteredForm | None, key: RegisteredForm | None
    ) -> None:
        self._sink = sink
        self._value = None if value is None else (value.header(client), value.form)
        self._key = None if key is None else (key.header(client), key.form)

    def committed_position(self, *, expected: bool = False) -> Position | None:
        return self._sink.committed_position(expected=expected)

    def renew(self, position: Position) -> None:
        self._sink.renew(position)

    def write(self, records: SinkRecords, position: Position) -> None:
        keys, values = _encoded(records.keys, self._key), _encoded(records.values, self._value)
        self._sink.write(replace(records, keys=keys, values=values), position)

    def close(self) -> None:
        self._sink.close()


def _encoded(parts: Sequence[bytes | None], form: tuple[bytes, WrittenForm] | None) -> Sequence[bytes | None]:
    if form is None:
        return parts
    header, written = form
    return [None if part is None else header + written.encode(part) for part in parts]
