"""A stream of events to one client. What it does not take waits; a client that is too far behind begins anew."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence

from aiohttp import web

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field
from mvserver.http.door import Door
from mvserver.http.events import END, HEARTBEAT, RESET, Event, chunk, end_body, reset_body
from mvserver.http.feeds import BEGIN_ANEW, Feed, Feeds, ViewName

_LOG = logging.getLogger(__name__)

_AGAIN_S = 0.5  # after which a view that is being rebuilt is asked for again
_ATTEMPTS = 5  # to begin behind a snapshot, where changes come faster than it is made
_TOO_FAR = SqlError(sqlstates.SNAPSHOT_TOO_OLD, "the client has not taken its events for too long")
_MOVED_ON = SqlError(sqlstates.SNAPSHOT_TOO_OLD, "the changes since then are not kept any more")
_BEING_MADE = frozenset({sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE})


class Positions:
    """Where a client is in each of its views, as one text: the tokens in the order of the views."""

    def __init__(self, views: Sequence[ViewName]) -> None:
        self._tokens: dict[ViewName, str | None] = dict.fromkeys(views)

    def __setitem__(self, view: ViewName, token: str) -> None:
        self._tokens[view] = token

    def forget(self, view: ViewName) -> None:
        self._tokens[view] = None

    @property
    def text(self) -> str | None:
        """None until all are known."""
        tokens = list(self._tokens.values())
        return ",".join(token for token in tokens if token) if all(tokens) else None


def read_position(text: str | None, views: Sequence[ViewName]) -> Mapping[ViewName, str]:
    """The tokens of a text by view; none where it is of other views."""
    tokens = [] if text is None else text.strip().split(",")
    return dict(zip(views, tokens, strict=True)) if len(tokens) == len(views) else {}


async def events_behind(feed: Feed, token: str) -> Sequence[Event]:
    """The events behind a token, up to the newest that the feed has. Raises 72000 where some are gone."""
    found = feed.behind(token)
    if found is not None:
        return found
    earlier = await asyncio.to_thread(feed.read_behind, token, feed.newest)
    later = feed.after(earlier[-1].epoch if earlier else feed.newest)
    if later is None:
        raise _MOVED_ON
    return [*earlier, *later]


async def rows_and_later(feed: Feed) -> Sequence[Event]:
    """A snapshot and the events behind it, up to the newest that the feed has."""
    for _ in range(_ATTEMPTS):
        snapshot = await feed.snapshot()
        if feed.error is not None:
            break
        behind = feed.after(snapshot.epoch)
        if behind is not None:
            return [snapshot, *behind]
    raise feed.error or _MOVED_ON


class EventStream:
    """Implements ``feeds.Listener``."""

    def __init__(self, feeds: Feeds, door: Door, role: str, views: Mapping[ViewName, Sequence[Field]]) -> None:
        self._feeds = feeds
        self._door = door
        self.role = role
        self.views = views
        self._positions = Positions(list(views))
        self._alone = len(views) == 1
        self._listening: dict[ViewName, Feed] = {}
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        self._holding = True  # events wait: the beginning is under way, or the client does not take them
        self._again: dict[ViewName, SqlError] = {}  # to begin anew, and why
        self._end: SqlError | None = None
        self._closing = False
        self._wake = asyncio.Event()
        self._transport: asyncio.Transport | None = None

    async def run(self, request: web.Request, response: web.StreamResponse, position: Mapping[ViewName, str]) -> None:
        """Until the client goes away, or the stream is ended."""
        transport = request.transport
        if transport is None:
            return
        self._transport = transport
        self._write(chunk_of_retry())
        try:
            for view in self.views:
                try:
                    await self._begin(view, position.get(view))
                except SqlError as error:
                    self._failed(view, error)
            while not self._closing:
                await self._catch_up()
                await self._wake.wait()
                self._wake.clear()
            if self._end is not None:
                self._write(chunk(END, end_body(self._end), None))
            await response.write_eof()
        except TimeoutError:
            transport.abort()  # it takes nothing
        finally:
            for feed in self._listening.values():
                feed.remove(self)
            self._transport = None

    # --- what feeds and the server tell -----------------------------------------------------------------------------

    def heard(self, feed: Feed, event: Event) -> None:
        self._positions[feed.view] = event.token
        data = event.chunk if self._alone else event.with_id(self._positions.text)
        if not self._holding:
            self._write(data)
            transport = self._transport
            if transport is not None and transport.get_write_buffer_size() > limits.HTTP_UNREAD_BYTES_MAX:
                self._holding = True
                self._wake.set()
            return
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes > limits.HTTP_PENDING_BYTES_MAX:
            self._pending.clear()
            self._pending_bytes = 0
            for listened in self._listening.values():
                listened.remove(self)
            for view in self._listening:
                self._positions.forget(view)  # or an id would be ahead of what the client has
                self._again[view] = _TOO_FAR
            self._listening = {}

    def ended(self, feed: Feed, error: SqlError) -> None:
        self._listening.pop(feed.view, None)
        self._failed(feed.view, error)

    def _failed(self, view: ViewName, error: SqlError) -> None:
        if error.sqlstate in BEGIN_ANEW:
            self._positions.forget(view)
            self._again[view] = error
            self._wake.set()
        elif error.sqlstate == sqlstates.ADMIN_SHUTDOWN:
            self.close()
        else:
            self.end(error)

    def end(self, error: SqlError) -> None:
        """The client is told why, and not to come back."""
        self._end = error
        self.close()

    def close(self) -> None:
        self._closing = True
        self._wake.set()

    def beat(self) -> None:
        """A sign of life; of a client that does not take what it has, there is none to be expected."""
        if not self._holding:
            self._write(HEARTBEAT)

    # --- on the stream's own task -----------------------------------------------------------------------------------

    async def _begin(self, view: ViewName, token: str | None, reason: SqlError | None = None) -> None:
        """The rows, or the events behind a token; then whatever comes."""
        feed = await self._feed(view)
        if token is not None:
            try:
                await self._go_on(feed, token)
            except SqlError as error:
                if error.sqlstate not in BEGIN_ANEW:
                    raise
                reason = error
            else:
                return
        if reason is not None:
            self._positions.forget(view)
            self._write(chunk(RESET, reset_body(str(view), reason), None))
        self._join(feed, await rows_and_later(feed))
        await self._drained()

    async def _go_on(self, feed: Feed, token: str) -> None:
        self._positions[feed.view] = token
        self._join(feed, await events_behind(feed, token))
        await self._drained()

    def _join(self, feed: Feed, events: Sequence[Event]) -> None:
        """Without a pause between what was and what comes."""
        if feed.error is not None:
            raise feed.error
        self._flush()  # what other views have told meanwhile comes first, as the ids say
        for event in events:
            self._positions[feed.view] = event.token
            self._write(event.chunk if self._alone else event.with_id(self._positions.text))
        self._listening[feed.view] = feed
        feed.add(self)

    async def _feed(self, view: ViewName) -> Feed:
        while True:
            try:
                return await self._feeds.get(view, self.views[view])
            except SqlError as error:
                if error.sqlstate not in _BEING_MADE or self._closing:
                    raise
                await asyncio.sleep(_AGAIN_S)

    async def _catch_up(self) -> None:
        """Sends what has waited, and begins anew where that is needed."""
        self._holding = True
        while not self._closing:
            await self._drained()
            if self._again:
                view, reason = self._again.popitem()
                try:
                    await self._begin(view, None, reason)
                except SqlError as error:
                    self._failed(view, error)
                    await asyncio.sleep(_AGAIN_S)
            elif self._pending:
                self._flush()
            else:
                self._holding = False
                return

    def _flush(self) -> None:
        waiting = b"".join(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        if waiting:
            self._write(waiting)

    async def _drained(self) -> None:
        if self._transport is not None:
            await self._door.drained(self._transport)

    def _write(self, data: bytes) -> None:
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.write(data)


def chunk_of_retry() -> bytes:
    frame = b"retry: %d\n\n" % limits.HTTP_RETRY_MS
    return b"%x\r\n%b\r\n" % (len(frame), frame)
