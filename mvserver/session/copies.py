"""The state of a COPY FROM STDIN until its records are written; the routing room makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from catalog.model import Store
from mvserver import limits, sqlstates
from mvserver.errors import SqlError


class CopyTarget(Protocol):
    """The records of one COPY, from its first byte until they are written or given up. For one thread at a time."""

    @property
    def store(self) -> Store: ...
    @property
    def entity(self) -> str: ...
    @property
    def binary(self) -> bool: ...
    @property
    def columns(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def size(self) -> int:
        """Bytes kept aside."""

    def feed(self, data: bytes) -> None: ...

    def finish(self) -> None: ...

    def place(self, *, shown: bool = True) -> str:
        """As PostgreSQL's errors say where they are."""

    @property
    def keyed(self) -> bool:
        """Whether its records have keys."""

    def records(self, check: Callable[[], None]) -> Iterator[tuple[bytes | None, bytes]]:
        """Keys and values of the encoded records in their order; ``check`` raises when the statement is to stop."""

    def close(self) -> None: ...


def too_much() -> SqlError:
    return SqlError(
        sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
        "the data of a COPY is too large to be written as one",
        detail=f"Its records come to more than {limits.COPY_BYTES_MAX} bytes.",
        hint="Split it into several COPYs, each in a transaction of its own.",
    )
