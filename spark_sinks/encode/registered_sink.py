"""A sink whose records have the ids of their schemas before them. The schemas are registered when the sink opens."""

from __future__ import annotations

from dataclasses import dataclass

from spark_sinks.base import Position, SinkRecords, TransactionalSink
from spark_sinks.encode.refused import encoded
from spark_sinks.encode.written import Encode, WrittenForm
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
        self._value = None if value is None else _with_header(value.header(client), value.form.encode)
        self._key = None if key is None else _with_header(key.header(client), key.form.encode)

    def committed_position(self, *, expected: bool = False) -> Position | None:
        return self._sink.committed_position(expected=expected)

    def renew(self, position: Position) -> None:
        self._sink.renew(position)

    def write(self, records: SinkRecords, position: Position) -> None:
        self._sink.write(encoded(records, self._key, self._value), position)

    def close(self) -> None:
        self._sink.close()


def _with_header(header: bytes, encode: Encode) -> Encode:
    return lambda part: header + encode(part)
