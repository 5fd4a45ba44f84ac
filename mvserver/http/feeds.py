"""One feed for each view that is watched: a thread that takes its epochs, and the last of them as events for all.

The thread encodes; all else is on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.failures import as_sql_error
from mvserver.front import Field, ServedViews, ViewReader
from mvserver.http.coalescing import Coalescer
from mvserver.http.events import Encoder, Event
from mvserver.quoting import quoted
from mvserver.visible_rows import VisibleRows

_LOG = logging.getLogger(__name__)

_LOOK_S = 1.0  # how long a thread waits for changes before it looks whether it is to end
BEGIN_ANEW = frozenset(
    {sqlstates.SNAPSHOT_TOO_OLD, sqlstates.PROGRAM_LIMIT_EXCEEDED, sqlstates.INVALID_PARAMETER_VALUE}
)
"""Errors behind which a reader can go on with the rows as they are."""


@dataclass(frozen=True, order=True)
class ViewName:
    database: str
    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.database}.{self.schema}.{self.name}"

    @property
    def exact(self) -> str:
        """Each part in quotes: those of two views are never the same, whatever dots their names have."""
        return ".".join(map(quoted, (self.database, self.schema, self.name)))


@dataclass(frozen=True)
class Readable:
    """What somebody may read of a view: its columns, and which rows, None for all. ``role_id`` is of who may."""

    fields: tuple[Field, ...]
    role_id: str | None
    visible: VisibleRows | None = None


class Listener(Protocol):
    """Both are called on the event loop."""

    def heard(self, feed: Feed, event: Event) -> None: ...

    def ended(self, feed: Feed, error: SqlError) -> None: ...


class Feed:
    """``events`` are the last epochs without a gap, behind epoch ``floor``."""

    def __init__(self, view: ViewName, views: ServedViews, readable: Readable) -> None:
        self.view = view
        self._views = views
        self._visible = readable.visible
        self.key = views.key(view.database, view.schema, view.name)
        self._encoder = Encoder(str(view), readable.fields, self.key)
        self._loop = asyncio.get_running_loop()
        self._listeners: set[Listener] = set()
        self._events: deque[Event] = deque()
        self._bytes = 0
        self._floor = 0
        self._floor_token = ""
        self._snapshot: Event | None = None
        self._making: asyncio.Task[Event] | None = None
        self._begun: asyncio.Future[None] = self._loop.create_future()
        self._begun.add_done_callback(lambda begun: begun.exception())  # whoever waits is told; nobody may
        self.error: SqlError | None = None
        self.idle_since: float | None = self._loop.time()
        self._reader: ViewReader | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._watch, name="http-feed", daemon=True)
        self._thread.start()

    # --- on the event loop ------------------------------------------------------------------------------------------

    async def begun(self) -> None:
        """Returns when there is something to read; raises what has ended the feed before that."""
        await asyncio.shield(self._begun)

    def add(self, listener: Listener) -> None:
        self._listeners.add(listener)
        self.idle_since = None

    def remove(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        if not self._listeners:
            self.idle_since = self._loop.time()

    def after(self, epoch: int) -> Sequence[Event] | None:
        """The events behind an epoch; None where some of them are gone."""
        if epoch < self._floor:
            return None
        return [each for each in self._events if each.epoch > epoch]

    def behind(self, token: str) -> Sequence[Event] | None:
        """The events behind a token; None where it is not that of an event that is kept."""
        if token == self._floor_token:
            return list(self._events)
        for at, each in enumerate(self._events):
            if each.token == token:
                return list(self._events)[at + 1 :]
        if self._snapshot is not None and self._snapshot.token == token:
            return self.after(self._snapshot.epoch)
        return None

    async def snapshot(self) -> Event:
        """The rows at an epoch whose next ones are all kept. 54000 where they are too many."""
        known = self._snapshot
        if known is not None:
            behind = self.after(known.epoch)
            if behind is not None and sum(len(each.body) for each in behind) <= limits.HTTP_REPLAYED_BYTES_MAX:
                return known
        if self._making is None:
            self._making = self._loop.create_task(self._make_snapshot())
            self._making.add_done_callback(self._made)
        return await asyncio.shield(self._making)

    async def _make_snapshot(self) -> Event:
        made = await asyncio.to_thread(self._read_snapshot)
        self._snapshot = made
        return made

    def _made(self, task: asyncio.Task[Event]) -> None:
        self._making = None
        if not task.cancelled():
            task.exception()  # whoever waits is told

    def stop(self) -> None:
        """Returns at once; the thread ends soon."""
        self._stopping = True
        reader = self._reader
        if reader is not None:
            reader.interrupt()

    # --- what the thread tells --------------------------------------------------------------------------------------

    def _on_loop(self, call: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            _LOG.debug("the event loop ended before a feed did")

    def _has_begun(self, epoch: int, token: str, snapshot: Event | None) -> None:
        self._floor, self._floor_token, self._snapshot = epoch, token, snapshot
        if not self._begun.done():
            self._begun.set_result(None)

    def _heard(self, event: Event) -> None:
        self._events.append(event)
        self._bytes += len(event.body)
        while self._bytes > limits.HTTP_CHANGES_BYTES_MAX and len(self._events) > 1:
            gone = self._events.popleft()
            self._bytes -= len(gone.body)
            self._floor, self._floor_token = gone.epoch, gone.token
        if self._snapshot is not None and self._snapshot.epoch < self._floor:
            self._snapshot = None
        for listener in list(self._listeners):
            listener.heard(self, event)

    def _ended(self, error: SqlError) -> None:
        self.error = error
        if not self._begun.done():
            self._begun.set_exception(error)
        for listener in list(self._listeners):
            listener.ended(self, error)
        self._listeners.clear()

    # --- on threads -------------------------------------------------------------------------------------------------

    def _open(self, since: str | None, *, snapshot: bool) -> ViewReader:
        view = self.view
        return self._views.watch(view.database, view.schema, view.name, since, snapshot=snapshot, visible=self._visible)

    def _watch(self) -> None:
        try:
            reader = self._reader = self._open(None, snapshot=True)
            try:
                place = reader.place
                assert place is not None  # noqa: S101 - asked for
                rows = self._rows(reader)
                snapshot = None
                if rows is not None:
                    snapshot = self._encoder.snapshot(place, reader.token, rows)
                self._on_loop(self._has_begun, place.latest_epoch, reader.token, snapshot)
                for event in self._epochs(reader, lambda: self._stopping):
                    self._on_loop(self._heard, event)
            finally:
                reader.close()
        except Exception as error:  # noqa: BLE001 - whatever it is, readers are told
            self._on_loop(self._ended, as_sql_error(error))
        else:
            stopped = SqlError(sqlstates.SNAPSHOT_TOO_OLD, "the view was not watched any more")
            self._on_loop(self._ended, stopped)

    def _rows(self, reader: ViewReader) -> list[bytes] | None:
        """All rows of the snapshot, which is read to its end; None where they are too many to be kept."""
        found: list[bytes] | None = []
        size = 0
        for batch in reader.snapshot():
            if found is None:
                continue
            found.append(self._encoder.rows(batch))
            size += len(found[-1])
            if size > limits.HTTP_SNAPSHOT_BYTES_MAX:
                found = None
        return found

    def _read_snapshot(self) -> Event:
        reader = self._open(None, snapshot=True)
        try:
            place = reader.place
            assert place is not None  # noqa: S101 - asked for
            rows = self._rows(reader)
            if rows is None:
                raise SqlError(
                    sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
                    "the view has too many rows for a stream of events",
                    detail=f"They are more than {limits.HTTP_SNAPSHOT_BYTES_MAX >> 20} MiB as JSON.",
                    hint="Make a smaller view of it, or read it with GET /v1/views.",
                )
            return self._encoder.snapshot(place, reader.token, rows)
        finally:
            reader.close()

    def read_behind(self, token: str, epoch: int) -> list[Event]:
        """The events behind a token that is no longer at hand, as far as there are some, at least up to ``epoch``;
        as one, where they are many. 72000 where they are gone."""
        reader = self._open(token, snapshot=False)
        try:
            found: list[Event] = []
            size = 0
            one: Coalescer | None = None
            if not reader.wait(0):
                return found
            for event in self._epochs(reader, lambda: not reader.wait(0)):
                size += len(event.body)
                if one is not None:
                    one.add(event)
                else:
                    found.append(event)
                    if size > limits.HTTP_CHANGES_BYTES_MAX:
                        one = Coalescer(self.key)
                        for each in found:
                            one.add(each)
                        found.clear()
                if event.epoch >= epoch and not reader.wait(0):
                    break
            return found if one is None else [one.event()]
        finally:
            reader.close()

    @property
    def newest(self) -> int:
        return self._events[-1].epoch if self._events else self._floor

    def _epochs(self, reader: ViewReader, enough: Callable[[], bool]) -> Iterator[Event]:
        """Whole epochs, each as one event."""
        parts: list[bytes] = []
        size = 0
        while parts or not enough():
            if not reader.wait(_LOOK_S):
                continue
            for piece in reader.take():
                parts.append(self._encoder.changes(piece))
                size += len(parts[-1])
                if size > limits.HTTP_EPOCH_BYTES_MAX:
                    raise SqlError(
                        sqlstates.PROGRAM_LIMIT_EXCEEDED, f"epoch {piece.epoch} has more changes than an event may have"
                    )
                if piece.complete:
                    yield self._encoder.change(piece, parts)
                    parts, size = [], 0


class Feeds:
    """The feeds that are open, by view and by which rows of it are seen."""

    def __init__(self, views: ServedViews) -> None:
        self._views = views
        self._open: dict[tuple[ViewName, VisibleRows | None], Feed] = {}

    async def get(self, view: ViewName, readable: Readable) -> Feed:
        """The view's, which has begun; raises what hinders it."""
        key = (view, readable.visible)
        known = self._open.get(key)
        if known is None or known.error is not None:
            known = self._open[key] = Feed(view, self._views, readable)
        await known.begun()
        return known

    def tend(self) -> None:
        """Ends those that nobody listens to; to be called now and then."""
        now = asyncio.get_running_loop().time()
        for key, feed in list(self._open.items()):
            idle = feed.idle_since is not None and now - feed.idle_since > limits.HTTP_FEED_IDLE_S
            if idle or feed.error is not None:
                feed.stop()
                del self._open[key]

    def stop(self) -> None:
        for feed in self._open.values():
            feed.stop()
