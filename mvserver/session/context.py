"""The session as the handlers of its statements see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mvserver.front import Notice
from mvserver.serving.api import PullScope
from mvserver.session.settings.setting_values import split_identifiers


def _no_session() -> PullScope:
    raise AssertionError("no session has said how its pull queries are read")


@dataclass
class SessionContext:
    """One per connection. Only the session's own worker thread touches it, but ``cancelled`` may be asked from any."""

    role: str
    database: str
    schema: str = "public"
    store: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    cancelled: Callable[[], bool] = lambda: False
    application: str | None = None  # whose statements are being carried out
    session_role: str = ""  # who has logged in; SET ROLE makes ``role`` another
    scope: Callable[[], PullScope] = _no_session  # by which its pull queries are planned now

    @property
    def search_path(self) -> tuple[str, ...]:
        """The schemas in which a name without one is looked for, the one where new relations are made first."""
        path = split_identifiers("search_path", self.settings.get("search_path", ""))
        schemas = tuple(name for name in path if name and name != "$user")
        # at COMMIT the schema is the one in which the waiting statements were given, whatever SET has done since
        return schemas if schemas[:1] == (self.schema,) else (self.schema,)

    def notice(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        self.notices.append(Notice("NOTICE", "00000", message, detail, hint))

    def warning(self, message: str, *, sqlstate: str = "01000", hint: str | None = None) -> None:
        self.notices.append(Notice("WARNING", sqlstate, message, None, hint))
