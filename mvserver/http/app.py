"""The routes, and what each request goes through: who asks, CORS, errors as JSON."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from aiohttp import web

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.failures import as_sql_error
from mvserver.front import Backend, ServedViews
from mvserver.http import openapi
from mvserver.http.bodies import header_of, parsed, read_raw, refuse_unknown, settings_of, text_of
from mvserver.http.changes import Changes
from mvserver.http.console_page import ConsolePage
from mvserver.http.cors import Origins
from mvserver.http.credentials import BEARER, BEARER_CHALLENGE, CHALLENGE, Caller, Credentials
from mvserver.http.etags import etag, matches
from mvserver.http.feeds import ViewName
from mvserver.http.formats import negotiate
from mvserver.http.mcp import tools
from mvserver.http.mcp.endpoint import McpEndpoint
from mvserver.http.statement import Login, Request, StatementRun
from mvserver.http.status import ALWAYS, OF_PATHS, UNAUTHORIZED, UNAVAILABLE, RequestError, body_of, status_of
from mvserver.http.view_query import build
from mvserver.http.view_schemas import readable_views
from mvserver.http.work import Answer, Workers, send
from mvserver.listening import is_loopback

_LOG = logging.getLogger(__name__)
_BEGUN = "begun"  # of a request: the answer whose head was sent
_JSON = "application/json; charset=utf-8"
_TICKETS = "/v1/tickets"
_SQL_FIELDS = ("statement", "parameters", "database", "schema", "role", "settings")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Neighbours:
    """What the routes ask of others. ``problem`` says why the server does not compute now, None where it does."""

    backend: Backend
    credentials: Credentials
    views: ServedViews
    origins: Origins
    problem: Callable[[], str | None]
    asked: Callable[[web.Request], None]
    stopping: Callable[[], bool]


class Routes:
    def __init__(self, neighbours: Neighbours, workers: Workers, changes: Changes) -> None:
        self._neighbours = neighbours
        self._workers = workers
        self._changes = changes
        self._mcp = McpEndpoint(lambda: tools.server(neighbours.backend, workers))
        self._console = ConsolePage()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=limits.MESSAGE_BYTES_MAX, middlewares=[self._around])
        app.on_response_prepare.append(self._headers)
        app.router.add_post("/v1/sql", self._sql)
        app.router.add_get("/v1/views/{database:[^/]+}/{schema:[^/]+}/{view:[^/]+}", self._view)
        app.router.add_get("/v1/changes", self._watch, allow_head=False)
        app.router.add_post(_TICKETS, self._ticket)
        app.router.add_route("*", "/mcp", self._assistant)
        app.router.add_get("/v1/openapi.json", self._openapi)
        app.router.add_get("/console", self._console.index)
        app.router.add_get("/console/{file:.+}", self._console.file)
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/readyz", self._ready)
        return app

    # --- around each request ----------------------------------------------------------------------------------------

    @web.middleware
    async def _around(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._neighbours.asked(request)
        origin = request.headers.get("Origin")
        if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
            return web.Response(status=204, headers=self._neighbours.origins.preflight(origin))
        try:
            if self._neighbours.stopping():
                raise SqlError(sqlstates.ADMIN_SHUTDOWN, "the server is shutting down")
            response = await handler(request)
        except web.HTTPException as error:
            response = self._told(request, _of_aiohttp(error))
            if "Allow" in error.headers:
                response.headers["Allow"] = error.headers["Allow"]
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets it as JSON
            begun = request.get(_BEGUN)
            if begun is not None:
                return self._cut(request, begun, error)
            response = self._told(request, as_sql_error(error))
        if self._neighbours.stopping() and not response.prepared:
            response.force_close()
        return response

    @staticmethod
    def _cut(request: web.Request, begun: web.StreamResponse, error: Exception) -> web.StreamResponse:
        """An answer whose head is sent already: nobody must take a part of it for the whole."""
        if request.transport is not None:
            request.transport.abort()
        if isinstance(error, (ConnectionError, TimeoutError)):
            _LOG.info("a client did not take an answer to its end: %s", type(error).__name__)
        else:
            _LOG.info("an answer was cut off: %s", as_sql_error(error).sqlstate)
        return begun

    async def _headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Right before they are sent."""
        request[_BEGUN] = response
        response.headers.update(ALWAYS)
        for name, value in self._neighbours.origins.headers(request.headers.get("Origin")).items():
            before = response.headers.get(name) if name == "Vary" else None
            both = before is not None and value not in before
            response.headers[name] = f"{value}, {before}" if both else before or value

    def _told(self, request: web.Request, error: SqlError) -> web.Response:
        of_path = "view" in request.match_info or "view" in request.query
        if of_path or request.path == _TICKETS:
            error.position = None  # in a text that the client has not written
        status = status_of(error, OF_PATHS if of_path else None)
        headers = {"Content-Type": _JSON, "Cache-Control": "no-store"}
        if status == UNAUTHORIZED:
            headers["WWW-Authenticate"] = BEARER_CHALLENGE if _caller(request).scheme == BEARER else CHALLENGE
        if status == UNAVAILABLE:
            headers["Retry-After"] = "1"
        return web.Response(status=status, body=body_of(error), headers=headers)

    async def _login(self, request: web.Request) -> Login:
        caller = _caller(request)
        role = await self._workers.call(self._neighbours.credentials.role_of, caller)
        cipher = None if request.transport is None else request.transport.get_extra_info("cipher")
        return Login(role, caller.peer, caller.local, cipher)

    # --- statements -------------------------------------------------------------------------------------------------

    async def _sql(self, request: web.Request) -> web.StreamResponse:
        form = negotiate(header_of(request, "Accept"))
        login = await self._login(request)
        raw = await read_raw(request)
        wanted = await self._workers.call(_request_of, raw)
        run = StatementRun(self._neighbours.backend, login, wanted)
        async with self._workers.supervise(run) as supervised:
            await supervised.step(run.prepare)
            return await send(request, supervised, Answer(form, {"Cache-Control": "no-store"}))

    # --- views ------------------------------------------------------------------------------------------------------

    async def _view(self, request: web.Request) -> web.StreamResponse:
        form = negotiate(header_of(request, "Accept"), bare=True)
        given = request.query.getall("ticket", [])
        login = await self._login(request) if not given else self._of_ticket(request, given, [_view_of(request)])
        place = tuple(request.match_info[part] for part in ("database", "schema", "view"))
        if any("\0" in part for part in place):
            raise RequestError(400, "a name has a zero byte")
        database, schema, view = place
        query = build(schema, view, [(name, value) for name, value in request.query.items() if name != "ticket"])
        wanted = Request(query.text, query.parameters, database=database)
        run = StatementRun(self._neighbours.backend, login, wanted)
        async with self._workers.supervise(run) as supervised:
            await supervised.step(run.prepare)
            if not await self._workers.call(self._neighbours.views.is_view, database, schema, view):
                raise SqlError(
                    sqlstates.WRONG_OBJECT_TYPE,
                    f'"{view}" is no view',
                    hint="Read other relations with POST /v1/sql.",
                )
            views = self._neighbours.views
            version = await self._workers.call(views.version, database, schema, view)
            if version is not None and await self._workers.call(views.hides_rows, *place, login.role):
                version = None  # who sees some rows alone would learn when the others change
            tag = None
            headers = {"Cache-Control": "private, no-cache", "Vary": "Accept, Authorization"}
            if version is not None:
                tag = etag(version, [login.role, login.claims, query, form, run.zone, run.fields])
                if matches(header_of(request, "If-None-Match"), tag):
                    return web.Response(status=304, headers={**headers, "ETag": tag})

            if request.method == "HEAD":
                head = {**headers, "Content-Type": form.content_type, **({"ETag": tag} if tag else {})}
                return web.Response(headers=head)

            def still() -> str | None:
                """The rows are those of the version where it is the same before and after they were looked up."""
                return tag if tag and self._neighbours.views.version(database, schema, view) == version else None

            return await send(request, supervised, Answer(form, headers, still))

    # --- changes of views -------------------------------------------------------------------------------------------

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        given = request.query.getall("ticket", [])
        if not given:
            return await self._changes.answer(request, await self._login(request), shared=False)
        views = self._changes.views_of(request)
        login = self._of_ticket(request, given, views)
        return await self._changes.answer(request, login, shared=True)

    def _of_ticket(self, request: web.Request, given: Sequence[str], views: Sequence[ViewName]) -> Login:
        if len(given) > 1:
            raise RequestError(400, 'query parameter "ticket" stands twice')
        ticket = self._changes.tickets.read(given[0])
        if not {view.exact for view in views} <= set(ticket.views):
            raise SqlError(sqlstates.INSUFFICIENT_PRIVILEGE, "the ticket is of other views")
        caller = _caller(request)
        return Login(ticket.role, caller.peer, caller.local, claims=ticket.claims, role_id=ticket.role_id)

    async def _ticket(self, request: web.Request) -> web.StreamResponse:
        login = await self._login(request)
        return await self._changes.ticket(login, await read_raw(request))

    # --- assistants -------------------------------------------------------------------------------------------------

    async def _assistant(self, request: web.Request) -> web.StreamResponse:
        return await self._mcp.answer(request, await self._login(request))

    async def stop(self) -> None:
        await self._mcp.stop()

    # --- the server itself ------------------------------------------------------------------------------------------

    async def _openapi(self, request: web.Request) -> web.StreamResponse:
        headers = {"Content-Type": _JSON, "Cache-Control": "private, no-cache", "Vary": "Authorization"}
        if "Authorization" not in request.headers:
            return web.Response(body=openapi.document(), headers=headers)
        views = await readable_views(self._workers, self._neighbours.backend, await self._login(request))
        body = await self._workers.call(openapi.document_for, views)
        return web.Response(body=body, headers=headers)

    async def _health(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "ok"}, headers={"Cache-Control": "no-store"})

    async def _ready(self, request: web.Request) -> web.StreamResponse:
        problem = self._neighbours.problem()
        shown = {"status": "ready" if problem is None else "not ready", "reason": problem}
        return web.json_response(
            shown, status=200 if problem is None else UNAVAILABLE, headers={"Cache-Control": "no-store"}
        )


def _of_aiohttp(error: web.HTTPException) -> RequestError:
    words = {404: "there is nothing at this path", 405: "the method is not allowed at this path"}
    return RequestError(error.status, words.get(error.status, error.reason.lower()), hint="See /v1/openapi.json.")


def _view_of(request: web.Request) -> ViewName:
    return ViewName(*(request.match_info[part] for part in ("database", "schema", "view")))


def _caller(request: web.Request) -> Caller:
    peer = request.remote or ""
    return Caller(peer, is_loopback(peer), request.headers.get("Host", ""), request.headers.get("Authorization"))


def _request_of(raw: bytes) -> Request:
    body = parsed(raw)
    refuse_unknown(body, _SQL_FIELDS)
    statement = text_of(body, "statement")
    if statement is None:
        raise RequestError(400, 'field "statement" is missing')
    parameters = body.get("parameters")
    if parameters is not None and not isinstance(parameters, list):
        raise RequestError(400, 'field "parameters" must be an array')
    return Request(
        statement,
        parameters or (),
        database=text_of(body, "database") or "postgres",
        schema=text_of(body, "schema"),
        role=text_of(body, "role"),
        settings=settings_of(body),
    )
