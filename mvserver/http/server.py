"""The HTTP server: listens beside the wire on the same event loop, and shuts down in order."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from aiohttp import web

from mvserver import limits
from mvserver.auth.password_check import PasswordCheck
from mvserver.front import Backend, ServedViews
from mvserver.http.app import Neighbours, Routes
from mvserver.http.changes import Changes
from mvserver.http.cors import Origins
from mvserver.http.credentials import Credentials, TokenSource
from mvserver.http.door import Door
from mvserver.http.malformed import Conversation
from mvserver.http.work import Workers
from mvserver.listening import addresses_of, is_loopback, port_of

_LOG = logging.getLogger(__name__)

_BACKLOG = 1024
_READING: Mapping[str, Any] = {
    "access_log": None,
    "keepalive_timeout": limits.HTTP_KEEP_ALIVE_S,
    "max_line_size": limits.HTTP_HEADER_BYTES_MAX,
    "max_field_size": limits.HTTP_HEADER_BYTES_MAX,
    "auto_decompress": False,
}
"""How requests are read from a connection."""
_LOOK_EVERY_S = 0.05


class HttpServer:
    """Runs on the event loop that calls ``start``. ``check`` is None where every client is believed; then only
    loopback is served. ``workers`` is how many statements run at a time."""

    def __init__(
        self,
        backend: Backend,
        views: ServedViews,
        tokens: TokenSource,
        host: str,
        port: int,
        *,
        check: PasswordCheck | None,
        problem: Callable[[], str | None],
        tls: ssl.SSLContext | None = None,
        origins: Sequence[str] = (),
        workers: int = limits.CONNECTIONS_MAX,
        connections_max: int = limits.HTTP_CONNECTIONS_MAX,
        first_request_s: float = limits.AUTHENTICATION_TIMEOUT_S,
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._door = Door(connections_max, first_request_s)
        self._threads: Executor = ThreadPoolExecutor(workers, thread_name_prefix="http")
        self._cancels: Executor = ThreadPoolExecutor(limits.CANCEL_THREADS, thread_name_prefix="http-cancel")
        self._workers = Workers(self._threads, self._cancels)
        self._changes = Changes(backend, views, self._workers, self._door)
        self._stopping = False
        neighbours = Neighbours(
            backend,
            Credentials(check, tokens),
            views,
            Origins(origins),
            problem,
            asked=lambda request: self._door.asked(request.transport),
            stopping=lambda: self._stopping,
        )
        self._routes = Routes(neighbours, self._workers, self._changes)
        self._runner = web.AppRunner(
            self._routes.application(),
            handler_cancellation=True,
            shutdown_timeout=limits.SHUTDOWN_GRACE_S,
        )
        self._listener: asyncio.Server | None = None
        self._tending: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that is listened on; the one that was asked for until ``start`` has run."""
        return port_of(self._listener, self._port)

    @property
    def connections(self) -> int:
        return self._door.connections

    @property
    def at_work(self) -> int:
        """How many statements have not ended."""
        return self._workers.at_work

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        addresses = await addresses_of(self._host, self._port)
        await self._runner.setup()
        server = self._runner.server
        assert server is not None  # noqa: S101 - it has just been set up
        self._listener = await loop.create_server(
            lambda: self._door.visit(Conversation(server, loop=loop, **_READING)),
            addresses[:1] if self._port == 0 else addresses,
            self._port,
            backlog=_BACKLOG,
            reuse_address=True,
            ssl=self._tls,
        )
        self._tending = loop.create_task(self._changes.tend())
        if self._tls is None and not all(map(is_loopback, addresses)):
            _LOG.warning("HTTP on %s without TLS: passwords can be read on the way", self._host)

    async def shutdown(self, drain_s: float) -> None:
        """No new requests; running statements may take ``drain_s`` to end, then they are cancelled."""
        self._stopping = True
        if self._listener is not None:
            self._listener.close()
        if self._tending is not None:
            self._tending.cancel()
        self._changes.stop()
        ends = time.monotonic() + drain_s
        while self._workers.at_work and time.monotonic() < ends:
            await asyncio.sleep(_LOOK_EVERY_S)
        await self._workers.end_all()
        await self._routes.stop()
        await self._runner.cleanup()
        self._threads.shutdown(wait=False)
        self._cancels.shutdown(wait=False)
