"""One statement in a session of its own: opened for a request, run, read in pieces, closed.

All methods but ``cancel`` are called from worker threads, one at a time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.front import Backend, ClientSession, Field, HearsOfFailures, Postponed, Result, Startup, StopsReading
from mvserver.http import parameters
from mvserver.http.formats import Format, Writer, outcome, writer
from mvserver.quoting import quoted
from mvserver.types.registry import depends_on_zone

_LOG = logging.getLogger(__name__)

DEFAULT_ZONE = "UTC"
_CANCEL_AGAIN_S = 0.01


@dataclass(frozen=True)
class Request:
    """``parameters`` are values of a JSON text. ``settings`` are the session's from its start."""

    text: str
    parameters: Sequence[Any] = ()
    database: str = "postgres"
    schema: str | None = None
    role: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Login:
    """Who asks, and over which connection."""

    role: str
    peer: str
    local: bool
    cipher: tuple[str, str, int] | None = None
    claims: tuple[tuple[str, str], ...] = ()  # as settings of the session; those of a ticket
    role_id: str | None = None  # of what lasts: a later role of the same name is another one


@dataclass(frozen=True)
class Piece:
    """A part of a body. ``last``: there is no more. ``tag`` is set with the last one."""

    data: bytes
    last: bool
    tag: str = ""


class StatementRun:
    def __init__(self, backend: Backend, login: Login, request: Request) -> None:
        self._backend = backend
        self._login = login
        self._request = request
        self._session: ClientSession | None = None
        self._result: Result | None = None
        self._writer: Writer | None = None
        self._batches: Iterator[Any] = iter(())
        self._sent = 0
        self._cancelled = False
        self.zone = DEFAULT_ZONE
        self.settings: Mapping[str, str] = {}
        self.fields: tuple[Field, ...] | None = None

    # --- steps ------------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Opens the session and plans the statement: names and privileges are checked, nothing has happened."""
        session = self._open()
        self._go_on()
        session.parse("", self._request.text, ())
        description = session.describe_statement("")
        self.fields = description.fields
        self.settings = dict(session.parameter_status())
        self.zone = self.settings.get("TimeZone", DEFAULT_ZONE)
        values = self._read_parameters(session, description.parameter_oids)
        session.bind("", "", values)

    def begin(self, form: Format) -> None:
        """Runs it. What it has changed lasts when the last piece is read."""
        session = self._session
        assert session is not None  # noqa: S101 - prepared first
        self._go_on()
        if self.fields is not None:
            self._writer = writer(form, self.fields, self.zone)  # first: what it refuses must not have happened
        result = session.execute("", None)
        assert not isinstance(result, Postponed)  # noqa: S101 - that is an answer on the event loop alone
        self._result = result
        self._refuse_copies(result)
        if result.empty:
            raise SqlError(sqlstates.SYNTAX_ERROR, "the statement is empty")
        if result.live is not None and form.media_type != "application/x-ndjson":
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "rows that come as they happen cannot be a document",
                hint="Accept application/x-ndjson: each row is sent as a line when it comes.",
            )
        self._batches = iter(result.batches)

    @property
    def live(self) -> bool:
        """Whether its rows come as they happen."""
        return self._result is not None and self._result.live is not None

    def piece(self, *, first: bool) -> Piece:
        """The next part of the body, of about the size that the wire has. With rows that come as they happen, those
        that are there."""
        result, made = self._result, self._writer
        assert result is not None  # noqa: S101 - begun first
        if result.fields is None or made is None:
            tag = result.tag.rstrip()
            return Piece(outcome(tag, self._finish()), last=True, tag=tag)
        parts = [made.begin()] if first else []
        size = len(parts[0]) if parts else 0
        live = result.live
        while size < limits.RESULT_CHUNK_BYTES:
            if live is not None and (first or size) and not live():
                return Piece(b"".join(parts), last=False)
            batch = next(self._batches, None)
            if batch is None:
                tag = f"{result.tag}{self._sent}" if result.tag.endswith(" ") else result.tag
                parts.append(made.end(tag, self._finish()))
                return Piece(b"".join(parts), last=True, tag=tag)
            for part in _slices(batch):
                self._sent += part.num_rows
                parts.append(made.rows(part))
                size += len(parts[-1])
        return Piece(b"".join(parts), last=False)

    def fail(self) -> None:
        """The statement counts as failed; to be called before ``close`` after an error."""
        session = self._session
        if isinstance(session, HearsOfFailures):
            session.fail()

    def close(self) -> None:
        """Frees everything. Safe to call at any time when no other step runs."""
        result, self._result = self._result, None
        session, self._session = self._session, None
        try:
            if result is not None:
                result.close()
        finally:
            if session is not None:
                session.close()

    # --- from other threads -----------------------------------------------------------------------------------------

    def cancel(self, under_way: Callable[[], bool]) -> None:
        """Ends the step that is ``under_way``; returns when it has been told. May block for a moment."""
        self._cancelled = True
        while under_way():
            session = self._session
            if session is not None and session.cancel():
                return
            time.sleep(_CANCEL_AGAIN_S)

    # --- parts ------------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        if self._cancelled:
            raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")

    def _open(self) -> ClientSession:
        request, login = self._request, self._login
        settings = {"application_name": "http", **request.settings, **dict(login.claims)}
        if request.schema is not None:
            settings["search_path"] = quoted(request.schema)
        startup = Startup(login.role, request.database, settings, login.peer, login.local, cipher=login.cipher)
        session = self._session = self._backend.open_session(startup)
        if request.role is not None:
            for result in session.simple_query(f"SET ROLE {quoted(request.role)}"):
                assert not isinstance(result, Postponed)  # noqa: S101 - as above
        return session

    def _read_parameters(self, session: ClientSession, types: Sequence[int]) -> list[Any]:
        zone = self.zone if any(map(depends_on_zone, types)) else DEFAULT_ZONE
        given = self._request.parameters
        if isinstance(session, StopsReading):
            found = session.reading(lambda check: parameters.read_all(given, types, zone, check))
            assert not isinstance(found, Postponed)  # noqa: S101 - as above
            return found
        return parameters.read_all(given, types, zone)

    @staticmethod
    def _refuse_copies(result: Result) -> None:
        if result.copy_in is not None or result.copy is not None:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "COPY is not supported over HTTP",
                hint="Read with SELECT as JSON lines or Arrow; load rows with COPY over the PostgreSQL protocol.",
            )

    def _finish(self) -> Sequence[Any]:
        """The statement is over and its transaction with it; what it told besides."""
        session, result = self._session, self._result
        assert session is not None  # noqa: S101 - prepared first
        if result is not None:
            result.close()
        session.sync()
        if session.transaction_status() != "I":
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "a transaction cannot outlast its request",
                hint="Each request is a transaction of its own; use the PostgreSQL protocol for longer ones, and for "
                "BEGIN APPLICATION.",
            )
        return session.take_notices()


def _slices(batch: Any) -> Iterator[Any]:
    rows = int(batch.num_rows)
    if not rows:
        return
    size = max(1, batch.nbytes // rows)
    most = max(1, min(limits.RESULT_CHUNK_ROWS, limits.RESULT_CHUNK_BYTES // size))
    if rows <= most:
        yield batch
        return
    for start in range(0, rows, most):
        yield batch.slice(start, most)
