"""The console: a page of static files of this package. What it shows it asks of the routes beside it, as its user."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

PAGE = Path(__file__).with_name("console")
_INDEX = "index.html"
_TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # a newer server's files are other ones, under the same names
}


@dataclass(frozen=True)
class _File:
    content: bytes
    content_type: str
    tag: str


def _read(path: Path) -> _File:
    content = path.read_bytes()
    return _File(content, _TYPES[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')


class ConsolePage:
    """All files are read once: whatever a path says, nothing else can be asked for."""

    def __init__(self) -> None:
        self._files = {
            path.relative_to(PAGE).as_posix(): _read(path)
            for path in sorted(PAGE.rglob("*"))
            if path.is_file() and path.suffix in _TYPES
        }

    async def index(self, request: web.Request) -> web.StreamResponse:
        return self._answer(request, _INDEX)

    async def file(self, request: web.Request) -> web.StreamResponse:
        return self._answer(request, request.match_info["file"])

    def _answer(self, request: web.Request, name: str) -> web.StreamResponse:
        found = self._files.get(name)
        if found is None:
            raise web.HTTPNotFound
        headers = {**_HEADERS, "ETag": found.tag}
        if request.headers.get("If-None-Match") == found.tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=found.content, headers={**headers, "Content-Type": found.content_type})
