"""How the server ends: a signal ends it, a second one at once, and damage makes it begin again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mvserver.process_end import START_ANEW
from mvserver.server import Ending


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Exit codes of a process that has ended at once."""
    found: list[int] = []
    monkeypatch.setattr(os, "_exit", found.append)
    return found


def test_a_signal_ends_the_server_and_a_second_one_at_once(exits: list[int]) -> None:
    ending = Ending(lambda: False)
    assert (ending.begun.is_set(), ending.code) == (False, 0)
    ending.on_signal(signal.SIGTERM)
    assert (ending.begun.is_set(), ending.code, exits) == (True, 0, [])
    ending.on_signal(signal.SIGINT)
    assert exits == [128 + signal.SIGINT]


def test_a_signal_during_a_restart_for_damage_ends_the_server_in_order(exits: list[int]) -> None:
    """The first one was taken for the second, and did not count where it came after the decision."""
    ending = Ending(lambda: True)
    ending.begun.set()  # by the damage
    assert ending.code == START_ANEW
    ending.on_signal(signal.SIGTERM)
    assert (ending.code, exits) == (0, [])
    ending.on_signal(signal.SIGTERM)
    assert exits == [128 + signal.SIGTERM]


_PAUSING = """
import os, signal, time
from mvserver import limits, process_end
signal.signal(signal.SIGTERM, lambda *_: None)  # as an event loop has it, whose thread now sleeps
limits.START_ANEW_PAUSE_S = 60
os.environ[process_end._ANEW_VARIABLE] = str(time.time())
print("pauses", flush=True)
process_end.end_at_once(process_end.START_ANEW)
"""


def test_a_signal_in_the_pause_before_a_restart_ends_the_server() -> None:
    process = subprocess.Popen([sys.executable, "-c", _PAUSING], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"pauses\n"
        deadline = time.monotonic() + 30
        while process.poll() is None:
            assert time.monotonic() < deadline
            process.terminate()
            time.sleep(0.05)
        assert process.returncode == -signal.SIGTERM
    finally:
        process.kill()
        process.wait()


_CRASHING = """
import os, sys
from mvserver import cli, start
start.run = lambda settings: os.abort()  # as a library does that has lost its way
cli.main(["serve", "--data-dir", sys.argv[1]])
"""


def test_a_crash_tells_where_each_thread_was(tmp_path: Path) -> None:
    """A library that crashes took the server away without a word."""
    ended = subprocess.run(
        [sys.executable, "-c", _CRASHING, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in ended.stderr
    assert "in _serve" in ended.stderr


_UNHEARD = """
from mvserver import process_end
from mvserver.observability import announce
announce("mvserver ready")  # it stays in the buffer, and the end tries once more
process_end.end_at_once(3)
"""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_log_that_cannot_be_written_stops_no_start_and_no_end() -> None:
    """A full disk behind standard output ended the server at its ready line, and kept it from beginning anew."""
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", _UNHEARD],
            stdout=full, stderr=full, timeout=60, check=False, env={**os.environ, "PYTHONUNBUFFERED": ""},
        )  # fmt: skip
    assert ended.returncode == 3
