"""The neighbours of the session room, as the few calls it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from catalog.model import Role
from mvserver.errors import SqlError
from mvserver.front import Field, Result
from mvserver.serving.api import PullService
from mvserver.session.context import SessionContext
from mvserver.session.copies import CopyTarget
from mvserver.session.cursors.cursor_rows import cursor_memory
from mvserver.session.deadlines import Deadlines
from mvserver.session.held_memory import HeldMemory
from mvserver.session.large_texts import LargeTexts
from mvserver.session.prepared import prepared_memory
from mvserver.session.reads.watchdog import Watchdog
from mvserver.session.results import spool_memory
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.copying import CopyFrom
from mvserver.streaming.api import PresentEnds, QueryStatus


class StatementRouter(Protocol):
    """``mvserver.routing``: everything that is neither a pull query nor a statement about the session."""

    def execute(self, statement: Statement, context: SessionContext) -> Result: ...

    def fields(self, statement: Statement, context: SessionContext) -> tuple[Field, ...] | None:
        """The columns of its result, without running it."""

    def validate(self, statement: Statement, context: SessionContext, earlier: Sequence[Statement] = ()) -> None:
        """All reasons for which it would be refused after the ``earlier`` ones, without effect."""

    def execute_all(self, statements: Sequence[Statement], context: SessionContext) -> Sequence[Result]:
        """All of them, in order, or none."""

    def copy_target(self, statement: CopyFrom, context: SessionContext) -> CopyTarget:
        """Where the rows of a COPY FROM go until they are written."""

    def write_copies(self, copies: Sequence[CopyTarget], check: Callable[[], None]) -> None:
        """All records, into the one store of all of them, or none; ``check`` raises when the statement is to stop."""


class ViewStates(Protocol):
    """The part of the streaming room that reads ask."""

    def status(self, query_id: str) -> QueryStatus: ...

    def wait_while_filling(self, view_ids: Sequence[str], timeout_s: float) -> None: ...

    def refuse_empty(self, view_ids: Sequence[str]) -> None:
        """55000 with the cause where the query of one of them failed before it took anything."""

    def failures(self) -> int:
        """How many times queries have failed since the start: a greater number says to look again."""

    def present_ends(self, view_ids: Sequence[str]) -> PresentEnds:
        """Asks the sources of the views where they end now, without waiting for their answers."""

    def confirmed_at(self, view_ids: Sequence[str]) -> float | None:
        """A moment, in seconds since the epoch, of which all of the views have all that their sources had; None where
        one of them has never had."""


class Directory(Protocol):
    """Who may connect, and to what, as the catalog has it now."""

    def generation(self) -> int:
        """Another number whenever anything has changed."""

    def role(self, name: str) -> Role | None: ...

    def role_by_oid(self, oid: int) -> Role | None: ...

    def is_member(self, name: str, role: Role) -> bool:
        """Whether the role of this name may act as the other one."""

    def may_connect(self, name: str, database: str) -> bool | None:
        """Whether the role has CONNECT there; None where there is no such database."""

    def query_of_view(self, view_id: str) -> tuple[str, str] | None:
        """The view's name and the id of the continuous query that keeps it."""


class OpenSession(Protocol):
    """What others may do to a session."""

    @property
    def id(self) -> int: ...
    @property
    def session_role(self) -> str: ...
    def cancel(self) -> bool: ...
    def terminate(self, error: SqlError) -> None: ...


class OpenSessions(Protocol):
    def by_process(self, process: int) -> OpenSession | None:
        """By the number that its client knows, and pg_stat_activity shows."""


class TextRewriter(Protocol):
    """buenavista's Rewriter."""

    def rewrite(self, sql: str) -> str: ...


@dataclass(frozen=True)
class SessionServices:
    parse: Callable[[str], Sequence[Statement]]
    router: StatementRouter
    pulls: PullService
    views: ViewStates
    directory: Directory
    rewriter: TextRewriter | None = None
    extensions: Sequence[Any] = ()  # buenavista's Extension objects
    deadlines: Deadlines = field(default_factory=Deadlines)
    watchdog: Watchdog = field(default_factory=Watchdog)
    large_texts: LargeTexts = field(default_factory=LargeTexts)
    explain_failure: Callable[[Exception], SqlError | None] = lambda error: None  # of an engine, in a user's words
    prepared_memory: HeldMemory = field(default_factory=prepared_memory)
    cursor_memory: HeldMemory = field(default_factory=cursor_memory)
    spool_memory: HeldMemory = field(default_factory=spool_memory)
    unreserved_connections: int | None = None  # what is left to those who are no superusers; None: all
    setting_defaults: Mapping[str, str] = field(default_factory=dict)  # what the server's settings make of a session's
