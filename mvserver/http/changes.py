"""``GET /v1/changes``: server-sent events, or a poll that waits; and the tickets that may stand in its address."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from aiohttp import web

from mvserver import claims as claim_names
from mvserver import limits, sqlstates
from mvserver.errors import SqlError, fatal
from mvserver.front import Backend, ServedViews
from mvserver.http.bodies import TEXTS, header_of, is_text, parsed, refuse_unknown
from mvserver.http.door import Door
from mvserver.http.events import RESET, Event, reset_body
from mvserver.http.feeds import BEGIN_ANEW, Feed, Feeds, Readable, ViewName
from mvserver.http.formats import STREAM, wants_events
from mvserver.http.statement import Login, Request, StatementRun
from mvserver.http.status import RequestError
from mvserver.http.streams import EventStream, Positions, events_behind, read_position, rows_and_later
from mvserver.http.tickets import Tickets
from mvserver.http.work import Workers
from mvserver.quoting import quoted

_LOG = logging.getLogger(__name__)

_SINGLE = ("since", "wait")
_PARAMETERS = frozenset({"view", "since", "wait", "ticket"})
_PART = r'(?:"(?:[^"]|"")+"|[^".]+)'
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}")
_KNOWN_MAX = 10_000  # pairs of role and view that may be read, remembered until a definition changes
_BEATS_AT_ONCE = 500  # streams that get a sign of life before others have their turn
_LOOK_S = limits.HTTP_REVIEW_S
_Reader = tuple[str, tuple[tuple[str, str], ...]]  # a role and its claims


class Changes:
    def __init__(self, backend: Backend, views: ServedViews, workers: Workers, door: Door) -> None:
        self._backend = backend
        self._views = views
        self._workers = workers
        self._door = door
        self._feeds = Feeds(views)
        self._streams: set[EventStream] = set()
        self._known: dict[tuple[_Reader, ViewName], Readable] = {}
        self._generation = -1
        self._stopping = False
        self.tickets = Tickets()

    @property
    def streams(self) -> int:
        return len(self._streams)

    # --- requests ---------------------------------------------------------------------------------------------------

    def views_of(self, request: web.Request) -> list[ViewName]:
        return _names(request.query.getall("view", []))

    async def answer(self, request: web.Request, login: Login, *, shared: bool) -> web.StreamResponse:
        """``shared``: whoever has the address may have the answer."""
        unknown = sorted(set(request.query) - _PARAMETERS)
        if unknown:
            raise RequestError(400, f'unknown query parameter "{unknown[0][:100]}"')
        for name in _SINGLE:
            if len(request.query.getall(name, [])) > 1:
                raise RequestError(400, f'query parameter "{name}" stands twice')
        events = wants_events(header_of(request, "Accept"))
        views = self.views_of(request)
        readable = {view: await self._readable(login, view) for view in views}
        login = _lasting(login, readable.values())
        position = request.headers.get("Last-Event-ID") or request.query.get("since")
        if events:
            return await self._stream(request, login, readable, position)
        return await self._poll(request, readable, position, shared=shared)

    async def ticket(self, login: Login, raw: bytes) -> web.Response:
        body = parsed(raw)
        refuse_unknown(body, ("views", "claims"))
        claims = _claims(body.get("claims"))
        given = body.get("views")
        if not isinstance(given, list) or not all(map(is_text, given)):
            raise RequestError(400, 'field "views" must be an array of names')
        views = _names(given)
        login = _lasting(login, [await self._readable(login, view) for view in views])
        text, seconds = self.tickets.issue(login.role, [view.exact for view in views], claims, login.role_id)
        return web.Response(
            body=json.dumps({"ticket": text, "expires_in": seconds}).encode() + b"\n",
            headers={"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"},
        )

    async def _readable(self, login: Login, view: ViewName) -> Readable:
        """What the role may read of a view; what hinders it is raised."""
        generation = self._views.generation()
        if generation != self._generation or len(self._known) > _KNOWN_MAX:
            self._known, self._generation = {}, generation
        known = self._known
        asked = ((login.role, login.claims), view)
        found = known.get(asked)
        if found is None:
            text = f"SELECT * FROM {quoted(view.schema)}.{quoted(view.name)}"
            run = StatementRun(self._backend, login, Request(text, database=view.database))
            try:
                async with self._workers.supervise(run) as supervised:
                    await supervised.step(run.prepare)
                    fields = run.fields or ()
            except SqlError as error:
                error.position = None  # in a text that the client has not written
                raise
            visible = await self._workers.call(
                self._views.visible_rows, view.database, view.schema, view.name, login.role, login.claims
            )
            role_id = await self._workers.call(self._views.role_id, login.role)
            found = known[asked] = Readable(tuple(fields), role_id, visible)
        if login.role_id not in (None, found.role_id):
            raise fatal(
                sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
                f'role "{login.role}" is another one than before',
                detail="The role was dropped, and one of the same name was made.",
                hint="Log in again.",
            )
        return found

    # --- events -----------------------------------------------------------------------------------------------------

    async def _stream(
        self,
        request: web.Request,
        login: Login,
        readable: Mapping[ViewName, Readable],
        position: str | None,
    ) -> web.StreamResponse:
        if request.version < (1, 1):
            raise RequestError(505, "events need HTTP/1.1")
        for view, what in readable.items():
            try:
                await self._feeds.get(view, what)
            except SqlError as error:
                if error.sqlstate != sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:
                    raise  # a view that is only being made is waited for
        headers = {"Content-Type": STREAM, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        stream = EventStream(self._feeds, self._door, login, readable)
        self._streams.add(stream)
        if self._stopping:
            stream.close()
        try:
            await stream.run(request, response, read_position(position, list(readable)))
        finally:
            self._streams.discard(stream)
        return response

    # --- polls ------------------------------------------------------------------------------------------------------

    async def _poll(
        self,
        request: web.Request,
        readable: Mapping[ViewName, Readable],
        position: str | None,
        *,
        shared: bool,
    ) -> web.Response:
        wait_s = _wait_of(request)
        feeds = [await self._feeds.get(view, what) for view, what in readable.items()]
        tokens = read_position(position, list(readable))
        found, positions = await _collected(feeds, tokens)
        if not found and wait_s:
            waiting = _Waiting()
            for feed in feeds:
                feed.add(waiting)
            try:
                if not self._stopping and all(not feed.behind(tokens[feed.view]) for feed in feeds):
                    await waiting.until(wait_s)
            finally:
                for feed in feeds:
                    feed.remove(waiting)
            feeds = [await self._feeds.get(view, what) for view, what in readable.items()]
            found, positions = await _collected(feeds, tokens)
        fresh = limits.HTTP_POLL_FRESH_S if found else 0
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Cache-Control": f"{'public' if shared else 'private'}, max-age={fresh}",
            "Vary": "Accept" if shared else "Accept, Authorization",
        }
        events = b",\n".join(b'{"event":"%b","data":%b}' % each for each in found)
        body = b'{"next":%b,"events":[\n%b]}\n' % (json.dumps(positions.text).encode(), events)
        return web.Response(body=body, headers=headers)

    # --- now and then -----------------------------------------------------------------------------------------------

    async def tend(self) -> None:
        """Until it is cancelled: signs of life, an end for those that may not read any more, and for idle feeds."""
        reviewed = self._views.generation()
        beaten = 0.0
        while True:
            await asyncio.sleep(_LOOK_S)
            self._feeds.tend()
            generation = self._views.generation()
            if generation != reviewed:
                await self._review()
                reviewed = generation
            beaten += _LOOK_S
            if beaten >= limits.HTTP_HEARTBEAT_S:
                beaten = 0.0
                for at, stream in enumerate(list(self._streams)):
                    stream.beat()
                    if at % _BEATS_AT_ONCE == _BEATS_AT_ONCE - 1:
                        await asyncio.sleep(0)

    async def _review(self) -> None:
        """Ends the streams of those that may not read any more, and shows the others which rows they may see now."""
        found: dict[tuple[_Reader, str | None, ViewName], Readable | SqlError | None] = {}
        for stream in list(self._streams):
            for view, before in list(stream.views.items()):
                login = stream.login
                asked = ((login.role, login.claims), login.role_id, view)
                if asked not in found:
                    found[asked] = await self._now(stream.login, view)
                now = found[asked]
                if isinstance(now, SqlError):
                    stream.end(now)
                elif now is not None and now.visible != before.visible:
                    stream.show(view, now)

    async def _now(self, login: Login, view: ViewName) -> Readable | SqlError | None:
        """None where it cannot be said."""
        try:
            return await self._readable(replace(login, peer="", local=True), view)
        except SqlError as error:
            # who is too busy to look says nothing of what the role may do
            return None if error.sqlstate.startswith(("53", "57")) else error
        except Exception:  # noqa: BLE001 - logged; the next change of a definition looks again
            _LOG.exception("the privileges of a stream could not be looked at")
        return None

    def stop(self) -> None:
        self._stopping = True
        for stream in list(self._streams):
            stream.close()
        self._feeds.stop()


class _Waiting:
    """A poll that waits; implements ``feeds.Listener``."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def heard(self, feed: Feed, event: Event) -> None:
        self._news.set()

    def ended(self, feed: Feed, error: SqlError) -> None:
        self._news.set()

    async def until(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return


async def _collected(
    feeds: Sequence[Feed], tokens: Mapping[ViewName, str]
) -> tuple[list[tuple[bytes, bytes]], Positions]:
    """The events behind the tokens, or the rows where there is no token or it is too old; and where they lead."""
    found: list[tuple[bytes, bytes]] = []
    positions = Positions([feed.view for feed in feeds])
    for feed in feeds:
        token = tokens.get(feed.view)
        events: Sequence[Event]
        if token is None:
            events = await rows_and_later(feed)
        else:
            positions[feed.view] = token
            try:
                events = await events_behind(feed, token)
            except SqlError as error:
                if error.sqlstate not in BEGIN_ANEW:
                    raise
                found.append((RESET, reset_body(str(feed.view), error)))
                events = await rows_and_later(feed)
        found += [(event.kind, event.body) for event in events]
        if events:
            positions[feed.view] = events[-1].token
    return found, positions


def _wait_of(request: web.Request) -> float:
    text = request.query.get("wait", str(limits.HTTP_POLL_S))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= limits.HTTP_POLL_MAX_S:
        raise RequestError(400, f'query parameter "wait" must be seconds between 0 and {limits.HTTP_POLL_MAX_S:g}')
    return seconds


def _claims(given: object) -> tuple[tuple[str, str], ...]:
    """As settings. Their values are texts: policies read them so."""
    if given is None:
        return ()
    if not isinstance(given, dict) or len(given) > limits.HTTP_CLAIMS_MAX:
        raise RequestError(400, f'field "claims" must be an object of at most {limits.HTTP_CLAIMS_MAX} texts')
    if len({name.lower() for name in given}) < len(given):
        raise RequestError(400, "a claim is given twice", detail="Names of claims do not differ by case alone.")
    for name, value in given.items():
        if not claim_names.is_name(name.lower()):
            raise RequestError(400, f'"{name[:100]}" is no name of a claim')
        if not is_text(value):
            raise RequestError(400, f'claim "{name[:100]}" must be a text', detail=TEXTS)
        if len(value.encode()) > limits.HTTP_CLAIM_BYTES_MAX:
            raise RequestError(400, f'claim "{name[:100]}" is longer than {limits.HTTP_CLAIM_BYTES_MAX} bytes')
    return tuple(sorted((claim_names.PREFIX + name.lower(), value) for name, value in given.items()))


def _lasting(login: Login, readable: Iterable[Readable]) -> Login:
    """With the role that has just been looked up, whatever its name will stand for later."""
    return replace(login, role_id=next((each.role_id for each in readable), login.role_id))


def _names(given: Sequence[str]) -> list[ViewName]:
    if not given:
        raise RequestError(
            400, "no view is named", hint="Write view=name, view=schema.name or view=database.schema.name."
        )
    if len(given) > limits.HTTP_VIEWS_MAX:
        raise RequestError(400, f"{len(given)} views are named; {limits.HTTP_VIEWS_MAX} are allowed")
    found = [_name(text) for text in given]
    if len(set(found)) < len(found):
        raise RequestError(400, "a view is named twice")
    return found


def _name(text: str) -> ViewName:
    if _NAME.fullmatch(text) is None or "\0" in text:
        raise RequestError(400, f'"{text[:100]}" is no name of a view')
    parts = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in re.findall(_PART, text)]
    place = [*("postgres", "public")[: 3 - len(parts)], *parts]
    return ViewName(*place)
