"""One client's connection: carries bytes between its socket and its protocol engine.

All decisions are taken on the event loop. What may block or takes long (session methods, encoding of rows) runs in one
job on a worker thread, which keeps the engine until it needs input or has a piece of output ready; so a whole pipeline
of messages costs one hand-over. While the client does not take its output no job runs and no thread is held.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Protocol, cast

from mvserver import limits, sqlstates
from mvserver.errors import SqlError, fatal
from mvserver.front import AnswersAtOnce, EndsByItself, Postponed
from mvserver.listening import is_loopback
from mvserver.pgwire import replies
from mvserver.pgwire.actions import Action, BlockingCall, CancelOther, Signal
from mvserver.pgwire.machine import Machine, State
from mvserver.pgwire.tls import Tls

_LOG = logging.getLogger(__name__)

_CANCEL_AGAIN_S = 0.005  # a worker takes a message up within about that


class Host(Protocol):
    """What a connection needs of the server it belongs to."""

    workers: Executor
    cancels: Executor
    authentication_timeout_s: float
    write_high_water: int
    tls: Tls | None

    def opened(self, connection: Connection) -> Machine | None:
        """The engine for a new connection; None to hang up at once."""

    def closed(self, connection: Connection) -> None: ...

    def cancel(self, process: int, key: bytes, done: Callable[[], None]) -> None:
        """``done`` is called, from any thread, when the request was passed on, or where there is nobody to cancel."""

    def gather(self, answer: Callable[[], None], go_on: Callable[[], None]) -> None:
        """Calls both when all that has come by now is read, ``answer`` of all first."""


class Connection(asyncio.Protocol):
    def __init__(self, host: Host, loop: asyncio.AbstractEventLoop) -> None:
        self._host = host
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._machine: Machine | None = None
        self._inbox: deque[bytes] = deque()
        self._inbox_bytes = 0
        self._busy = False  # a job has the engine
        self._jobs = 0  # how many there have been
        self._parked = False  # output waits for the client, the engine for the output
        self._full = False  # the transport's buffer is over the high-water mark
        self._lost = False
        self._closing = False
        self._handshake: asyncio.Task[None] | None = None  # TLS is being agreed on; the engine waits
        self._reading = True
        self._timer: asyncio.TimerHandle | None = None
        self.peer = ""
        self.local = False

    # --- what the event loop calls ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no asyncio class, but do what its transports do
        stream = self._transport = cast(asyncio.Transport, transport)
        self.peer, self.local = _peer(stream)
        stream.set_write_buffer_limits(high=self._host.write_high_water)
        self._machine = self._host.opened(self)
        if self._machine is None:
            self._lost = True
            stream.abort()
            return
        self._machine.on_wake = lambda: self._on_loop(self._woken)
        self._timer = self._loop.call_later(self._host.authentication_timeout_s, self._too_slow)

    def data_received(self, data: bytes) -> None:
        if self._closing or self._lost:
            return
        if self._busy or self._parked or self._handshake is not None:
            # during a handshake: the first that came encrypted, before the task has heard of its end
            self._inbox.append(data)
            self._inbox_bytes += len(data)
            if self._inbox_bytes > limits.READ_AHEAD_BYTES_MAX and self._reading and self._transport is not None:
                self._reading = False
                self._transport.pause_reading()
            return
        if self._machine is not None and self._machine.feed(data):
            self._take_up()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self._parked and not self._lost:
            self._parked = False
            self._submit(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._stop_timer()
        self._inbox.clear()
        if self._machine is None:
            return
        if self._busy:
            self.cancel()  # nobody waits for the answer any more; the job's end closes the session
        else:
            self._release()

    # --- what the server calls --------------------------------------------------------------------------------------

    def cancel(self, done: Callable[[], None] = lambda: None) -> None:
        """Stops the running statement, if one runs. The session's method may block, so it has threads of its own."""
        machine, job = self._machine, self._jobs

        def waits() -> bool:
            return self._busy and self._jobs == job

        if machine is None or machine.session is None or not _submit(self._host.cancels, _cancel, machine, waits, done):
            done()

    def stop(self, error: SqlError) -> None:
        """Hang up with this error as soon as no statement runs."""
        if self._machine is None or self._lost:
            return
        self._machine.stop(error)
        if self._handshake is not None:
            self.abort()  # there is no way to tell it
            return
        if not self._busy and not self._parked and not self._closing:
            self._drive()

    @property
    def logged_in(self) -> bool:
        return self._machine is not None and self._machine.session is not None

    def abort(self) -> None:
        """Hang up now; a running statement is cancelled."""
        if self._transport is not None:
            self._transport.abort()

    def _woken(self) -> None:
        """The engine waits for its client, and wants to look at something else. One that is at work looks by itself."""
        if not (self._busy or self._parked or self._closing or self._lost) and self._handshake is None:
            self._take_up()

    # --- driving the engine -----------------------------------------------------------------------------------------

    def _take_up(self) -> None:
        """A message has come. Before log-in messages are short and no thread is spent on a stranger; after it they may
        be large, and a worker reads them, unless they are the few that a look-up is made of."""
        machine = self._machine
        if machine is None or machine.state is not State.READY:
            self._drive()
            return
        answer = None if self._full or self._timer is not None else machine.look_up()
        if answer is not None:
            self._send(answer)
        elif machine.hurrying is not None and machine.worth_trying_at_once:
            self._answer_at_once(machine, machine.hurrying)
        else:
            self._submit(None)

    def _answer_at_once(self, machine: Machine, session: AnswersAtOnce) -> None:
        """On the loop, as long as nothing has to wait."""
        session.at_once = True
        try:
            action = machine.advance()
        finally:
            session.at_once = False
        done = self._performed_at_once(machine, session, action)
        if done is not None:
            self._follow(done)

    def _performed_at_once(self, machine: Machine, session: AnswersAtOnce, action: Action) -> Action | None:
        """None where it waits to be answered with others."""
        session.at_once = True
        try:
            while isinstance(action, BlockingCall):
                done = machine.attempt(action)
                if not isinstance(done, Postponed):
                    action = done
                elif done.together is None:
                    break  # the action is still to be done, by a worker
                else:
                    self._busy = True
                    self._host.gather(done.together, partial(self._go_on, session, action))
                    return None
        finally:
            session.at_once = False
        return action

    def _go_on(self, session: AnswersAtOnce, action: Action) -> None:
        machine = self._machine
        if machine is None or self._lost:
            self._busy = False
            self._release()
            return
        done = self._performed_at_once(machine, session, action)
        if done is not None:
            self._job_done(done, machine.take_output())

    def _drive(self) -> None:
        """On the loop: up to the first action that needs a worker."""
        if self._machine is not None:
            self._follow(self._machine.advance())

    def _follow(self, action: Action) -> None:
        machine = self._machine
        if machine is None:
            return
        if isinstance(action, CancelOther):
            # hung up on when it was passed on: it must not hit a statement that its client sends after that
            self._host.cancel(action.process, action.key, lambda: self._on_loop(self._drive))
            return
        if isinstance(action, BlockingCall):
            self._submit(action)
            return
        self._send(machine.take_output())
        if action is Signal.DONE:
            self._finish()
        elif action is Signal.FLUSH:
            self._after_flush()
        elif action is Signal.START_TLS:
            self._start_tls()

    def _start_tls(self) -> None:
        """The answer is sent; what the socket brings from here on is for the handshake alone."""
        transport, tls = self._transport, self._host.tls
        if transport is None or tls is None or self._inbox or self._lost:
            self.abort()
            return
        transport.pause_reading()
        self._handshake = self._loop.create_task(self._shake_hands(transport, tls))

    async def _shake_hands(self, transport: asyncio.Transport, tls: Tls) -> None:
        try:
            secured = await self._loop.start_tls(transport, self, tls.context, server_side=True)
        except OSError as error:  # SSLError is one too
            _LOG.info("no TLS with %s: %s", self.peer, error)
            secured = None
        self._handshake = None
        if secured is None or self._lost:
            transport.abort()
            self.connection_lost(None)  # a handshake that fails early tells nobody
            return
        self._transport = secured
        secured.set_write_buffer_limits(high=self._host.write_high_water)
        machine = self._machine
        if machine is None:
            return
        machine.cipher = secured.get_extra_info("cipher")
        self._drive()
        while self._inbox and not self._busy and not self._closing:
            if machine.feed(self._inbox.popleft()):
                self._take_up()
        self._resume_reading()

    def _after_flush(self) -> None:
        if self._full:
            self._parked = True
        else:
            self._submit(None)

    def _submit(self, work: BlockingCall | None) -> None:
        self._busy = True
        self._jobs += 1
        if not _submit(self._host.workers, self._job, work):
            self._busy = False
            self.abort()

    def _job(self, work: BlockingCall | None) -> None:
        """On a worker thread: runs the engine until it needs the loop."""
        machine = self._machine
        if machine is None:
            return
        try:
            action = self._advance(machine, work)
            output = machine.take_output()
        except Exception:  # noqa: BLE001 - the engine reports failures of statements itself: this is one of its own
            _LOG.exception("the protocol engine failed; its client is hung up on")
            action, output = Signal.DONE, b""
        self._on_loop(self._job_done, action, output)

    def _advance(self, machine: Machine, work: BlockingCall | None) -> Action:
        action = machine.advance() if work is None else machine.perform(work)
        while not self._lost:
            if isinstance(action, BlockingCall):
                action = machine.perform(action)
            elif action is Signal.NEED_INPUT and self._inbox:
                if machine.feed(self._inbox.popleft()):
                    action = machine.advance()
            else:
                break
        return action

    def _on_loop(self, call: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:  # the loop is gone, and with it the client
            _LOG.debug("the event loop ended before a connection did")

    def _job_done(self, action: Action, output: bytes) -> None:
        self._busy = False
        machine = self._machine
        if machine is None or self._lost:
            self._release()
            return
        if machine.state is State.READY and self._timer is not None:
            self._logged_in(machine)
        self._resume_reading()
        self._send(output)
        if action is Signal.DONE:
            self._finish()
        elif action is Signal.FLUSH:
            self._after_flush()
        elif action is Signal.NEED_INPUT:
            ready = False
            while self._inbox:
                ready = machine.feed(self._inbox.popleft())
            self._resume_reading()  # what has come may be a part of a message, whose rest is still to be read
            if ready or machine.stopping:
                self._take_up()
        else:
            self._follow(action)

    def _logged_in(self, machine: Machine) -> None:
        self._stop_timer()
        if isinstance(machine.session, EndsByItself):
            machine.session.on_terminate = lambda error: self._on_loop(self.stop, error)

    def _resume_reading(self) -> None:
        self._inbox_bytes = sum(map(len, self._inbox))
        if not self._reading and self._inbox_bytes <= limits.READ_AHEAD_BYTES_MAX and self._transport is not None:
            self._reading = True
            self._transport.resume_reading()

    def _send(self, output: bytes) -> None:
        if output and self._transport is not None and not self._lost:
            self._transport.write(output)

    def _finish(self) -> None:
        """The engine is done: what it wrote is sent, then the connection ends."""
        self._closing = True
        self._stop_timer()
        transport = self._transport
        if transport is None or self._lost:
            return
        self._timer = self._loop.call_later(limits.CLOSE_LINGER_S, self.abort)
        unread = bool(self._inbox) or (self._machine is not None and self._machine.unread)
        if unread and transport.can_write_eof():
            # closing now would reset the connection under the client's bytes, and it might never see why
            self._inbox.clear()
            self._resume_reading()
            try:
                transport.write_eof()
            except OSError:  # the client has reset the connection, which nobody has noticed yet
                transport.abort()
        else:
            transport.close()

    def _release(self) -> None:
        """Gives back what the engine holds, on a worker since that may block."""
        machine, self._machine = self._machine, None
        if machine is None:
            return
        if machine.session is None or not _submit(self._host.workers, self._release_job, machine):
            _close(machine)
            self._host.closed(self)

    def _release_job(self, machine: Machine) -> None:
        _close(machine)
        self._on_loop(self._host.closed, self)

    # --- log-in takes too long --------------------------------------------------------------------------------------

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        machine = self._machine
        if machine is None or machine.state is State.READY:
            return
        if machine.state is State.AUTHENTICATING and not self._busy:
            error = fatal(sqlstates.QUERY_CANCELED, "canceling authentication due to timeout")
            self._send(replies.error_response(error))
            self._finish()
        else:
            self.abort()


def _submit(executor: Executor, call: Callable[..., None], *arguments: object) -> bool:
    """False where the executor is shut down."""
    try:
        executor.submit(call, *arguments)
    except RuntimeError:
        return False
    return True


def _cancel(machine: Machine, waits: Callable[[], bool], done: Callable[[], None]) -> None:
    """``waits``: a message has come, and a worker takes it up or has done so. It came before the request did."""
    session = machine.session
    try:
        while session is not None and not session.cancel() and waits():
            time.sleep(_CANCEL_AGAIN_S)
    except Exception:  # noqa: BLE001 - logged; there is no client to tell
        _LOG.exception("cancelling a statement failed")
    finally:
        done()


def _close(machine: Machine) -> None:
    try:
        machine.close()
    except Exception:  # noqa: BLE001 - logged; there is no client to tell
        _LOG.exception("closing a session failed")


def _peer(transport: asyncio.Transport) -> tuple[str, bool]:
    """The client's address, and whether it is this machine's own."""
    name = transport.get_extra_info("peername")
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family == getattr(socket, "AF_UNIX", None):
        return "[local]", True
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # so that clients that vanished are found out
    address = str(name[0]) if name else ""
    return address, is_loopback(address)
