"""``POST /mcp``: a request of the protocol, answered as JSON. The SDK, an extra, is an ASGI application: it is given
requests as one, and who asks beside them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, MutableMapping
from typing import Any

from aiohttp import web

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.http.bodies import read_raw
from mvserver.http.statement import Login
from mvserver.http.status import RequestError

_LOGIN = "login"
_Message = MutableMapping[str, Any]


class McpEndpoint:
    """``make`` gives the SDK's server with its tools."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._manager: Any = None
        self._life: asyncio.Task[None] | None = None
        self._begun, self._stopping = asyncio.Event(), asyncio.Event()

    async def stop(self) -> None:
        self._stopping.set()
        if self._life is not None:
            await self._life

    async def answer(self, request: web.Request, login: Login) -> web.Response:
        if request.method != "POST":
            raise RequestError(405, "the method is not allowed at this path", hint="Requests are posted.")
        body = await read_raw(request)
        manager = await self._started()
        sent = _Sent()
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": request.scheme,
            "path": request.path,
            "raw_path": request.raw_path.encode(),
            "root_path": "",
            "query_string": request.query_string.encode(),
            "headers": [(name.lower(), value) for name, value in request.raw_headers],
            "client": (request.remote or "", 0),
            "server": None,
            "state": {_LOGIN: login},
        }
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> _Message:
            if given:
                return given.pop()
            await asyncio.Event().wait()  # the client stays until it has its answer; who goes away is cancelled
            return {"type": "http.disconnect"}

        await manager.handle_request(scope, receive, sent.take)
        return web.Response(status=sent.status, headers=sent.headers, body=bytes(sent.body))

    async def _started(self) -> Any:
        """At the first request: who has no use for the SDK does not pay for it. 0A000 where it is not installed."""
        if self._life is None:
            try:
                from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
            except ImportError:
                raise SqlError(
                    sqlstates.FEATURE_NOT_SUPPORTED,
                    "the Model Context Protocol needs a package that is not installed",
                    hint="Install it with: pip install 'mvserver[mcp]'",
                ) from None
            logging.getLogger("mcp").setLevel(logging.WARNING)  # it notes the end of each request, with no name
            self._manager = StreamableHTTPSessionManager(self._make(), json_response=True, stateless=True)
            self._life = asyncio.create_task(self._run())
        await self._begun.wait()
        return self._manager

    async def _run(self) -> None:
        """In a task of its own: what the SDK begins must end where it began."""
        async with self._manager.run():
            self._begun.set()
            await self._stopping.wait()


class _Sent:
    def __init__(self) -> None:
        self.status = 500
        self.headers: dict[str, str] = {}
        self.body = bytearray()

    async def take(self, message: _Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode("latin-1"): value.decode("latin-1")
                for name, value in message.get("headers", ())
                if name.lower() != b"content-length"
            }
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")


def login_of(request: Any) -> Login:
    """Of a request as the SDK's tools see it."""
    found = request.scope["state"][_LOGIN]
    assert isinstance(found, Login)  # noqa: S101 - put there above
    return found
