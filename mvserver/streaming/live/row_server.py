"""The port at which the tasks of one live run hand over their rows, as Arrow; the other end is ``LiveRows.java``.

A task connects with the run's token, its number, its epoch and the schema of its rows, and is told to go on (G). R
says that it has rows, T asks for them, B brings them, E is the end with their number, and K has noticed that. So rows
wait in the task until they are asked for, and a task that has too many waits itself: nothing is kept here, and nothing
is dropped.

One thread uses it. It listens at one address: that at which Spark's own driver listens for its executors.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from mvserver.streaming.live.ended import LaneEnded, TaskGone
from mvserver.streaming.spark.options import LOOPBACK

_log = logging.getLogger(__name__)

_TOKEN_BYTES = 16
_HEADER = struct.Struct(">qqi")  # number of the task, epoch, bytes of the schema
_LENGTH = struct.Struct(">i")
_COUNT = struct.Struct(">q")
_GREETING_BYTES = 2 * _TOKEN_BYTES + _HEADER.size
_GREETINGS_MAX = 128
_DRAIN_BYTES = 1 << 20
GREETING_S = 30.0  # how long a connection may take to say who it is
ANSWER_S = 30.0  # how long a task may take for what it has announced, on a machine that many share
SCHEMA_BYTES_MAX = 1 << 20
BATCH_BYTES_MAX = 1 << 30  # of Arrow; a task gathers some megabytes, and a record more than that comes by itself


@dataclass
class _Task:
    """One connection whose greeting was right."""

    number: int
    epoch: int
    socket: socket.socket
    schema: pa.Schema
    rows: int = 0
    ready: bool = False


@dataclass
class _Greeting:
    """One that has not said yet who it is, and has until the deadline for that."""

    socket: socket.socket
    deadline: float
    heard: bytearray = field(default_factory=bytearray)


class RowServer:
    """Raises LaneEnded where a task goes without a word, or says what makes no sense. ``host`` is how tasks reach the
    address at which it listens."""

    def __init__(self, host: str = LOOPBACK, bind_address: str = LOOPBACK) -> None:
        self.host = host
        try:
            self._listener = _listener(bind_address)
        except OSError as error:
            raise LaneEnded(f"the server cannot listen on {bind_address} for rows of Spark's tasks: {error}") from error
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self.token = secrets.token_hex(_TOKEN_BYTES)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._tasks: list[_Task] = []
        self._greetings: list[_Greeting] = []

    @property
    def ready(self) -> bool:
        """Whether a task has rows."""
        return any(task.ready for task in self._tasks)

    @property
    def tasks(self) -> int:
        return len(self._tasks)

    def poll(self, timeout_s: float) -> None:
        """Waits for a message, at most so long, and takes in those that are there."""
        for key, _ in self._selector.select(max(0.0, timeout_s)):
            if key.data is None:
                self._accept()
            elif isinstance(key.data, _Greeting):
                self._greet(key.data)
            else:
                self._hear(key.data)
        now = time.monotonic()
        for late in [each for each in self._greetings if each.deadline < now]:
            self._refuse(late, "it did not say who it is")

    def take(self) -> list[pa.RecordBatch]:
        """All rows that the tasks have now, each task's in their order."""
        asked = [task for task in self._tasks if task.ready]
        for task in asked:
            self._send(task, b"T")
        found = []
        for task in asked:
            task.ready = False
            if self._exactly(task, 1) != b"B":
                raise LaneEnded("a task of Spark's sent what was not asked for")
            (length,) = _LENGTH.unpack(self._exactly(task, _LENGTH.size))
            if not 0 < length <= BATCH_BYTES_MAX:
                raise LaneEnded(f"a task of Spark's sent {length} bytes of rows")
            batch = _batch(self._exactly(task, length), task.schema)
            task.rows += batch.num_rows
            found.append(batch)
        return found

    def drain(self, timeout_s: float) -> None:
        """Waits until the tasks have gone, which are told to end: what they still send counts no more."""
        deadline = time.monotonic() + timeout_s
        for task in self._tasks:
            with contextlib.suppress(OSError):
                task.socket.settimeout(max(0.001, deadline - time.monotonic()))
                while task.socket.recv(_DRAIN_BYTES):
                    task.socket.settimeout(max(0.001, deadline - time.monotonic()))

    def close(self) -> None:
        for connection in [*(each.socket for each in self._tasks), *(each.socket for each in self._greetings)]:
            connection.close()
        self._tasks.clear()
        self._greetings.clear()
        self._selector.close()
        self._listener.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it has gone again
            return
        if len(self._greetings) >= _GREETINGS_MAX:
            connection.close()
            return
        connection.setblocking(False)
        greeting = _Greeting(connection, time.monotonic() + GREETING_S)
        self._greetings.append(greeting)
        self._selector.register(connection, selectors.EVENT_READ, greeting)

    def _greet(self, greeting: _Greeting) -> None:
        """Never waits: whoever connects and says nothing holds nobody up."""
        try:
            got = greeting.socket.recv(_GREETING_BYTES + SCHEMA_BYTES_MAX - len(greeting.heard))
            if not got:
                raise EOFError("it was closed")
            greeting.heard += got
            schema = self._schema_of(greeting.heard)
        except BlockingIOError:
            return
        except (OSError, EOFError, ValueError, pa.ArrowException) as error:
            # Whoever it is, it is none of the tasks, or one that fails: of these Spark tells.
            self._refuse(greeting, str(error))
            return
        if schema is None:
            return
        number, epoch, _ = _HEADER.unpack_from(greeting.heard, 2 * _TOKEN_BYTES)
        self._greetings.remove(greeting)
        connection = greeting.socket
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(ANSWER_S)
        task = _Task(number, epoch, connection, schema)
        self._send(task, b"G")
        self._tasks.append(task)
        self._selector.modify(connection, selectors.EVENT_READ, task)

    def _schema_of(self, heard: bytearray) -> pa.Schema | None:
        """None as long as not all of the greeting is there. Raises ValueError for one that is not a task's."""
        token = heard[: 2 * _TOKEN_BYTES]
        if len(token) == 2 * _TOKEN_BYTES and not hmac.compare_digest(token, self.token.encode()):
            raise ValueError("its token is not that of the run")
        if len(heard) < _GREETING_BYTES:
            return None
        _, _, length = _HEADER.unpack_from(heard, 2 * _TOKEN_BYTES)
        if not 0 < length <= SCHEMA_BYTES_MAX:
            raise ValueError(f"its schema has {length} bytes")
        if len(heard) < _GREETING_BYTES + length:
            return None
        if len(heard) > _GREETING_BYTES + length:
            raise ValueError("it has said more than its greeting")
        return pa.ipc.read_schema(pa.py_buffer(bytes(heard[_GREETING_BYTES:])))

    def _refuse(self, greeting: _Greeting, why: str) -> None:
        _log.warning("a connection to the port of a live lane was refused: %s", why)
        self._selector.unregister(greeting.socket)
        self._greetings.remove(greeting)
        greeting.socket.close()

    def _hear(self, task: _Task) -> None:
        message = self._exactly(task, 1)
        if message == b"R":
            task.ready = True
        elif message == b"E":
            (rows,) = _COUNT.unpack(self._exactly(task, _COUNT.size))
            if rows != task.rows:
                raise LaneEnded(f"a task of Spark's sent {rows} rows, of which {task.rows} have come")
            self._send(task, b"K")
            self._selector.unregister(task.socket)
            self._tasks.remove(task)
            task.socket.close()
        else:
            raise LaneEnded("a task of Spark's sent what was not asked for")

    def _send(self, task: _Task, message: bytes) -> None:
        try:
            task.socket.sendall(message)
        except OSError as error:
            raise TaskGone(f"the connection to a task of Spark's broke: {error}") from error

    def _exactly(self, task: _Task, count: int) -> bytearray:
        try:
            return _read(task.socket, count, time.monotonic() + ANSWER_S)
        except (OSError, EOFError) as error:
            raise TaskGone(f"the connection to a task of Spark's broke: {error or 'it was closed'}") from error


def _listener(address: str) -> socket.socket:
    family = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0][0]
    return socket.create_server((address, 0), family=family)


def _read(connection: socket.socket, count: int, deadline: float) -> bytearray:
    """EOFError where the other end has closed; TimeoutError behind the deadline, however many bytes trickle in."""
    found = bytearray(count)
    view, at = memoryview(found), 0
    while at < count:
        got = connection.recv_into(view[at:])
        if got == 0:
            raise EOFError("it was closed")
        at += got
        if at < count and time.monotonic() > deadline:
            raise TimeoutError("it is too slow")
    return found


def _batch(data: bytearray, schema: pa.Schema) -> pa.RecordBatch:
    try:
        batch = pa.ipc.read_record_batch(pa.py_buffer(data), schema)
        batch.validate()
    except (pa.ArrowException, OSError) as error:
        raise LaneEnded(f"a task of Spark's sent rows that cannot be read: {error}") from error
    return batch


def rows_of(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """As one table, of at least one batch."""
    return pa.Table.from_batches(batches).combine_chunks()
