"""Servers that are copied are like those that are started, and none knows of another."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.faults.live import LiveServer
from tests.server.program import without_java
from tests.services import forked

pytestmark = pytest.mark.slow
WITHIN_S = 60.0


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.services.class_archives.prepared", lambda: "")


def test_it_answers_and_ends_as_it_is_told(tmp_path: Path) -> None:
    first, second = LiveServer(tmp_path / "one"), LiveServer(tmp_path / "two")
    try:
        for server in (first, second):
            server.start(PATH="", JAVA_HOME="", MVSERVER_LOG_LEVEL="debug" if server is first else "error")
        assert first.process.pid != second.process.pid
        assert first.process.poll() is None
        first.run("CREATE DATABASE mine")
        assert ("mine",) in first.query("SELECT datname FROM pg_database")
        assert ("mine",) not in second.query("SELECT datname FROM pg_database")
        assert "Spark cannot start" in first.log()
        assert second.log().count("\n") < first.log().count("\n")
        assert first.stop() == 0
        assert second.query("SELECT 1") == [(1,)]
        second.kill()
        assert second.process.returncode == -signal.SIGKILL
        first.start(PATH="", JAVA_HOME="")
        assert ("mine",) in first.query("SELECT datname FROM pg_database")
    finally:
        first.close()
        second.close()


def test_what_is_refused_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    for arguments, code, told in (
        (["serve", "--port", "much"], 2, "port"),
        (["serve", "--unknown", "1"], 2, "unknown"),
        (["version"], 0, "mvserver "),
    ):
        assert forked.start(arguments, without_java(), log).wait(WITHIN_S) == code
        assert told in log.read_text()
    assert log.read_text().startswith("before\n")


def test_an_end_is_not_that_of_a_later_process_with_the_same_id() -> None:
    copies = forked.Copies(lambda: None)
    copies.hear({"pid": 7})
    first = copies.begun()
    copies.hear({"pid": 7, "code": -signal.SIGKILL})
    copies.hear({"pid": 7})
    second = copies.begun()
    assert first is not None
    assert second is not None
    assert (first.poll(), second.poll()) == (-signal.SIGKILL, None)
    copies.hear({"pid": 7, "code": 0})
    assert (first.poll(), second.poll()) == (-signal.SIGKILL, 0)
