"""Which pages of other origins may read answers: none, unless the setting names them. No cookie is ever used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mvserver import limits

_ANY = "*"
_EXPOSED = "ETag, Mv-Command, Retry-After"
_METHODS = "GET, POST"
_HEADERS = "Authorization, Content-Type, If-None-Match, Last-Event-ID"


class Origins:
    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = frozenset(each.rstrip("/").lower() for each in allowed)

    def _allows(self, origin: str | None) -> bool:
        return origin is not None and (_ANY in self._allowed or origin.lower() in self._allowed)

    def headers(self, origin: str | None) -> Mapping[str, str]:
        """Of an answer to a request of this origin."""
        if not self._allowed:
            return {}
        if not self._allows(origin) or origin is None:
            return {"Vary": "Origin"}
        shown = _ANY if _ANY in self._allowed else origin
        return {"Access-Control-Allow-Origin": shown, "Access-Control-Expose-Headers": _EXPOSED, "Vary": "Origin"}

    def preflight(self, origin: str | None) -> Mapping[str, str]:
        """Of an answer to a browser that asks what it may send."""
        headers = self.headers(origin)
        if "Access-Control-Allow-Origin" not in headers:
            return headers
        return {
            **headers,
            "Access-Control-Allow-Methods": _METHODS,
            "Access-Control-Allow-Headers": _HEADERS,
            "Access-Control-Max-Age": str(limits.HTTP_PREFLIGHT_S),
        }
