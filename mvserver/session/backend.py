"""The wire's Backend: who may open a session, with which settings it starts, and the registry of the open ones."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgwire.backend import Startup
from mvserver.session.context import SessionContext
from mvserver.session.registry import SessionRegistry
from mvserver.session.services import Services
from mvserver.session.session import Session
from mvserver.session.settings import Settings, parse_options
from mvserver.session.state import SessionState

_NOT_SETTINGS = frozenset({"user", "database", "options", "replication"})


class SessionBackend:
    """Implements ``mvserver.pgwire.backend.Backend``."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.registry = SessionRegistry()

    def open_session(self, startup: Startup) -> Session:
        directory = self._services.directory
        if not directory.has_role(startup.user):
            raise SqlError(
                sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
                f'role "{startup.user}" does not exist',
                severity="FATAL",
            )
        if not directory.may_log_in(startup.user):
            raise SqlError(
                sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
                f'role "{startup.user}" is not permitted to log in',
                severity="FATAL",
            )
        if not directory.has_database(startup.database):
            raise SqlError(
                sqlstates.INVALID_CATALOG_NAME, f'database "{startup.database}" does not exist', severity="FATAL"
            )
        settings = self._settings(startup)
        context = SessionContext(role=startup.user, database=startup.database)
        session_id = self.registry.new_id()
        session = Session(
            session_id,
            SessionState(session_id, self._services, startup, settings, context),
            on_close=lambda: self.registry.remove(session_id),
        )
        self.registry.add(session, startup)
        return session

    def _settings(self, startup: Startup) -> Settings:
        settings = Settings(
            {
                **self._services.setting_defaults,
                "session_authorization": startup.user,
                "is_superuser": "on" if self._services.directory.is_superuser(startup.user) else "off",
            }
        )
        try:
            for name, value in parse_options(startup.parameters.get("options", "")):
                settings.start_with(name, value)
            for name, value in startup.parameters.items():
                if name not in _NOT_SETTINGS and not name.startswith("_pq_."):
                    settings.start_with(name, value)
        except SqlError as error:
            error.severity = "FATAL"
            raise
        return settings

    def close(self) -> None:
        """Ends all sessions; used at shutdown, after the wire has drained."""
        self.registry.terminate_all()
        self._services.deadlines.close()
