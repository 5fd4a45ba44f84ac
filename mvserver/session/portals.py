"""Portals: a prepared statement with its parameters, ready to be executed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.session.cursors.cursors import Cursor
from mvserver.session.prepared import PreparedStatement


@dataclass
class Portal:
    name: str
    prepared: PreparedStatement
    parameters: tuple[Any, ...]
    number: int  # in the order in which portals were bound
    ran: bool = False  # its whole result was asked for
    cursor: Cursor | None = None  # of a query that is read in parts
    created: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    scroll: ClassVar[bool] = False
    hold: ClassVar[bool] = False
    binary: ClassVar[bool] = False

    @property
    def text(self) -> str:
        return self.prepared.text

    def close(self) -> None:
        if self.cursor is not None:
            self.cursor.rows.close()


class Portals:
    def __init__(self) -> None:
        self._portals: dict[str, Portal] = {}
        self._bound = 0

    def __len__(self) -> int:
        return len(self._portals)

    def all(self) -> Sequence[Portal]:
        return tuple(self._portals.values())

    def add(self, name: str, prepared: PreparedStatement, parameters: Sequence[Any]) -> None:
        """The unnamed portal is replaced, a named one must be closed first (42P03)."""
        self.check_free(name)
        expected = len(prepared.parameter_oids)
        if len(parameters) != expected:
            raise SqlError(
                sqlstates.PROTOCOL_VIOLATION,
                f"bind message supplies {len(parameters)} parameters, "
                f'but prepared statement "{prepared.name}" requires {expected}',
            )
        if name not in self._portals and len(self._portals) >= limits.PORTALS_MAX:
            raise SqlError(
                sqlstates.CONFIGURATION_LIMIT_EXCEEDED, f"a session may have at most {limits.PORTALS_MAX} open portals"
            )
        self.discard(name)
        self._bound += 1
        self._portals[name] = Portal(name, prepared, tuple(parameters), self._bound)

    def check_free(self, name: str) -> None:
        if name and name in self._portals:
            raise SqlError(sqlstates.DUPLICATE_CURSOR, f'cursor "{name}" already exists')

    def find(self, name: str) -> Portal | None:
        return self._portals.get(name)

    def get(self, name: str) -> Portal:
        portal = self._portals.get(name)
        if portal is None:
            raise SqlError(sqlstates.INVALID_CURSOR_NAME, f'portal "{name}" does not exist')
        return portal

    def discard(self, name: str) -> None:
        portal = self._portals.pop(name, None)
        if portal is not None:
            portal.close()

    @property
    def mark(self) -> int:
        """For ``discard_since``: a moment in the order of binding."""
        return self._bound

    def discard_since(self, mark: int) -> None:
        """ROLLBACK TO SAVEPOINT: what was bound since is gone, but for the unnamed one, which may be executing this."""
        for portal in self.all():
            if portal.name and portal.number > mark:
                self.discard(portal.name)

    def clear(self) -> None:
        """At the end of each transaction, as in PostgreSQL."""
        for name in tuple(self._portals):
            self.discard(name)
