"""The transaction of a session: PostgreSQL's states, savepoints as markers, and the DDL that waits for COMMIT.

Reads need no transaction of ours (serving's snapshots are the session's to hold), so this module is pure state: which
statements may run now, what a ROLLBACK restores, which statements COMMIT must carry out.
"""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass, field

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.session.applications import Application
from mvserver.session.copies import CopyTarget
from mvserver.session.settings.settings import SettingsState
from mvserver.sql.statements.base import Statement


class State(enum.Enum):
    IDLE = "idle"
    IMPLICIT = "implicit"  # a text of several statements, or the extended protocol between two Syncs
    BLOCK = "block"
    FAILED = "failed"


PINNING = frozenset({"repeatable read", "serializable"})
"""Levels that read one snapshot from their first query on. Serializable is the same here: transactions only read."""


@dataclass(frozen=True)
class NameScope:
    """Where names resolve and as whom: what USE and SET ROLE change, and ROLLBACK takes back."""

    database: str
    schema: str
    store: str | None
    role: str = ""


@dataclass(frozen=True)
class Restore:
    """What a transaction or savepoint goes back to."""

    settings: SettingsState
    place: NameScope
    cursors: int = 0  # how many had been declared
    portals: int = 0  # how many had been bound


@dataclass(frozen=True)
class _Savepoint:
    name: str
    restore: Restore
    queued: int
    copied: int
    application: Application | None


@dataclass
class Transaction:
    state: State = State.IDLE
    isolation: str = "read committed"
    read_only: bool = False
    queried: bool = False  # a query has run: too late for SET TRANSACTION
    of_text: bool = False  # an implicit transaction of several statements of one text
    started: dt.datetime | None = None  # what now() says in it
    queue: list[Statement] = field(default_factory=list)  # what waits for COMMIT
    queue_place: NameScope | None = None  # where it was given
    copies: list[CopyTarget] = field(default_factory=list)  # records that COMMIT writes
    application: Application | None = None  # the block is one
    _start: Restore | None = None
    _savepoints: list[_Savepoint] = field(default_factory=list)

    @property
    def status(self) -> str:
        return {State.BLOCK: "T", State.FAILED: "E"}.get(self.state, "I")

    @property
    def in_block(self) -> bool:
        return self.state in (State.BLOCK, State.FAILED)

    @property
    def is_block(self) -> bool:
        """For what needs a transaction that goes on after it: several statements of one text have one too."""
        return self.in_block or (self.state is State.IMPLICIT and self.of_text)

    @property
    def pins(self) -> bool:
        return self.isolation in PINNING and self.state in (State.BLOCK, State.IMPLICIT)

    # --- beginning and ending ---------------------------------------------------------------------------------------
    def begin(self, restore: Restore, isolation: str, read_only: bool) -> None:
        """BEGIN; an implicit transaction becomes the block, with what it has already set."""
        self.state = State.BLOCK
        self.isolation, self.read_only = isolation, read_only
        self.started = self.started or dt.datetime.now(dt.UTC)
        self._start = self._start or restore

    def begin_implicit(self, restore: Restore, isolation: str, read_only: bool, *, of_text: bool = False) -> None:
        if self.state is State.IDLE:
            self.state = State.IMPLICIT
            self.of_text = of_text
            self.isolation, self.read_only = isolation, read_only
            self.started = dt.datetime.now(dt.UTC) if of_text else None
            self._start = restore

    def fail(self) -> Restore | None:
        """After an error: a block is failed until its end; an implicit transaction ends. Returns what to restore."""
        if self.state is State.BLOCK:
            self.state = State.FAILED
            return None
        if self.state is State.IMPLICIT:
            return self.end()
        return None

    def end(self) -> Restore | None:
        """Forgets the transaction; returns what a rollback restores."""
        start = self._start
        self.state = State.IDLE
        self.started = None
        self.application = None
        self.queried = False
        self.queue = []
        self._drop_copies(0)
        self._start = None
        self._savepoints = []
        return start

    def take_queue(self) -> list[Statement]:
        queue, self.queue = self.queue, []
        return queue

    def take_copies(self) -> list[CopyTarget]:
        copies, self.copies = self.copies, []
        return copies

    def _drop_copies(self, kept: int) -> None:
        for copy in self.copies[kept:]:
            copy.close()
        del self.copies[kept:]

    # --- inside -----------------------------------------------------------------------------------------------------
    def refuse_if_failed(self) -> None:
        if self.state is State.FAILED:
            raise SqlError(
                sqlstates.IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            )

    def enqueue(self, statement: Statement, place: NameScope) -> None:
        if len(self.queue) >= limits.QUEUED_STATEMENTS_MAX:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                f"a transaction may hold at most {limits.QUEUED_STATEMENTS_MAX} statements that take effect at COMMIT",
            )
        if self.copies:
            raise SqlError(
                sqlstates.ACTIVE_SQL_TRANSACTION,
                "statements that wait for COMMIT cannot follow COPY FROM",
                hint="Commit first: a store and the catalog have no transaction in common.",
            )
        self.queue.append(statement)
        self.queue_place = place

    def set_modes(self, isolation: str | None, read_only: bool | None) -> None:
        """SET TRANSACTION: before the first query only, where it would change what was read."""
        if isolation is not None and isolation != self.isolation:
            if self.queried:
                raise SqlError(
                    sqlstates.ACTIVE_SQL_TRANSACTION, "SET TRANSACTION ISOLATION LEVEL must be called before any query"
                )
            self.isolation = isolation
        if read_only is not None:
            if self.read_only and not read_only and self.queried:
                raise SqlError(
                    sqlstates.ACTIVE_SQL_TRANSACTION,
                    "transaction read-write mode must be set before any query",
                )
            self.read_only = read_only

    # --- savepoints -------------------------------------------------------------------------------------------------
    def savepoint(self, name: str, restore: Restore) -> None:
        self._require_block("SAVEPOINT")
        self.refuse_if_failed()
        if len(self._savepoints) >= limits.SAVEPOINTS_MAX:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED, f"a transaction may have at most {limits.SAVEPOINTS_MAX} savepoints"
            )
        self._savepoints.append(_Savepoint(name, restore, len(self.queue), len(self.copies), self.application))

    def release(self, name: str) -> None:
        self._require_block("RELEASE SAVEPOINT")
        self.refuse_if_failed()
        del self._savepoints[self._find(name) :]

    def rollback_to(self, name: str) -> Restore:
        """Back to the savepoint, which stays; a failed block is whole again."""
        self._require_block("ROLLBACK TO SAVEPOINT")
        at = self._find(name)
        savepoint = self._savepoints[at]
        del self._savepoints[at + 1 :]
        del self.queue[savepoint.queued :]
        self._drop_copies(savepoint.copied)
        self.application = savepoint.application
        self.state = State.BLOCK
        return savepoint.restore

    def _find(self, name: str) -> int:
        for at in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[at].name == name:
                return at
        raise SqlError(sqlstates.INVALID_SAVEPOINT, f'savepoint "{name}" does not exist')

    def _require_block(self, command: str) -> None:
        if not self.in_block:
            raise SqlError(sqlstates.NO_ACTIVE_SQL_TRANSACTION, f"{command} can only be used in transaction blocks")
