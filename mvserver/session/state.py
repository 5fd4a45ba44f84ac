"""The state of one session, shared by the modules that run its statements: it only keeps its parts in step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from catalog.model import Role
from mvserver import sqlstates
from mvserver.claims import is_claim
from mvserver.errors import SqlError
from mvserver.front import Startup
from mvserver.lenses.parser import is_program
from mvserver.pgcatalog.settings_table import DEFAULTS
from mvserver.quoting import quoted
from mvserver.serving.api import PullScope
from mvserver.session.clock import StatementClock
from mvserver.session.context import SessionContext
from mvserver.session.cursors.cursors import Cursors
from mvserver.session.held_memory import HeldShare
from mvserver.session.portals import Portals
from mvserver.session.prepared import PreparedStatements
from mvserver.session.services import OpenSessions, SessionServices
from mvserver.session.settings.settings import SessionSettings
from mvserver.session.transactions import NameScope, Restore, Transaction
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.processors import Lenses


@dataclass
class SessionState:
    session_id: int
    services: SessionServices
    startup: Startup
    settings: SessionSettings
    context: SessionContext
    role: Role  # who has logged in
    sessions: OpenSessions
    transaction: Transaction = field(default_factory=Transaction)
    prepared: PreparedStatements = field(init=False)
    portals: Portals = field(default_factory=Portals)
    cursors: Cursors = field(init=False)
    spooled: HeldShare = field(init=False)
    clock: StatementClock | None = None  # of the statement that runs now
    at_once: bool = False  # the call that runs must not wait: it answers Postponed instead

    def __post_init__(self) -> None:
        self.prepared = PreparedStatements(self.services.prepared_memory.share(self.role.name))
        self.cursors = Cursors(self.services.cursor_memory.share(self.role.name))
        self.spooled = self.services.spool_memory.share(self.role.name)
        self._scope: PullScope | None = None
        self.context.scope = self.scope
        self._roles_known = self.services.directory.generation()
        self._current_role = self.role  # another one by SET ROLE
        self.follow_search_path()
        self._home = self.place()
        self.publish()

    def parse(self, text: str) -> Sequence[Statement]:
        """The statements of a text. With dialect = lenses a text that begins as a program is one statement."""
        if self.settings.current["dialect"] == "lenses" and is_program(text):
            return [Lenses(text, text=text)]
        return self.services.parse(text)

    # --- roles ------------------------------------------------------------------------------------------------------
    @property
    def knows_roles(self) -> bool:
        """Whether there is nothing to follow."""
        return self.services.directory.generation() == self._roles_known

    def follow_roles(self) -> None:
        """Before each call: roles are renamed, made superusers and dropped while their sessions are open."""
        generation = self.services.directory.generation()
        if generation == self._roles_known:
            return
        self._roles_known = generation
        known = (self.role, self._current_role)
        self.role, self._current_role = (self._present(role) for role in known)
        if known != (self.role, self._current_role):
            if self.settings.current["role"] != "none":
                self.settings.force("role", self._current_role.name)
            self.settings.fix("session_authorization", self.role.name)
            self.publish()

    def _present(self, role: Role) -> Role:
        found = self.services.directory.role_by_oid(role.oid)
        if found is None:
            raise SqlError(
                sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
                f'role "{role.name}" was concurrently dropped',
                severity="FATAL",
            )
        return found

    def set_role(self, name: str | None, *, local: bool) -> None:
        """SET ROLE: one of those that the one who logged in is a member of; None or "none" is that one itself."""
        if name is not None and name != "none":
            role = self.services.directory.role(name)
            if role is None:
                raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'role "{name}" does not exist')
            if not self.services.directory.is_member(self.role.name, role):
                raise SqlError(sqlstates.INSUFFICIENT_PRIVILEGE, f'permission denied to set role "{name}"')
        self.settings.force("role", name or "none", local=local)
        self.publish()

    def _follow_role_setting(self) -> None:
        """The setting may have changed by SET, by the end of SET LOCAL, or by a rollback."""
        name = self.settings.current["role"]
        if name == "none":
            self._current_role = self.role
        elif name != self._current_role.name:
            self._current_role = self.services.directory.role(name) or self.role
        self.context.role, self.context.session_role = self._current_role.name, self.role.name
        if self.settings.flag("is_superuser") != self._current_role.superuser:
            self.settings.fix("is_superuser", "on" if self._current_role.superuser else "off")

    # --- names ------------------------------------------------------------------------------------------------------
    def place(self) -> NameScope:
        return NameScope(self.context.database, self.context.schema, self.context.store, self.context.role)

    def scope(self) -> PullScope:
        if self._scope is None:
            settings = self.context.settings
            self._scope = PullScope(
                database=self.context.database,
                search_path=self.settings.search_path(),
                role=self.context.role,
                reads_streams=settings["mv.stream_reads"] == "bounded",
                as_of=settings["mv.as_of"],
                session_role=self.context.session_role,
                row_security=settings["row_security"] == "on",
                claims=tuple(sorted((name, value) for name, value in settings.items() if is_claim(name))),
                time_zone=settings["timezone"],
                settings=tuple((name, value) for name, value in settings.items() if DEFAULTS.get(name) != value),
                backend_pid=self.startup.process or self.session_id,
            )
        return self._scope

    def follow_search_path(self) -> None:
        """After SET search_path: unqualified names are made in the first schema of the path, as in PostgreSQL."""
        path = self.settings.search_path()
        if path:
            self.context.schema = path[0]

    def follow_place(self, before: NameScope) -> None:
        """After USE: the schema it names becomes the search path; another database begins at its ``public``."""
        after = self.place()
        if (after.database, after.schema) != (before.database, before.schema):
            self.settings.set("search_path", quoted(after.schema))
            self.publish()

    # --- restoring --------------------------------------------------------------------------------------------------
    def restore_point(self) -> Restore:
        return Restore(self.settings.state(), self.place(), self.cursors.mark, self.portals.mark)

    def restore(self, point: Restore | None) -> bool:
        if point is None:
            return False
        self.cursors.discard_since(point.cursors)
        self.portals.discard_since(point.portals)
        self.settings.restore(point.settings)
        self.go_to(point.place)
        self.publish()
        return True

    def discard_all(self) -> None:
        """DISCARD ALL: all is as it was at the start, how names resolve too."""
        if not self._is_at_home():
            self.settings.reset_all()
            self.go_to(self._home)
            self.publish()
        self.prepared.clear()
        self.portals.clear()
        self.cursors.clear()

    def _is_at_home(self) -> bool:
        context, home = self.context, self._home
        return self.settings.is_reset and (context.database, context.schema, context.store) == (
            home.database,
            home.schema,
            home.store,
        )

    def go_to(self, place: NameScope) -> None:
        """Its role counts until the settings are published again: for what COMMIT carries out."""
        self.context.database, self.context.schema, self.context.store = place.database, place.schema, place.store
        self.context.role = place.role

    # --- settings ---------------------------------------------------------------------------------------------------
    def publish(self) -> None:
        """Handlers and plans see the settings and places as they are now."""
        self._scope = None
        self._follow_role_setting()
        self.context.settings = {**self.settings.current, **self.transaction_settings()}

    def transaction_settings(self) -> Mapping[str, str]:
        """The settings that are the transaction's own; outside of one, what the next would have."""
        if self.transaction.status == "I":
            isolation = self.settings.current["default_transaction_isolation"]
            read_only = self.settings.flag("default_transaction_read_only")
        else:
            isolation, read_only = self.transaction.isolation, self.transaction.read_only
        return {"transaction_isolation": isolation, "transaction_read_only": "on" if read_only else "off"}
