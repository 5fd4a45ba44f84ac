"""The process of one function, as the worker that asks it sees it: started, asked, watched, and ended where it must be.

A worker of Spark keeps its processes from batch to batch. What a function does to its process ends there: the worker,
and with it Spark, stays whole.
"""

from __future__ import annotations

import atexit
import json
import mmap
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from mvserver.python_functions.answers import arrow_type
from mvserver.python_functions.confinement import Confinement
from mvserver.python_functions.definition import PythonFunction
from mvserver.python_functions.frames import ARROW, BROKEN, HEAD_BYTES, MEMORY, SIZE, head_of, write_frame

ROWS_MAX = 5_000  # of a request: what is under way at once has to fit into the process's memory
BYTES_MAX = 4 << 20
_START_S = 60.0
_BESIDE_S = 60.0  # for reading the arguments and writing the answers of a request
_LOOK_S = 0.05
_PIECE = 1 << 20
_KEPT = 16  # processes of a worker
_CODE = (
    "import sys; sys.path[:] = {path!r}; from mvserver.python_functions.child import main; main({counter}, {parent})"
)
_ROOT = str(Path(__file__).resolve().parents[2])
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "ARROW_DEFAULT_MEMORY_POOL": "system", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class RunnableFunction:
    """What a worker needs of a function; it is sent there."""

    name: str
    document: str
    timeout_ms: int
    memory_bytes: int
    confined: bool

    @classmethod
    def of(cls, function: PythonFunction) -> RunnableFunction:
        return cls(function.name, function.document, function.timeout_ms, function.memory_bytes, function.confined)


class FunctionFailed(Exception):  # noqa: N818 - the words are a user's error, and the class is no more than its carrier
    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"mvserver:{sqlstate}:{message}")
        self.sqlstate = sqlstate
        self.message = message


class _Ended(Exception):  # noqa: N818 - not an error yet: another process may do better
    """The process has ended, or had no memory, while ``row`` was under way (0: none)."""

    def __init__(self, row: int, status: int | None) -> None:
        super().__init__(row, status)
        self.row = row
        self.status = status


