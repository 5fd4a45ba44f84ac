"""A real emulator of Databricks (minilake), and Databricks' own client (databricks-sdk) as another program.

Both are installed once, beside the user's other caches, with a Python environment of their own: they need another
DuckDB than the server. Tables of Delta are read by DuckDB's extension, which comes as a package, too.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.live import free_port
from tests.services.installed import installed
from tests.services.registries import UNREACHABLE

TOKEN = "dapi-1"  # the emulator takes each
_PACKAGES = ("minilake==1.9.0", "databricks-sdk==0.156.0", "duckdb==1.5.5", "duckdb-extension-delta==1.5.5")
_PROGRAM = Path(__file__).with_name("minilake_program.py")
_INSTALL_TIMEOUT_S, _START_TIMEOUT_S, _CALL_TIMEOUT_S = 600.0, 120.0, 120.0


def _install(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=_INSTALL_TIMEOUT_S)
    done = subprocess.run(
        [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_PACKAGES],
        check=False, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S,
    )  # fmt: skip
    if done.returncode != 0 and UNREACHABLE.search(done.stderr):
        pytest.skip(f"the registry of pip cannot be reached: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr


class Minilake:
    """One workspace. Its catalogs are files of a folder of its own."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        self._folder = folder
        self._python = installed(f"minilake-1.9.0-python{sys.version_info[0]}.{sys.version_info[1]}", _install) / "bin"
        self._environment = {**os.environ, "HOME": str(folder)}
        self._log = folder / "log"
        self._run("install")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [self._python / "python", "-m", "minilake", "--port", str(port)],
                cwd=folder, env=self._environment, stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not _answers(port):
            assert self._process.poll() is None, self._log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < deadline, self._log.read_text(errors="replace")[-3000:]
            time.sleep(0.1)

    def sdk(self, call: str, *arguments: str) -> Any:
        """What Databricks' own client answers."""
        return json.loads(self._run(call, self.address, TOKEN, *arguments))

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [self._python / "python", "-P", str(_PROGRAM), *arguments],
            env=self._environment, capture_output=True, text=True, timeout=_CALL_TIMEOUT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


@contextmanager
def minilake() -> Iterator[Minilake]:
    with tempfile.TemporaryDirectory(prefix="mvserver-minilake-", ignore_cleanup_errors=True) as folder:
        emulator = Minilake(Path(folder))
        try:
            yield emulator
        finally:
            emulator.stop()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
