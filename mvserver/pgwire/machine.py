"""The protocol engine of one connection, without I/O: bytes go in, actions and bytes come out.

It is written as one conversation (a generator), so that its states are places in the text: start-up, authentication,
ready, and, after an error in the extended protocol, skipping until Sync. Whatever may block is handed out as a
``BlockingCall``; the engine itself never waits. It may be advanced from any thread, by one at a time.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mvserver import limits, sqlstates
from mvserver.errors import SqlError, fatal
from mvserver.failures import as_sql_error
from mvserver.front import AnswersAtOnce, Backend, ClientSession, LooksUp, Postponed, Resets, Startup
from mvserver.pgwire import at_once, look_ups, messages, replies
from mvserver.pgwire.actions import Action, BlockingCall, CancelOther, Signal
from mvserver.pgwire.authentication import Authentication
from mvserver.pgwire.codec import HEAD_BYTES, Frame, FrameReader
from mvserver.pgwire.conversation import Conversation
from mvserver.pgwire.outbox import Outbox

Steps = Generator[Action, Any, None]


class State(enum.Enum):
    STARTUP = "startup"
    AUTHENTICATING = "authenticating"
    READY = "ready"
    DONE = "done"


class Encryption(enum.Enum):
    """Of the connection: what is answered to SSLRequest, and whether a client may do without."""

    OFF = "off"
    OFFERED = "on"
    REQUIRED = "required"


@dataclass(frozen=True)
class _Client:
    """The client as an authentication method sees it."""

    out: Outbox
    next_frame: Callable[[], Generator[Action, Any, Frame]]
    binding: bytes | None

    def send(self, message: bytes) -> None:
        self.out.add(message)

    def answer(self) -> Generator[Action, Any, bytes]:
        frame = yield from self.next_frame()
        if frame.kind != messages.PASSWORD:
            raise fatal(sqlstates.PROTOCOL_VIOLATION, f"expected password response, got message type {frame.kind}")
        return frame.body


class Machine:
    """``feed`` bytes, then ``advance``; do what the action says, by ``perform`` or with ``fail``, and ``advance``."""

    def __init__(
        self,
        backend: Backend,
        *,
        authentication: Authentication,
        process: int,
        key: bytes,
        peer: str,
        local: bool,
        refusal: SqlError | None = None,
        message_limit: int = limits.MESSAGE_BYTES_MAX,
        encryption: Encryption = Encryption.OFF,
        channel_binding: bytes | None = None,
    ) -> None:
        self._backend = backend
        self._authentication = authentication
        self._process = process
        self._key = key
        self._peer = peer
        self._local = local
        self._refusal = refusal
        self._message_limit = message_limit
        self._encryption = encryption
        self._channel_binding = channel_binding  # of the certificate; it counts once the connection is encrypted
        self._encrypted = False
        self.cipher: tuple[str, str, int] | None = None  # of TLS, as the connection tells it
        self._frames = FrameReader()
        self._out = Outbox()
        self._conversation: Conversation | None = None
        self._stop: SqlError | None = None
        self.on_wake: Callable[[], None] = lambda: None  # the engine wants to be advanced; called from any thread
        self.state = State.STARTUP
        self.session: ClientSession | None = None
        self.hurrying: AnswersAtOnce | None = None  # the same, where it can
        self.looking_up: LooksUp | None = None
        self.resetting: Resets | None = None
        self._steps = self._run()

    # --- the driver's side ------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> bool:
        """Whether there is anything to ``advance`` for: False where a message has only begun to arrive."""
        self._frames.feed(data)
        return self._frames.ready

    def advance(self) -> Action:
        return self._step(None)

    def fail(self, error: Exception) -> Action:
        """The last BlockingCall raised ``error``."""
        try:
            return self._steps.throw(error)
        except StopIteration:
            return Signal.DONE

    def perform(self, work: BlockingCall) -> Action:
        """Runs the call here and now, on a worker."""
        done = self.attempt(work)
        if isinstance(done, Postponed):
            raise RuntimeError("a call on a worker cannot be postponed")
        return done

    def attempt(self, work: BlockingCall) -> Action | Postponed:
        """The same on the event loop. Postponed leaves it to be done."""
        try:
            value = work.call()
        except Exception as error:  # noqa: BLE001 - every failure is the engine's to report
            return self.fail(error)
        return value if isinstance(value, Postponed) else self._step(value)

    def _step(self, value: Any) -> Action:
        try:
            return self._steps.send(value)
        except StopIteration:
            return Signal.DONE

    @property
    def worth_trying_at_once(self) -> bool:
        """Whether the messages at hand, and all of them, are those of short statements."""
        session = self.hurrying
        if session is None or self._frames.buffered > limits.AT_ONCE_MESSAGES_BYTES_MAX:
            return False
        try:
            return at_once.are_short(self._frames.waiting(), session)
        except SqlError:
            return False  # the message is malformed, as its turn will tell

    def look_up(self) -> bytes | None:
        """The whole answer to all that has come, where it is one look-up whose rows are at hand, or a reset of the
        session; else None."""
        conversation, frames = self._conversation, self._frames
        if conversation is None or not conversation.at_rest or self._stop is not None:
            return None
        if frames.buffered > min(limits.AT_ONCE_MESSAGES_BYTES_MAX, self._message_limit):
            return None
        waiting = list(frames.waiting())
        if sum([HEAD_BYTES + len(frame.body) for frame in waiting]) != frames.buffered:
            return None
        answer = self._answer_in_one_go(conversation, waiting)
        if answer is not None:
            frames.drop()
        return answer

    def _answer_in_one_go(self, conversation: Conversation, waiting: Sequence[Frame]) -> bytes | None:
        if self.resetting is not None and len(waiting) == 1 and conversation.reset(waiting[0], self.resetting):
            return self._out.take()
        return None if self.looking_up is None else look_ups.answer(waiting, self.looking_up.look_ups)

    def take_output(self) -> bytes:
        return self._out.take()

    def stop(self, error: SqlError) -> None:
        """End the connection with this error as soon as no statement runs. May be called from any thread."""
        self._stop = error

    @property
    def unread(self) -> bool:
        """Whether bytes have come that no message was made of."""
        return self._frames.buffered > 0

    @property
    def stopping(self) -> bool:
        return self._stop is not None

    def close(self) -> None:
        """Frees results and session, wherever the conversation stands. May block; safe to call again."""
        self.state = State.DONE
        self._steps.close()
        if self._conversation is not None:
            self._conversation.close()
        session, self.session = self.session, None
        if session is not None:
            session.close()

    # --- the conversation -------------------------------------------------------------------------------------------

    def _run(self) -> Steps:
        try:
            yield from self._start()
            yield from self._serve()
        except Exception as error:  # noqa: BLE001 - the client is told, the log has the rest
            self._out.add(replies.error_response(_as_fatal(as_sql_error(error))))
            error.__traceback__ = None  # who stops connections has one error for all: it would keep all their frames
        self.state = State.DONE

    def _next_frame(self, check: Callable[[], None] = lambda: None) -> Generator[Action, Any, Frame]:
        """``check`` is asked whenever the engine is advanced: it may raise, to end the waiting."""
        frame = self._frames.next()
        while frame is None:
            if self._stop is not None:
                raise self._stop
            check()
            yield Signal.NEED_INPUT
            frame = self._frames.next()
        return frame

    def _start(self) -> Steps:
        asked: set[str] = set()
        while True:
            frame = yield from self._next_frame()
            try:
                message = messages.read_startup(frame.body)
            except SqlError as error:
                raise _as_fatal(error) from error
            if isinstance(message, messages.EncryptionRequest):
                if message.kind in asked:
                    raise fatal(sqlstates.PROTOCOL_VIOLATION, f"{message.kind} encryption was requested more than once")
                asked.add(message.kind)
                yield from self._encrypt(message.kind)
                continue
            if isinstance(message, messages.CancelRequest):
                yield CancelOther(message.process, message.key)
                self.state = State.DONE
                return
            yield from self._log_in(message)
            return

    def _encrypt(self, kind: str) -> Steps:
        if kind != "SSL" or self._encryption is Encryption.OFF or self._encrypted:
            self._out.add(replies.ENCRYPTION_REFUSED)
            return
        if self._frames.buffered:
            # whoever sits in between could have put it there, to be taken for what the client says under encryption
            raise fatal(
                sqlstates.PROTOCOL_VIOLATION,
                "received unencrypted data after SSL request",
                detail="This could be either a client-software bug or evidence of an attempted man-in-the-middle "
                "attack.",
            )
        self._out.add(replies.TLS_ACCEPTED)
        yield Signal.START_TLS
        self._encrypted = True

    def _log_in(self, message: messages.StartupMessage) -> Steps:
        self._frames.startup = False
        unknown = [name for name in message.parameters if name.startswith("_pq_.")]
        if message.minor > 0 or unknown:
            self._out.add(replies.negotiate_protocol(messages.PROTOCOL_NEWEST, unknown))
        startup = _startup(message.parameters, self._peer, self._local, self._process, self.cipher)
        if self._refusal is not None:
            raise self._refusal
        if self._encryption is Encryption.REQUIRED and not self._encrypted:
            raise fatal(
                sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
                "connections without TLS are not allowed",
                hint="Connect with sslmode=require, or better with sslmode=verify-full.",
            )
        self.state = State.AUTHENTICATING
        binding = self._channel_binding if self._encrypted else None
        yield from self._authentication.authenticate(startup, _Client(self._out, self._next_frame, binding))
        self._out.add(replies.AUTHENTICATION_OK)
        session: ClientSession = yield BlockingCall(lambda: self._open(startup))
        conversation = self._conversation = Conversation(session, self._out, self._next_frame, lambda: self.on_wake())
        yield from conversation.greet(replies.backend_key(self._process, self._key))
        self._frames.message_limit = self._message_limit
        self.state = State.READY

    def _open(self, startup: Startup) -> ClientSession:
        self.session = self._backend.open_session(startup)
        if isinstance(self.session, AnswersAtOnce):
            self.hurrying = self.session
        if isinstance(self.session, LooksUp):
            self.looking_up = self.session
        if isinstance(self.session, Resets):
            self.resetting = self.session
        return self.session

    def _serve(self) -> Steps:
        conversation = self._conversation
        if conversation is None:  # a cancel request: nothing to serve
            return
        while True:
            if self._stop is not None and conversation.at_rest:
                raise self._stop
            frame = yield from self._next_frame()
            if frame.kind not in messages.FRONTEND_TYPES:
                raise fatal(sqlstates.PROTOCOL_VIOLATION, f"invalid frontend message type {frame.kind}")
            if frame.kind == messages.TERMINATE:
                return
            yield from conversation.answer(frame)


def _as_fatal(error: SqlError) -> SqlError:
    if error.severity in ("FATAL", "PANIC"):
        return error
    return SqlError(
        error.sqlstate,
        error.message,
        detail=error.detail,
        hint=error.hint,
        position=error.position,
        severity="FATAL",
        context=error.context,
    )


_REPLICATION_OFF = ("false", "off", "no", "0", "f", "n", "")


def _startup(
    parameters: Mapping[str, str], peer: str, local: bool, process: int, cipher: tuple[str, str, int] | None
) -> Startup:
    user = parameters.get("user", "")
    if not user:
        raise fatal(
            sqlstates.INVALID_AUTHORIZATION_SPECIFICATION, "no PostgreSQL user name specified in startup packet"
        )
    if parameters.get("replication", "").lower() not in _REPLICATION_OFF:
        raise fatal(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "replication connections are not supported",
            hint="Connect without the replication parameter.",
        )
    rest = {
        name: value
        for name, value in parameters.items()
        if name not in ("user", "database", "replication") and not name.startswith("_pq_.")
    }
    return Startup(user, parameters.get("database") or user, rest, peer, local, process, cipher)
