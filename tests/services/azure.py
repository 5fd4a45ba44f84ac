"""A real emulator of Azure's Blob Storage (azurite, by npm): one process for a test's modules, in memory alone."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.live import free_port
from tests.services.installed import installed
from tests.services.registries import UNREACHABLE

VERSION = "3.35.0"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # every azurite's
_INSTALL_TIMEOUT_S, _START_TIMEOUT_S = 300.0, 60.0


@contextmanager
def azurite() -> Iterator[str]:
    """The address of an account; the module is skipped where it cannot be had."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm is not installed")
    folder = installed(f"azurite-{VERSION}", _install) / "node_modules" / "azurite"
    program = folder / "dist" / "src" / "blob" / "main.js"
    port = free_port()
    process = subprocess.Popen(
        ["node", str(program), "--blobPort", str(port), "--blobHost", "127.0.0.1", "--inMemoryPersistence",
         "--skipApiVersionCheck", "--silent", "--disableTelemetry"],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        began = time.monotonic()
        while not _answers(port):
            assert process.poll() is None, "azurite ended"
            assert time.monotonic() - began < _START_TIMEOUT_S, "azurite did not start"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/{ACCOUNT}"
    finally:
        process.terminate()
        process.wait(30)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _install(folder: Path) -> None:
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--prefix", str(folder),
         f"azurite@{VERSION}"],
        capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S, check=False,
    )  # fmt: skip
    if done.returncode != 0 and UNREACHABLE.search(done.stderr):
        pytest.skip(f"the registry of npm cannot be reached: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
