"""The server: listens, keeps count of connections, hands out cancel keys, and shuts down in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor

from mvserver import limits, sqlstates
from mvserver.errors import SqlError, fatal
from mvserver.front import Backend
from mvserver.listening import addresses_of, is_loopback, port_of
from mvserver.pgwire.authentication import Authentication, TrustLoopback
from mvserver.pgwire.cancel import CancelKeys
from mvserver.pgwire.connection import Connection
from mvserver.pgwire.machine import Encryption, Machine
from mvserver.pgwire.tls import Tls

_LOG = logging.getLogger(__name__)

_BACKLOG = 128


class PgWireServer:
    """Runs on the event loop that calls ``start``. ``executor`` runs the sessions' methods, at most one job per
    connection at a time; without one the server keeps its own, with a thread for each connection that has work."""

    def __init__(
        self,
        backend: Backend,
        host: str,
        port: int,
        *,
        executor: Executor | None = None,
        authentication: Authentication | None = None,
        tls: Tls | None = None,
        connections_max: int = limits.CONNECTIONS_MAX,
        authentication_timeout_s: float = limits.AUTHENTICATION_TIMEOUT_S,
        message_bytes_max: int = limits.MESSAGE_BYTES_MAX,
        write_high_water: int = limits.WRITE_HIGH_WATER_BYTES,
    ) -> None:
        self._backend = backend
        self._host = host
        self._port = port
        self._authentication = authentication
        self.tls = tls
        self._encryption = Encryption.OFF if tls is None else Encryption.OFFERED
        if tls is not None and tls.required:
            self._encryption = Encryption.REQUIRED
        self._connections_max = connections_max
        self._message_bytes_max = message_bytes_max
        self.authentication_timeout_s = authentication_timeout_s
        self.write_high_water = write_high_water
        self._own_workers = executor is None
        self.workers: Executor = executor or ThreadPoolExecutor(connections_max, thread_name_prefix="wire")
        self.cancels: Executor = ThreadPoolExecutor(limits.CANCEL_THREADS, thread_name_prefix="wire-cancel")
        self._keys: CancelKeys[Connection] = CancelKeys()
        self._connections: dict[Connection, int] = {}  # and their process numbers
        self._empty = asyncio.Event()
        self._empty.set()
        self._listener: asyncio.Server | None = None
        self._stopping = False
        self._gathered: list[tuple[Callable[[], None], Callable[[], None]]] = []

    @property
    def port(self) -> int:
        """The port that is listened on; the one that was asked for until ``start`` has run."""
        return port_of(self._listener, self._port)

    @property
    def connections(self) -> int:
        return len(self._connections)

    async def start(self) -> None:
        """Listens. Refused where clients from elsewhere could come in without being asked who they are."""
        loop = asyncio.get_running_loop()
        addresses = await addresses_of(self._host, self._port)
        if self._authentication is None and not all(is_loopback(address) for address in addresses):
            raise SqlError(
                sqlstates.CONFIG_FILE_ERROR,
                f'cannot listen on "{self._host}" without authentication',
                hint="Listen on 127.0.0.1, or configure authentication.",
            )
        if self.tls is None and not all(is_loopback(address) for address in addresses):
            _LOG.warning("listening on %s without TLS: what clients send and get can be read on the way", self._host)
        # one port for all addresses, also where the system chooses it
        self._listener = await loop.create_server(
            lambda: Connection(self, loop),
            addresses[:1] if self._port == 0 else addresses,
            self._port,
            backlog=_BACKLOG,
            reuse_address=True,
        )

    async def shutdown(self, drain_s: float) -> None:
        """No new connections; running statements may take ``drain_s`` to end, then they are cancelled. Clients are told
        57P01. May be called again with less time while it waits."""
        self._stopping = True
        if self._listener is not None:
            self._listener.close()
        error = fatal(sqlstates.ADMIN_SHUTDOWN, "terminating connection due to administrator command")
        for connection in list(self._connections):
            connection.stop(error)
        # Whoever is only just logging in has nothing to end, and must not wait for those who have.
        asyncio.get_running_loop().call_later(limits.LOGIN_GRACE_S, self._abort_strangers)
        if not await self._emptied(drain_s):
            for connection in list(self._connections):
                connection.abort()
            if not await self._emptied(limits.SHUTDOWN_GRACE_S):
                _LOG.warning("%d statements did not end when they were cancelled", len(self._connections))
        self.cancels.shutdown(wait=False)
        if self._own_workers:
            self.workers.shutdown(wait=False, cancel_futures=False)

    def _abort_strangers(self) -> None:
        for connection in list(self._connections):
            if not connection.logged_in:
                connection.abort()

    async def _emptied(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._empty.wait(), max(seconds, 0.0))
        except TimeoutError:
            return self._empty.is_set()
        return True

    # --- what connections ask ---------------------------------------------------------------------------------------

    def opened(self, connection: Connection) -> Machine | None:
        count = len(self._connections)
        if self._stopping or count >= self._connections_max + limits.CONNECTIONS_REFUSED_MAX:
            return None
        refusal = None
        if count >= self._connections_max:
            refusal = fatal(sqlstates.TOO_MANY_CONNECTIONS, "sorry, too many clients already")
        process, key = self._keys.issue(connection)
        self._connections[connection] = process
        self._empty.clear()
        return Machine(
            self._backend,
            authentication=self._authentication or TrustLoopback(),
            process=process,
            key=key,
            peer=connection.peer,
            local=connection.local,
            refusal=refusal,
            message_limit=self._message_bytes_max,
            encryption=self._encryption,
            channel_binding=None if self.tls is None else self.tls.binding,
        )

    def closed(self, connection: Connection) -> None:
        process = self._connections.pop(connection, None)
        if process is not None:
            self._keys.forget(process)
        if not self._connections:
            self._empty.set()

    def gather(self, answer: Callable[[], None], go_on: Callable[[], None]) -> None:
        self._gathered.append((answer, go_on))
        if len(self._gathered) == 1:
            asyncio.get_running_loop().call_soon(self._answer_gathered)

    def _answer_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        loop = asyncio.get_running_loop()
        try:
            for answer, _ in gathered:
                answer()
        finally:
            for _, go_on in gathered:  # one that has no answer now is answered by itself
                loop.call_soon(go_on)

    def cancel(self, process: int, key: bytes, done: Callable[[], None]) -> None:
        """A wrong secret is answered like a right one: with nothing."""
        target = self._keys.find(process, key)
        if target is None:
            done()
        else:
            target.cancel(done)
