"""The door: counts connections, refuses more than there is room for, and ends those that never ask anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.http.status import body_of

_TOO_MANY = body_of(SqlError(sqlstates.TOO_MANY_CONNECTIONS, "sorry, too many clients already"))
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json; charset=utf-8\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(_TOO_MANY)
) + _TOO_MANY


class Door:
    def __init__(self, most: int, first_request_s: float) -> None:
        self._most = most
        self._first_request_s = first_request_s
        self._open: dict[asyncio.BaseTransport, Visit] = {}

    @property
    def connections(self) -> int:
        return len(self._open)

    def visit(self, inner: asyncio.Protocol) -> Visit:
        return Visit(self, inner)

    def asked(self, transport: asyncio.BaseTransport | None) -> None:
        """A whole request has come over the connection."""
        visit = None if transport is None else self._open.get(transport)
        if visit is not None:
            visit.asked()

    async def drained(self, transport: asyncio.BaseTransport) -> None:
        """Returns when the client has taken what was written, or has gone. TimeoutError where it does not for long."""
        visit = self._open.get(transport)
        if visit is not None:
            await visit.drained()

    def entered(self, visit: Visit, transport: asyncio.BaseTransport) -> asyncio.TimerHandle | None:
        """None where there is no room."""
        if len(self._open) >= self._most:
            return None
        self._open[transport] = visit
        return asyncio.get_running_loop().call_later(self._first_request_s, visit.too_slow)

    def left(self, transport: asyncio.BaseTransport) -> None:
        self._open.pop(transport, None)


class Visit(asyncio.Protocol):
    """Passes everything on to the protocol ``inner``, once the connection is let in."""

    def __init__(self, door: Door, inner: asyncio.Protocol) -> None:
        self._door = door
        self._inner = inner
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._refused = False
        self._drained: asyncio.Future[None] | None = None  # while the client does not take what was written

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")  # noqa: S101 - a stream's
        self._transport = transport  # type: ignore[assignment]
        self._timer = self._door.entered(self, transport)
        if self._timer is None:
            self._refused = True
            self._with_transport(lambda stream: stream.write(_REFUSAL))
            self._with_transport(lambda stream: stream.close())
            return
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._refused else self._inner.eof_received()

    def pause_writing(self) -> None:
        if not self._refused:
            self._drained = self._drained or asyncio.get_running_loop().create_future()
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if not self._refused:
            self._taken()
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.asked()
        self._taken()
        if self._transport is not None:
            self._door.left(self._transport)
        if not self._refused:
            self._inner.connection_lost(exc)

    def asked(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def drained(self) -> None:
        if self._drained is not None:
            async with asyncio.timeout(limits.HTTP_STALLED_S):
                await asyncio.shield(self._drained)

    def _taken(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def too_slow(self) -> None:
        self._timer = None
        self._with_transport(lambda stream: stream.abort())

    def _with_transport(self, use: Callable[[asyncio.Transport], None]) -> None:
        if self._transport is not None:
            use(self._transport)
