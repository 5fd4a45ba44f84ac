"""The demo's care of its child process, with a stand-in for the server's program."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from mvserver.demo import server as demo_server
from mvserver.demo.server import HOST, Server, ServerError, free_port
from mvserver.demo.terminal import positive_number
from mvserver.java import NoJavaError, find_java, parse_version

GOOD = """
import signal
print('starting', flush=True)
print('mvserver ready on 127.0.0.1:4711', flush=True)

signal.pause()
"""
STUBBORN = """
import signal
signal.signal(signal.SIGTERM, lambda *_: None)
print('mvserver ready on 127.0.0.1:1', flush=True)
while True:
    signal.pause()
"""
BROKEN = "import sys; sys.stderr.write('no disk\\n'); sys.exit(3)"


def stand_in(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(demo_server, "program", lambda: [sys.executable, "-c", code])


def test_started_when_it_says_so_and_stopped_by_sigterm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, GOOD)
    server = Server(tmp_path / "data", tmp_path / "log", port=5432)
    with server:
        assert server.port == 4711
        assert server.alive()
        pid = server.pid
    assert not server.alive()
    assert server.stop() == -signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert "starting\nmvserver ready on 127.0.0.1:4711\n" in server.log.read_text()


def test_a_server_that_ends_is_told_with_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, BROKEN)
    server = Server(tmp_path / "data", tmp_path / "log", port=5432)
    with pytest.raises(ServerError, match="the server ended with code 3\nno disk"):
        server.start()


def test_a_server_that_does_not_go_is_made_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, STUBBORN)
    monkeypatch.setattr(demo_server, "STOP_TIMEOUT_S", 0.2)
    server = Server(tmp_path / "data", tmp_path / "log", port=5432)
    server.start()
    assert server.stop() == -signal.SIGKILL


def test_a_taken_port_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port, tries=1) != port
    assert free_port(port) == port


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_java_versions(text: str, version: int | None) -> None:
    assert parse_version(text) == version


def fake_java(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return java


def test_java_home_comes_first_and_an_old_one_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = fake_java(tmp_path / "old", "1.8.0"), fake_java(tmp_path / "new", "21.0.2")
    monkeypatch.setenv("PATH", str(old.parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    assert (find_java().path, find_java().version) == (new, 21)
    monkeypatch.setenv("PATH", str(new.parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    assert find_java().path == new


def test_without_java_the_ways_to_get_one_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "old", "1.8.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NoJavaError) as caught:
        find_java()
    told = str(caught.value)
    assert "is version 8" in told
    assert "pip install -e '.[java]'" in told


@pytest.mark.parametrize(("text", "number"), [("", None), ("30", 30.0), ("0.5", 0.5)])
def test_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch, text: str, number: float | None) -> None:
    monkeypatch.setenv("DEMO_SECONDS", text)
    assert positive_number("DEMO_SECONDS") == number


@pytest.mark.parametrize("text", ["x", "-1", "0", "inf", "nan"])
def test_wrong_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("DEMO_SECONDS", text)
    with pytest.raises(ValueError, match="DEMO_SECONDS must be a number above zero"):
        positive_number("DEMO_SECONDS")
