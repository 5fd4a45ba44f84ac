"""What the other rooms see of a schema registry: a schema, and the requests that a client makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

AVRO, PROTOBUF, JSON_SCHEMA = "AVRO", "PROTOBUF", "JSON"


@dataclass(frozen=True)
class RegisteredSchema:
    """``id`` never means another schema. ``references`` are the names and texts of the schemas that it imports."""

    id: int
    kind: str  # AVRO, PROTOBUF or JSON
    text: str
    references: tuple[tuple[str, str], ...] = ()
    error: str | None = None  # why nothing can be read by it


@dataclass(frozen=True)
class KnownSchemas:
    """The schemas of an entity's records that have been fetched; ``absent`` are ids that the registry does not have.
    Equal versions of one book mean equal schemas."""

    version: int
    schemas: tuple[RegisteredSchema, ...] = ()
    absent: tuple[int, ...] = ()


NO_SCHEMAS = KnownSchemas(0)


class RegistryClient(Protocol):
    """Each call ends within a bound; 08006 where the registry does not answer, 28000 where it refuses us."""

    def check(self) -> None:
        """Reaches it once, as it would be used."""

    def schema(self, id_: int) -> RegisteredSchema | None:
        """None where there is no such id."""

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The newest version; None where there is no such subject."""

    def is_compatible(self, subject: str, kind: str, text: str) -> bool:
        """Whether :meth:`register` would take the schema; true where there is no such subject."""

    def register(self, subject: str, kind: str, text: str) -> int:
        """The schema's id, new or known; 22023 where it is not compatible with the versions before it."""

    def close(self) -> None: ...
