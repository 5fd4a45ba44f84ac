"""The part of the protocol after log-in: simple and extended queries, one answer for each message.

Session methods may block, so each is yielded as a BlockingCall. Errors end where PostgreSQL ends them: in the simple
protocol at ReadyForQuery, in the extended one everything is skipped until Sync.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any

from mvserver import limits, sqlstates
from mvserver.errors import SqlError, fatal
from mvserver.failures import as_sql_error
from mvserver.front import ClientSession, CopyIn, CopyOut, Field, HearsOfFailures, Resets, Result, StopsReading
from mvserver.pgwire import messages, replies
from mvserver.pgwire.actions import Action, BlockingCall, Signal
from mvserver.pgwire.codec import Frame, violation
from mvserver.pgwire.copy_out import copy_framer
from mvserver.pgwire.outbox import Outbox
from mvserver.pgwire.parameters import read_all
from mvserver.pgwire.rows import all_formats, check_formats, row_framer
from mvserver.pgwire.streams import FramedRows, RowStream, WirePortal, row_stream
from mvserver.types.registry import depends_on_zone

DEFAULT_ZONE = "UTC"
NO_FORMATS: tuple[int, ...] = ()  # all text

Steps = Generator[Action, Any, None]
NextFrame = Callable[[Callable[[], None]], Generator[Action, Any, Frame]]

_SIMPLE = frozenset({messages.QUERY, messages.FUNCTION_CALL})  # what ends with ReadyForQuery by itself
_IGNORED_IN_COPY = frozenset({messages.FLUSH, messages.SYNC})  # libraries send them without knowing that it is a COPY
_COPY = frozenset({messages.COPY_DATA, messages.COPY_DONE, messages.COPY_FAIL})


class Conversation:
    def __init__(self, session: ClientSession, out: Outbox, next_frame: NextFrame, wake: Callable[[], None]) -> None:
        """``next_frame`` is for statements that read the client's messages themselves; ``wake`` has it look again."""
        self._session = session
        self._out = out
        self._next_frame = next_frame
        self._wake = wake
        self._portals: dict[str, WirePortal] = {}
        self._running: Iterator[Result] | None = None  # a simple query's results
        self._result: Result | None = None  # the one of them that is being sent
        self._reported: dict[str, str] = {}
        self._skipping = False
        self.at_rest = False  # right after ReadyForQuery
        self._answers: dict[int, Callable[[bytes], Steps]] = {
            messages.QUERY: self._query,
            messages.PARSE: self._parse,
            messages.BIND: self._bind,
            messages.DESCRIBE: self._describe,
            messages.EXECUTE: self._execute,
            messages.CLOSE: self._close,
            messages.FLUSH: self._flush,
            messages.SYNC: self._sync,
            messages.FUNCTION_CALL: self._function_call,
        }

    def greet(self, backend_key: bytes) -> Steps:
        """What a client is told right after it is let in."""
        self._report(dict((yield BlockingCall(self._session.parameter_status))))
        self._out.add(backend_key)
        yield from self._ready()

    def answer(self, frame: Frame) -> Steps:
        self.at_rest = False
        if self._skipping and frame.kind != messages.SYNC:
            return
        if frame.kind in _COPY:
            return  # left over from a COPY that failed: PostgreSQL ignores these too
        try:
            yield from self._answers[frame.kind](frame.body)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an ErrorResponse
            yield from self._failed(frame.kind, error)

    def close(self) -> None:
        """Frees what is still open; may block."""
        self._end_simple()
        self._drop_portals()

    # --- what every answer needs ------------------------------------------------------------------------------------

    def _failed(self, kind: int, error: Exception) -> Steps:
        told = as_sql_error(error)
        yield BlockingCall(self._end_simple)
        if isinstance(self._session, HearsOfFailures):
            yield BlockingCall(self._session.fail)
        yield from self._notices()
        if told.severity in ("FATAL", "PANIC"):
            raise told
        self._out.add(replies.error_response(told))
        if kind in _SIMPLE or kind == messages.SYNC:
            self._skipping = False
            yield from self._ready()
        else:
            self._skipping = True

    def _ready(self) -> Steps:
        status: str
        status, reported = yield BlockingCall(self._wrap_up)
        self._report(reported)
        self._out.add(replies.ready_for_query(status))
        self.at_rest = True

    def _wrap_up(self) -> tuple[str, dict[str, str]]:
        status = self._session.transaction_status()
        if status == "I":
            self._drop_portals()  # portals end with their transaction
        return status, dict(self._session.parameter_status())

    def _report(self, parameters: dict[str, str]) -> None:
        if parameters == self._reported:
            return
        for name, value in parameters.items():
            if self._reported.get(name) != value:
                self._out.add(replies.parameter_status(name, value))
        self._reported = parameters

    def _notices(self) -> Steps:
        for notice in (yield BlockingCall(self._session.take_notices)):
            self._out.add(replies.notice_response(notice))

    def _zone(self, fields: Sequence[Field]) -> Generator[Action, Any, str]:
        """The session's zone as of now, where a column's text depends on it."""
        if not any(depends_on_zone(field.type_oid) for field in fields):
            return DEFAULT_ZONE
        zone: str = yield BlockingCall(self._session_zone)
        return zone

    def _session_zone(self) -> str:
        return self._session.parameter_status().get("TimeZone", DEFAULT_ZONE)

    def _drop_portals(self) -> None:
        portals, self._portals = self._portals, {}
        for portal in portals.values():
            portal.close()

    def _end_simple(self) -> None:
        result, self._result = self._result, None
        if result is not None:
            result.close()
        running, self._running = self._running, None
        close = getattr(running, "close", None)
        if close is not None:
            close()

    # --- resets -----------------------------------------------------------------------------------------------------

    def reset(self, frame: Frame, session: Resets) -> bool:
        """Whether this is a query that makes the session as it was at its start, and is answered: without waiting."""
        if frame.kind != messages.QUERY or len(frame.body) > limits.RESET_BYTES_MAX:
            return False
        try:
            tag = session.reset(messages.read_query(frame.body).text)
        except SqlError:
            return False  # a text that cannot be read, as its turn will tell
        if tag is None:
            return False
        self._out.add(replies.command_complete(tag))
        status, reported = self._wrap_up()
        self._report(reported)
        self._out.add(replies.ready_for_query(status))
        return True

    # --- simple queries ---------------------------------------------------------------------------------------------

    def _query(self, body: bytes) -> Steps:
        text = messages.read_query(body).text
        if "" in self._portals:
            yield from self._discard_portal("")
        running = self._running = yield BlockingCall(partial(self._session.simple_query, text))
        answered = False
        while True:
            result: Result | None = yield BlockingCall(partial(next, running, None))
            if result is None:
                break
            answered = True
            self._result = result
            yield from self._send_result(result)
            yield BlockingCall(result.close)
            self._result = None
        self._running = None
        if not answered:
            self._out.add(replies.EMPTY_QUERY)
        yield from self._ready()

    def _send_result(self, result: Result) -> Steps:
        if result.empty:
            yield from self._notices()
            self._out.add(replies.EMPTY_QUERY)
            return
        sent = 0
        if result.copy_in is not None:
            sent = yield from self._receive_copy(result.copy_in)
        elif result.copy is not None:
            sent = yield from self._send_copy(result, result.copy)
        elif result.fields is not None:
            formats = (1 if result.binary else 0,) * len(result.fields)
            self._out.add(replies.row_description(result.fields, formats))
            zone = yield from self._zone(result.fields)
            sent = yield from self._send_rows(row_stream(result, row_framer(result.fields, formats, zone)), None)
        yield from self._complete(result, sent)

    def _send_copy(self, result: Result, options: CopyOut) -> Generator[Action, Any, int]:
        """All rows as COPY data; row limits are not for them, in PostgreSQL neither."""
        fields = result.fields or ()
        zone = yield from self._zone(fields)
        framer = copy_framer(options, fields, zone)
        self._out.add(replies.copy_out(len(fields), 1 if options.format == "binary" else 0))
        self._out.add(framer.begin())
        sent = yield from self._send_rows(RowStream(result, framer), None)
        self._out.add(framer.end())
        self._out.add(replies.COPY_DONE)
        return sent

    def _receive_copy(self, copy: CopyIn) -> Generator[Action, Any, int]:
        """The client's rows, up to CopyDone. What it still sends after an error is ignored."""
        self._out.add(replies.copy_in(copy.columns, 1 if copy.binary else 0))
        copy.on_wake = self._wake
        try:
            while True:
                frame = yield from self._next_frame(copy.check)
                if frame.kind == messages.COPY_DATA:
                    yield BlockingCall(partial(copy.feed, frame.body))
                elif frame.kind == messages.COPY_DONE:
                    messages.read_nothing(frame.body)
                    rows: int = yield BlockingCall(copy.finish)
                    return rows
                elif frame.kind == messages.COPY_FAIL:
                    yield BlockingCall(partial(copy.fail, messages.read_copy_fail(frame.body)))
                elif frame.kind not in _IGNORED_IN_COPY:
                    # whatever the client thinks it is doing, it is out of step
                    raise fatal(
                        sqlstates.PROTOCOL_VIOLATION,
                        f"unexpected message type 0x{frame.kind:02X} during COPY from stdin",
                    )
        finally:
            copy.close()

    def _send_rows(self, stream: RowStream | FramedRows, most: int | None) -> Generator[Action, Any, int]:
        """Up to ``most`` rows; fewer where ``stream.ended``, or where no more of a live stream are there."""
        live = stream.result.live
        if live is not None:
            yield from self._notices()  # they tell a client that waits how not to
        sent = 0
        while most is None or sent < most:
            if stream.drained and live is not None and not (yield BlockingCall(live)):
                if most is not None and sent:
                    return sent
                yield Signal.FLUSH
            if stream.drained and not (yield BlockingCall(stream.pull)):
                return sent
            framed, rows = stream.take(None if most is None else most - sent)
            self._out.add(framed)
            sent += rows
            if self._out.full:
                yield Signal.FLUSH
        return sent

    def _complete(self, result: Result, sent: int) -> Steps:
        yield from self._notices()
        self._out.add(replies.command_complete(f"{result.tag}{sent}" if result.tag.endswith(" ") else result.tag))

    def _function_call(self, body: bytes) -> Steps:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "the function call protocol is not supported",
            hint="Call the function in a SELECT.",
        )
        yield

    # --- extended queries -------------------------------------------------------------------------------------------

    def _parse(self, body: bytes) -> Steps:
        message = messages.read_parse(body)
        yield BlockingCall(partial(self._session.parse, message.name, message.text, message.parameter_oids))
        self._out.add(replies.PARSE_COMPLETE)

    def _bind(self, body: bytes) -> Steps:
        message = messages.read_bind(body)
        description = yield BlockingCall(partial(self._session.describe_statement, message.statement))
        oids: tuple[int, ...] = description.parameter_oids
        given, formats = message.parameters, message.parameter_formats
        if len(formats) > 1 and len(formats) != len(given):
            raise violation(f"bind message has {len(formats)} parameter formats but {len(given)} parameters")
        if len(given) != len(oids):
            raise violation(
                f"bind message supplies {len(given)} parameters, but prepared statement "
                f'"{message.statement}" requires {len(oids)}'
            )
        check_formats(message.result_formats)
        if len(message.result_formats) > 1:
            all_formats(message.result_formats, len(description.fields or ()))
        if not message.portal:
            yield from self._discard_portal("")
        zone = (yield BlockingCall(self._session_zone)) if any(map(depends_on_zone, oids)) else DEFAULT_ZONE
        sent = tuple(zip(given, all_formats(formats, len(given)), oids, strict=True))
        if isinstance(self._session, StopsReading) and len(body) > limits.PARAMETERS_READ_AT_ONCE_BYTES:
            values = yield BlockingCall(partial(self._session.reading, partial(read_all, message.portal, sent, zone)))
        else:
            values = read_all(message.portal, sent, zone)
        yield BlockingCall(partial(self._session.bind, message.portal, message.statement, values))
        stale = self._portals.get(message.portal)  # one that CLOSE has ended in SQL
        if stale is not None:
            yield BlockingCall(stale.close)
        self._portals[message.portal] = WirePortal(message.portal, message.result_formats)
        self._out.add(replies.BIND_COMPLETE)

    def _describe(self, body: bytes) -> Steps:
        message = messages.read_describe(body)
        if message.of == "S":
            description = yield BlockingCall(partial(self._session.describe_statement, message.name))
            self._out.add(replies.parameter_description(description.parameter_oids))
            fields, formats = description.fields, NO_FORMATS
        else:
            fields = yield BlockingCall(partial(self._session.describe_portal, message.name))
            portal = self._portals.get(message.name)  # None: a cursor that was declared in SQL
            formats = NO_FORMATS if portal is None else portal.formats
        if fields is None:
            self._out.add(replies.NO_DATA)
        else:
            self._out.add(replies.row_description(fields, all_formats(formats, len(fields))))

    def _execute(self, body: bytes) -> Steps:
        message = messages.read_execute(body)
        portal = self._portals.get(message.portal) or WirePortal(message.portal, NO_FORMATS)
        if portal.complete and portal.stream is None:
            raise SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, f'portal "{portal.name}" cannot be run')
        most = message.max_rows if message.max_rows > 0 else None
        if portal.result is None:
            yield from self._start(portal, most)
            self._portals[portal.name] = portal
        result = portal.result
        if result is None or result.empty:
            yield from self._notices()
            self._out.add(replies.EMPTY_QUERY)
            return
        sent = 0
        if result.copy_in is not None and not portal.complete:
            sent = yield from self._receive_copy(result.copy_in)
        elif result.copy is not None and not portal.complete:
            sent = yield from self._send_copy(result, result.copy)
        elif portal.stream is not None and not portal.complete:
            sent = yield from self._send_rows(portal.stream, most)
            if most is not None and not portal.stream.ended:
                if result.part:
                    yield BlockingCall(portal.close)
                yield from self._notices()
                self._out.add(replies.PORTAL_SUSPENDED)
                return
        if result.part:
            yield BlockingCall(portal.close)
        elif not portal.complete:
            portal.complete = True
            yield BlockingCall(result.close)
        yield from self._complete(result, sent)

    def _start(self, portal: WirePortal, most: int | None) -> Steps:
        result: Result = yield BlockingCall(partial(self._session.execute, portal.name, most))
        portal.result = result
        if result.fields is not None and result.copy is None:
            formats = all_formats(portal.formats, len(result.fields))
            zone = yield from self._zone(result.fields)
            portal.stream = row_stream(result, row_framer(result.fields, formats, zone))

    def _close(self, body: bytes) -> Steps:
        message = messages.read_close(body)
        if message.of == "S":
            yield BlockingCall(partial(self._session.close_statement, message.name))
        else:
            yield from self._discard_portal(message.name)
        self._out.add(replies.CLOSE_COMPLETE)

    def _discard_portal(self, name: str) -> Steps:
        portal = self._portals.pop(name, None)
        if portal is not None:
            yield BlockingCall(portal.close)
        yield BlockingCall(partial(self._session.close_portal, name))

    def _flush(self, body: bytes) -> Steps:
        messages.read_nothing(body)
        yield Signal.FLUSH

    def _sync(self, body: bytes) -> Steps:
        self._skipping = False
        messages.read_nothing(body)
        yield BlockingCall(self._session.sync)
        yield from self._notices()
        yield from self._ready()
