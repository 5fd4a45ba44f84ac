"""What a statement's handler may know and change of the session it runs in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mvserver.pgwire.backend import Notice


@dataclass
class SessionContext:
    """One per connection. Only the session's own worker thread touches it, but ``cancelled`` may be asked from any."""

    role: str
    database: str
    schema: str = "public"
    store: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    in_transaction_block: bool = False
    notices: list[Notice] = field(default_factory=list)
    cancelled: Callable[[], bool] = lambda: False

    def notice(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        self.notices.append(Notice("NOTICE", "00000", message, detail, hint))

    def warning(self, message: str, *, sqlstate: str = "01000", hint: str | None = None) -> None:
        self.notices.append(Notice("WARNING", sqlstate, message, None, hint))
