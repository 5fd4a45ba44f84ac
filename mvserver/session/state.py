"""The state of one session, shared by the modules that run its statements: it only keeps its parts in step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mvserver.pgcatalog.settings_table import DEFAULTS
from mvserver.pgwire.backend import Startup
from mvserver.serving.api import PullScope
from mvserver.session.clock import StatementClock
from mvserver.session.context import SessionContext
from mvserver.session.cursors import Cursors
from mvserver.session.portals import Portals
from mvserver.session.prepared import PreparedStatements
from mvserver.session.services import Services
from mvserver.session.settings import Settings
from mvserver.session.transactions import Place, Restore, Transaction


@dataclass
class SessionState:
    session_id: int
    services: Services
    startup: Startup
    settings: Settings
    context: SessionContext
    transaction: Transaction = field(default_factory=Transaction)
    prepared: PreparedStatements = field(default_factory=PreparedStatements)
    portals: Portals = field(default_factory=Portals)
    cursors: Cursors = field(default_factory=Cursors)
    clock: StatementClock | None = None  # of the statement that runs now

    def __post_init__(self) -> None:
        self._scope: PullScope | None = None
        self.follow_search_path()
        self._home = self.place()
        self.publish()

    # --- names ------------------------------------------------------------------------------------------------------
    def place(self) -> Place:
        return Place(self.context.database, self.context.schema, self.context.store)

    def scope(self) -> PullScope:
        if self._scope is None:
            settings = self.context.settings
            self._scope = PullScope(
                database=self.context.database,
                search_path=self.settings.search_path(),
                role=self.context.role,
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

    def follow_place(self, before: Place) -> None:
        """After USE: the schema it names becomes the search path; another database begins at its ``public``."""
        after = self.place()
        if (after.database, after.schema) != (before.database, before.schema):
            self.settings.set("search_path", '"' + after.schema.replace('"', '""') + '"')
            self.publish()

    # --- restoring --------------------------------------------------------------------------------------------------
    def restore_point(self) -> Restore:
        return Restore(self.settings.state(), self.place(), self.cursors.mark)

    def restore(self, point: Restore | None) -> bool:
        if point is None:
            return False
        self.cursors.discard_since(point.cursors)
        self.settings.restore(point.settings)
        self.go_to(point.place)
        self.publish()
        return True

    def go_home(self) -> None:
        """DISCARD ALL: names resolve as they did at the start."""
        self.settings.reset_all()
        self.go_to(self._home)
        self.publish()

    def go_to(self, place: Place) -> None:
        self.context.database, self.context.schema, self.context.store = place.database, place.schema, place.store

    # --- settings ---------------------------------------------------------------------------------------------------
    def publish(self) -> None:
        """Handlers and plans see the settings and places as they are now."""
        self._scope = None
        self.context.settings = {**self.settings.current, **self.transaction_settings()}
        self.context.in_transaction_block = self.transaction.in_block

    def transaction_settings(self) -> Mapping[str, str]:
        """The settings that are the transaction's own; outside of one, what the next would have."""
        if self.transaction.status == "I":
            isolation = self.settings.current["default_transaction_isolation"]
            read_only = self.settings.flag("default_transaction_read_only")
        else:
            isolation, read_only = self.transaction.isolation, self.transaction.read_only
        return {"transaction_isolation": isolation, "transaction_read_only": "on" if read_only else "off"}
