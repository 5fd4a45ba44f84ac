"""How records are written that have the ids of their schemas before them."""

from __future__ import annotations

from dataclasses import dataclass

from spark_sinks.encode.written import Encode, WrittenForm
from spark_sinks.schema_registry.base import RegistryClient


@dataclass(frozen=True)
class RegisteredForm:
    """How one part of the records, keys or values, is written; ``subject`` is where its schema is registered."""

    subject: str
    form: WrittenForm

    def encoder(self, client: RegistryClient) -> Encode:
        """Registers the schema, and puts its id before what the form makes."""
        header = b"\0" + client.register(self.subject, self.form.kind, self.form.schema).to_bytes(4, "big")
        return lambda part: header + self.form.encode(part)
