"""The wire's Backend: who may open a session, with which settings it starts, and the registry of the open ones."""

from __future__ import annotations

from catalog.model import Role
from catalog.refusals import no_connect
from mvserver import sqlstates
from mvserver.errors import SqlError, fatal
from mvserver.front import Startup
from mvserver.session.context import SessionContext
from mvserver.session.registry import ConnectionLimits, SessionRegistry
from mvserver.session.services import SessionServices
from mvserver.session.session import Session
from mvserver.session.settings.settings import SessionSettings, parse_options
from mvserver.session.state import SessionState

_NOT_SETTINGS = frozenset({"user", "database", "options", "replication"})


class SessionBackend:
    """Implements ``mvserver.front.Backend``."""

    def __init__(self, services: SessionServices) -> None:
        self._services = services
        self.registry = SessionRegistry()

    def open_session(self, startup: Startup) -> Session:
        role = self._role(startup)
        context = SessionContext(role=role.name, database=startup.database, session_role=role.name)
        settings = self._settings(startup, role, context)
        session_id = self.registry.new_id()
        session = Session(
            session_id,
            SessionState(session_id, self._services, startup, settings, context, role, self.registry),
            on_close=lambda: self.registry.remove(session_id),
        )
        self.registry.add(session, startup, self._limits(role))
        return session

    def _role(self, startup: Startup) -> Role:
        """The role that logs in, and may: here, and into this database."""
        directory = self._services.directory
        role = directory.role(startup.user)
        if role is None:
            raise SqlError(
                sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
                f'role "{startup.user}" does not exist',
                severity="FATAL",
            )
        if not role.can_login:
            raise SqlError(
                sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
                f'role "{startup.user}" is not permitted to log in',
                severity="FATAL",
            )
        allowed = directory.may_connect(role.name, startup.database)
        if allowed is None:
            raise fatal(sqlstates.INVALID_CATALOG_NAME, f'database "{startup.database}" does not exist')
        if not allowed:
            refused = no_connect(startup.database)
            refused.severity = "FATAL"
            raise refused
        return role

    def _limits(self, role: Role) -> ConnectionLimits:
        """None holds for a superuser: somebody must be able to come in and look."""
        if role.superuser:
            return ConnectionLimits()
        own = role.connection_limit if role.connection_limit >= 0 else None
        return ConnectionLimits(self._services.unreserved_connections, own)

    def _settings(self, startup: Startup, role: Role, context: SessionContext) -> SessionSettings:
        settings = SessionSettings(
            {
                **self._services.setting_defaults,
                "role": "none",
                "session_authorization": role.name,
                "is_superuser": "on" if role.superuser else "off",
            }
        )
        for name, value in role.settings:
            try:
                settings.start_with(name, value)
            except SqlError as error:  # it was right when it was set
                context.warning(f'setting "{name}" of role "{role.name}" is left out: {error.message}')
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