class FunctionProcess:
    """Of one function. For one thread at a time."""

    def __init__(self, function: RunnableFunction) -> None:
        self._function = function
        result = arrow_type(json.loads(function.document)["result"])
        self._answers = pa.schema([("value", result), ("error", pa.string())])
        counter = os.memfd_create("row") if hasattr(os, "memfd_create") else _file()
        try:
            os.ftruncate(counter, SIZE)
            self._progress = mmap.mmap(counter, SIZE)
            code = _CODE.format(path=[_ROOT, *sys.path], counter=counter, parent=os.getpid())
            self._process = subprocess.Popen(
                [sys.executable, "-s", "-S", "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, pass_fds=(counter,), env=_ENVIRONMENT, cwd="/", bufsize=0,
            )  # fmt: skip
        finally:
            os.close(counter)
        try:
            self.confinement = Confinement(**self._greeted())
            if function.confined and not self.confinement.is_whole:
                raise FunctionFailed("38000", f"{self._name} is not run: this machine does not confine its process")
        except BaseException:
            self.close()
            raise

    def _greeted(self) -> dict[str, Any]:
        try:
            _, content = self._asked(ARROW, self._function.document.encode(), _START_S)
        except _Ended as ended:
            raise FunctionFailed("38000", f"{self._name} could not be started: {_ending(ended.status)}") from ended
        greeting = json.loads(content)
        if "error" in greeting:
            raise FunctionFailed("38000", f"{self._name} could not be started: {greeting['error']}")
        found: dict[str, Any] = greeting["confinement"]
        return found

    @property
    def _name(self) -> str:
        return f"function {self._function.name}"

    def evaluate(self, table: pa.Table) -> pa.Table:
        """A table of ``value`` and ``error``. Raises _Ended, or FunctionFailed for a call that takes too long."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        kind, content = self._asked(ARROW, sink.getvalue(), _BESIDE_S)
        if kind == MEMORY:
            raise _Ended(self._row(), None)
        if kind == BROKEN:
            raise FunctionFailed("38000", f"{self._name} broke its process: {content.decode(errors='replace')[:500]}")
        try:
            answer = pa.ipc.open_stream(content).read_all()
            answer.validate(full=True)
        except pa.ArrowInvalid as error:
            raise FunctionFailed("38000", f"{self._name} spoiled what its process answers: {error}") from error
        if answer.num_rows != table.num_rows or answer.schema != self._answers:
            raise FunctionFailed("38000", f"{self._name} spoiled what its process answers")
        return answer

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._progress.close()

    def _row(self) -> int:
        return int.from_bytes(self._progress[:SIZE], "little")

    def _asked(self, kind: int, content: bytes | pa.Buffer, beside_s: float) -> tuple[int, bytes]:
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101, PT018 - both are pipes
        try:
            write_frame(self._process.stdin.fileno(), kind, content)
        except BrokenPipeError:
            raise self._end() from None
        return self._answer(self._process.stdout.fileno(), beside_s)

    def _answer(self, handle: int, beside_s: float) -> tuple[int, bytes]:
        poll = select.poll()
        poll.register(handle, select.POLLIN | select.POLLHUP)
        content = bytearray()
        row, since = self._row(), time.monotonic()
        while True:
            if poll.poll(_LOOK_S * 1000):
                piece = os.read(handle, _PIECE)
                if not piece:
                    raise self._end()
                content += piece
                since = time.monotonic()
                head = head_of(bytes(content[:HEAD_BYTES]))
                if head is not None and head[1] > self._function.memory_bytes:
                    raise FunctionFailed("38000", f"{self._name} spoiled what its process answers")
                if head is not None and len(content) >= HEAD_BYTES + head[1]:
                    return head[0], bytes(content[HEAD_BYTES:])
                continue
            now, at = time.monotonic(), self._row()
            if at != row:
                row, since = at, now
            limit_s = self._function.timeout_ms / 1000 if row else beside_s
            if now - since > limit_s:
                raise FunctionFailed("57014", f"{self._name} took longer than {limit_s:g} s for a call")

    def _end(self) -> _Ended:
        try:
            self._process.wait(_START_S)
        except subprocess.TimeoutExpired:  # it has closed its pipe, and goes on
            self._process.kill()
            self._process.wait()
        return _Ended(self._row(), self._process.returncode)


def _file() -> int:
    import tempfile

    handle, name = tempfile.mkstemp()
    os.unlink(name)
    return handle


_processes: OrderedDict[str, FunctionProcess] = OrderedDict()
_lock = threading.Lock()


def run(function: RunnableFunction, columns: Sequence[pa.Array], rows: int) -> pa.Table:
    """The answers of the function to ``rows`` rows: a table of ``value`` and ``error``. Raises FunctionFailed."""
    sent = [_zoneless(each) for each in columns] or [pa.nulls(rows)]
    table = pa.table(sent, names=[f"a{i}" for i in range(len(sent))])
    step = max(1, min(ROWS_MAX, rows * BYTES_MAX // max(table.nbytes, 1)))
    with _lock:
        parts = [_evaluated(function, table.slice(at, step)) for at in range(0, rows or 1, step)]
    return pa.concat_tables(parts)


def confinement_of(function: RunnableFunction) -> Confinement:
    """What the system denies the function's process; it is started for that, and not kept. Raises FunctionFailed."""
    process = FunctionProcess(function)
    process.close()
    return process.confinement


def _zoneless(column: pa.Array) -> pa.Array:
    """The process has no files of time zones."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us"))
    if pa.types.is_list(kind) and pa.types.is_timestamp(kind.value_type):
        return column.cast(pa.list_(pa.timestamp("us")))
    return column


def _evaluated(function: RunnableFunction, table: pa.Table) -> pa.Table:
    """A row at which its process ended is tried once more, alone in a new one: then it is the row's own doing."""
    parts: list[pa.Table] = []
    left = [(table, False)]
    while left:
        piece, alone = left.pop()
        try:
            parts.append(_alone(function, piece) if alone else _asked(function, piece))
        except _Ended as ended:
            at = min(max(ended.row - 1, 0), piece.num_rows - 1)
            pieces = [(piece.slice(at + 1), False), (piece.slice(at, 1), True), (piece.slice(0, at), False)]
            left.extend(each for each in pieces if each[0].num_rows)
    return pa.concat_tables(parts)


def _alone(function: RunnableFunction, row: pa.Table) -> pa.Table:
    _forget(function)
    try:
        return _asked(function, row)
    except _Ended as ended:
        if ended.status is None:
            words = f"function {function.name} needs more than {function.memory_bytes >> 20} MB of memory"
            raise FunctionFailed("53200", words) from ended
        raise FunctionFailed("38000", f"function {function.name} ended its process: {_ending(ended.status)}") from ended


def _asked(function: RunnableFunction, table: pa.Table) -> pa.Table:
    process = _processes.get(function.document)
    if process is None:
        process = _processes[function.document] = FunctionProcess(function)
        if len(_processes) > _KEPT:
            _processes.popitem(last=False)[1].close()
    _processes.move_to_end(function.document)
    try:
        return process.evaluate(table)
    except BaseException:
        _forget(function)
        raise


def _forget(function: RunnableFunction) -> None:
    process = _processes.pop(function.document, None)
    if process is not None:
        process.close()


def _ending(status: int | None) -> str:
    if status is None:
        return "it had no memory left"
    if status < 0:
        return f"signal {signal.Signals(-status).name}"
    return f"status {status}"


@atexit.register
def close_all() -> None:
    while _processes:
        _processes.popitem()[1].close()
