"""A stream of events to one client. What it does not take waits, and becomes one event where that is too much."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence

from aiohttp import web

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.http.coalescing import coalesced
from mvserver.http.door import Door
from mvserver.http.events import END, HEARTBEAT, RESET, Event, chunk, end_body, reset_body
from mvserver.http.feeds import BEGIN_ANEW, Feed, Feeds, Readable, ViewName
from mvserver.http.statement import Login

_LOG = logging.getLogger(__name__)

_NOWHERE = "-"  # in place of a token
_AGAIN_S = 0.5  # after which a view that is being rebuilt is asked for again
_ATTEMPTS = 5  # to begin behind a snapshot, where changes come faster than it is made
_MOVED_ON = SqlError(sqlstates.SNAPSHOT_TOO_OLD, "the changes since then are not kept any more")
_OTHER_ROWS = SqlError(sqlstates.SNAPSHOT_TOO_OLD, "the rows that may be seen are others now")
_BEING_MADE = frozenset({sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE})


class Positions:
    """Where a client is in each of its views, as one text: the tokens in the order of the views. Those that have not
    begun have none: who breaks off before they do comes back to the right place in the others."""

    def __init__(self, views: Sequence[ViewName]) -> None:
        self._tokens: dict[ViewName, str | None] = dict.fromkeys(views)

    def __getitem__(self, view: ViewName) -> str:
        """Of a view that has begun."""
        token = self._tokens[view]
        assert token is not None  # noqa: S101 - as the docstring says
        return token

    def __setitem__(self, view: ViewName, token: str) -> None:
        self._tokens[view] = token

    def forget(self, view: ViewName) -> None:
        self._tokens[view] = None

    @property
    def text(self) -> str | None:
        """None until one is known."""
        tokens = self._tokens.values()
        return ",".join(token or _NOWHERE for token in tokens) if any(tokens) else None


def read_position(text: str | None, views: Sequence[ViewName]) -> Mapping[ViewName, str]:
    """The tokens of a text by view; none where it is of other views."""
    tokens = [] if text is None else text.strip().split(",")
    if len(tokens) != len(views):
        return {}
    return {view: token for view, token in zip(views, tokens, strict=True) if token != _NOWHERE}


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


async def events_as_one(feed: Feed, token: str) -> Sequence[Event]:
    """The same as one event, and those that came while it was made."""
    found = await events_behind(feed, token)
    if len(found) < 2:
        return found
    one = await asyncio.to_thread(coalesced, feed.key, found)
    later = feed.after(one.epoch)
    if later is None:
        raise _MOVED_ON
    return [one, *later]


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

    def __init__(self, feeds: Feeds, door: Door, login: Login, views: Mapping[ViewName, Readable]) -> None:
        self._feeds = feeds
        self._door = door
        self.login = login
        self.views = dict(views)
        self._positions = Positions(list(views))
        self._alone = len(views) == 1
        self._listening: dict[ViewName, Feed] = {}
        self._pending: deque[tuple[ViewName, Event]] = deque()
        self._pending_bytes = 0
        self._holding = True  # events wait: the beginning is under way, or the client does not take them
        self._behind: set[ViewName] = set()  # to go on with all as one event behind what the client has
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
        for view, token in position.items():
            self._positions[view] = token  # before any event: its id says where the client is in the others, too
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
        if not self._holding:
            self._write(self._framed(feed.view, event))
            transport = self._transport
            if transport is not None and transport.get_write_buffer_size() > limits.HTTP_UNREAD_BYTES_MAX:
                self._holding = True
                self._wake.set()
            return
        self._pending.append((feed.view, event))
        self._pending_bytes += len(event.body)
        if self._pending_bytes > limits.HTTP_PENDING_BYTES_MAX:
            self._pending.clear()
            self._pending_bytes = 0
            for listened in self._listening.values():
                listened.remove(self)
            self._behind |= self._listening.keys()
            self._listening = {}

    def ended(self, feed: Feed, error: SqlError) -> None:
        self._listening.pop(feed.view, None)
        self._failed(feed.view, error)

    def _failed(self, view: ViewName, error: SqlError) -> None:
        if error.sqlstate in BEGIN_ANEW:
            self._positions.forget(view)
            self._behind.discard(view)
            self._pending = deque(each for each in self._pending if each[0] != view)
            self._pending_bytes = sum(len(event.body) for _, event in self._pending)
            self._again[view] = error
            self._wake.set()
        elif error.sqlstate == sqlstates.ADMIN_SHUTDOWN:
            self.close()
        else:
            self.end(error)

    def show(self, view: ViewName, readable: Readable) -> None:
        """From now on other rows of the view: it begins anew with these."""
        self.views[view] = readable
        feed = self._listening.pop(view, None)
        if feed is not None:
            feed.remove(self)
        self._failed(view, _OTHER_ROWS)

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
        before = self._listening.pop(view, None)
        if before is not None:  # of other rows, which it was begun with meanwhile
            before.remove(self)
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
            self._write(self._framed(feed.view, event))
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
            elif self._behind:
                await self._come_up(self._behind.pop())
            elif self._pending:
                self._flush()
            else:
                self._holding = False
                return

    async def _come_up(self, view: ViewName) -> None:
        """To a client that takes its events again."""
        token = self._positions[view]
        try:
            feed = await self._feed(view)
            self._join(feed, await events_as_one(feed, token))
        except SqlError as error:
            self._failed(view, error)

    def _framed(self, view: ViewName, event: Event) -> bytes:
        """As it is written next: its id says where the client is behind it."""
        self._positions[view] = event.token
        return event.chunk if self._alone else event.with_id(self._positions.text)

    def _flush(self) -> None:
        waiting = b"".join([self._framed(view, event) for view, event in self._pending])
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
