"""The server may have as many clients as its settings say, also where the system allows few open files at first."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from mvserver import limits

_STARTING = """
import resource, sys
from mvserver import cli, start
def launched(options):
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    raise SystemExit
start.LaunchedAhead = launched
cli.main(["serve", "--data-dir", sys.argv[1], "--port", "0", "--http-port", "0"])
"""
_WANTED = limits.CONNECTIONS_MAX + limits.CONNECTIONS_REFUSED_MAX + limits.HTTP_CONNECTIONS_MAX


def allowed_at_the_start(folder: Path, soft: int, hard: int) -> tuple[int, str]:
    """How many the server allows itself, and what it says."""
    ended = subprocess.run(
        [sys.executable, "-c", _STARTING, str(folder)],
        capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout), ended.stderr


def test_clients_find_descriptors(tmp_path: Path) -> None:
    """1,024 are what a shell gives: a thousand HTTP clients left none to commit batches with."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 8192:
        pytest.skip("the system allows too few descriptors")
    allowed, told = allowed_at_the_start(tmp_path, 1024, 8192)
    assert _WANTED + 500 < allowed <= 8192
    assert "ulimit" not in told


def test_a_system_that_allows_few_is_named(tmp_path: Path) -> None:
    allowed, told = allowed_at_the_start(tmp_path, 256, 512)
    assert allowed == 512
    assert "WARNING" in told
    assert "ulimit -n" in told
