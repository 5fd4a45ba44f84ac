"""Servers of tests as copies of a process that has imported the program: the imports are a sixth of what a start costs.

``tests/server`` starts the program as its users do. A copy does not warm Spark up, which is worth it where many batches
follow. It is the same in all else: it has its own environment, files and memory, and ends by itself. This module is the
program of that process, too (``python -m tests.services.forked``): orders come as lines on its input, and what is told
goes to its output.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_LOOK_S = 0.02


class Forked:
    """A process of the program, used as those of ``subprocess``."""

    def __init__(self, listen: Callable[[], None], pid: int) -> None:
        self._listen = listen
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        self._listen()
        return self.returncode

    def wait(self, timeout_s: float) -> int:
        deadline = time.monotonic() + timeout_s
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("mvserver", timeout_s)
            time.sleep(_LOOK_S)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class Copies:
    """What is told of processes. An end is that of the process that has the id now: ids come back."""

    def __init__(self, listen: Callable[[], None]) -> None:
        self._listen = listen
        self._running: dict[int, Forked] = {}
        self._begun: list[Forked] = []

    def hear(self, told: Mapping[str, int]) -> None:
        pid = told["pid"]
        if "code" in told:
            self._running.pop(pid).returncode = told["code"]
        else:
            self._running[pid] = Forked(self._listen, pid)
            self._begun.append(self._running[pid])

    def begun(self) -> Forked | None:
        """One that nobody has been given yet."""
        return self._begun.pop() if self._begun else None


class _Forker:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._told = b""
        self._copies = Copies(self.listen)
        self._lock = threading.RLock()
        atexit.register(self._process.kill)

    def start(self, order: Mapping[str, Any]) -> Forked:
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            while (begun := self._copies.begun()) is None:
                assert self._process.poll() is None, "the process that is copied has ended"
                self.listen(60.0)
            return begun

    def listen(self, timeout_s: float = 0.0) -> None:
        assert self._process.stdout is not None
        with self._lock:
            while select.select([self._process.stdout], [], [], timeout_s)[0]:
                piece = os.read(self._process.stdout.fileno(), 65536)
                if not piece:
                    return
                *lines, self._told = (self._told + piece).split(b"\n")
                for line in lines:
                    self._copies.hear(json.loads(line))
                timeout_s = 0.0


@functools.cache
def _forker() -> _Forker:
    return _Forker()


def start(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Forked:
    """``mvserver`` with these arguments; what it prints is put behind what is in ``log``."""
    return _forker().start({"arguments": list(arguments), "environment": dict(environment), "log": str(log)})


# --- the process that is copied -------------------------------------------------------------------------------------
def main() -> None:
    from mvserver import allocation

    allocation.prepare()
    import mvserver.server
    import mvserver.start  # noqa: F401 - what all copies have
    from mvserver.streaming.spark import process

    process.warm_up = lambda session: None
    gc.collect()
    gc.freeze()
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is pytest's to handle
    given = b""
    while True:
        ready, _, _ = select.select([0, awake], [], [])
        if awake in ready:
            os.read(awake, 4096)
            _reap()
        if 0 in ready:
            piece = os.read(0, 65536)
            if not piece:
                return
            *orders, given = (given + piece).split(b"\n")
            for order in orders:
                _copy(json.loads(order), (awake, wake))


def _reap() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _tell({"pid": pid, "code": os.waitstatus_to_exitcode(status)})


def _tell(message: Mapping[str, int]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def _copy(order: Mapping[str, Any], ours: tuple[int, int]) -> None:
    pid = os.fork()
    if pid != 0:
        _tell({"pid": pid})
        return
    code = 70
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for descriptor in ours:
            os.close(descriptor)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for descriptor, number in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(descriptor, number)
        os.close(log)
        os.close(nothing)
        os.environ.clear()
        os.environ.update(order["environment"])
        sys.argv = ["mvserver", *order["arguments"]]
        sys.orig_argv = [sys.executable, "-m", *sys.argv]
        from mvserver import cli

        gc.unfreeze()
        code = cli.main(order["arguments"])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - what ends any program is printed, too
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
