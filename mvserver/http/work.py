"""Statements at work for requests: steps on worker threads, pieces to the client as fast as it takes them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiohttp import web

from mvserver import limits
from mvserver.http.formats import JSON, Format
from mvserver.http.statement import Piece, StatementRun

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

COMMAND = "Mv-Command"
"""The response header with the command tag, where the body has no place for it."""


class Workers:
    """``workers`` run steps of statements, ``cancels`` stop them: what is to be stopped must not be in the way."""

    def __init__(self, workers: Executor, cancels: Executor) -> None:
        self._workers = workers
        self._cancels = cancels
        self._runs: set[Supervised] = set()
        self._cleaning: set[asyncio.Task[None]] = set()

    async def call(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """For short work, whose end is waited for whatever happens."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, function, *arguments)

    def supervise(self, run: StatementRun) -> Supervised:
        supervised = Supervised(self, run)
        self._runs.add(supervised)
        return supervised

    async def end_all(self) -> None:
        """Cancels what runs, and waits until it has ended; for the server's end."""
        await asyncio.gather(*(run.stop() for run in list(self._runs)), return_exceptions=True)
        if self._cleaning:
            await asyncio.wait(self._cleaning, timeout=limits.SHUTDOWN_GRACE_S)

    @property
    def at_work(self) -> int:
        return len(self._runs)

    # --- for Supervised ---------------------------------------------------------------------------------------------

    def begin(self, function: Callable[..., _T], *arguments: Any) -> asyncio.Future[_T]:
        return asyncio.get_running_loop().run_in_executor(self._workers, function, *arguments)

    async def stop(self, run: StatementRun, under_way: Callable[[], bool]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._cancels, run.cancel, under_way)

    def forget(self, run: Supervised) -> None:
        self._runs.discard(run)

    def clean_up(self, run: Supervised) -> None:
        """In a task of its own, which the end of a request does not end."""
        task = asyncio.get_running_loop().create_task(run.clean_up())
        self._cleaning.add(task)
        task.add_done_callback(self._cleaning.discard)


class Supervised:
    """A run whose session is closed when the block ends, however it ends: a step that nobody waits for any more is
    cancelled first."""

    def __init__(self, workers: Workers, run: StatementRun) -> None:
        self._workers = workers
        self.run = run
        self._step: asyncio.Future[Any] | None = None

    async def __aenter__(self) -> Supervised:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._failed = kind is not None
        self._workers.clean_up(self)

    async def step(self, function: Callable[..., _T], *arguments: Any) -> _T:
        step = self._step = self._workers.begin(function, *arguments)
        return await asyncio.shield(step)

    async def stop(self) -> None:
        step = self._step
        if step is not None and not step.done():
            await self._workers.stop(self.run, lambda: not step.done())

    async def clean_up(self) -> None:
        await self.stop()
        step = self._step
        if step is not None:
            await asyncio.wait([step])
            if not step.cancelled():
                step.exception()  # whoever waited for it was told, or has gone
        try:
            await self._workers.begin(self._close)
        except Exception:  # noqa: BLE001 - logged; there is no client to tell
            _LOG.exception("closing a session failed")
        finally:
            self._workers.forget(self)

    def _close(self) -> None:
        try:
            if self._failed:
                self.run.fail()
        finally:
            self.run.close()


@dataclass(frozen=True)
class Answer:
    """How the result is to be sent. ``etag`` is asked once the statement has begun; None leaves it out."""

    form: Format
    headers: Mapping[str, str] = field(default_factory=dict)
    etag: Callable[[], str | None] = lambda: None


async def send(request: web.Request, supervised: Supervised, answer: Answer) -> web.StreamResponse:
    """Begins a prepared statement and sends its result. Whatever goes wrong is raised, also behind the
    first byte."""
    run, form = supervised.run, answer.form
    await supervised.step(run.begin, form)
    etag = answer.etag()
    headers = {**answer.headers, **({} if etag is None else {"ETag": etag})}
    piece = await supervised.step(_piece, run, True)
    if run.fields is None:
        return _without_rows(piece, form, headers)
    if piece.last:
        return web.Response(body=piece.data, headers={**headers, "Content-Type": form.content_type, COMMAND: piece.tag})
    response = web.StreamResponse(headers={**headers, "Content-Type": form.content_type})
    await response.prepare(request)
    while True:
        if piece.data:
            async with asyncio.timeout(limits.HTTP_STALLED_S):
                await response.write(piece.data)
        if piece.last:
            break
        piece = await supervised.step(_piece, run, False)
    await response.write_eof()
    return response


def _piece(run: StatementRun, first: bool) -> Piece:
    return run.piece(first=first)


def _without_rows(piece: Piece, form: Format, headers: Mapping[str, str]) -> web.Response:
    if form.media_type == JSON:
        return web.Response(body=piece.data, headers={**headers, "Content-Type": form.content_type, COMMAND: piece.tag})
    return web.Response(status=204, headers={**headers, COMMAND: piece.tag})
