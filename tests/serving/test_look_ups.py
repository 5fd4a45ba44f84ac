"""Look-ups that are answered in one go: byte for byte what the conversation answers, message by message."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from decimal import Decimal

import pytest

from mvserver import limits
from mvserver.pgwire.machine import Machine
from tests.answers_in_one_go import noted
from tests.serving.kept import KeptView, until
from tests.serving.server import PullServer
from tests.wire.client import (
    SYNC,
    RawClient,
    bind,
    close,
    describe,
    error_fields,
    execute,
    kinds,
    parse,
    query,
    rows,
    split,
)

_POINT = "SELECT visits, total FROM visits WHERE site = $1 AND url = $2"
_RANGE = "SELECT site, url, visits, total FROM visits WHERE site >= $1 AND site < $2"
_BINARY_7 = struct.pack("!q", 7)
_STATEMENTS = parse(_POINT, "point") + parse(_RANGE, "range") + SYNC
_ONE = bind([b"7", b"a"], statement="point") + describe("P") + execute() + SYNC

# answered in one go: each is sent three times to a session that has both statements
_LOOK_UPS = {
    "described": _ONE,
    "not described": bind([b"7", b"a"], statement="point") + execute() + SYNC,
    "nothing there": bind([b"7", b"nobody"], statement="point") + describe("P") + execute() + SYNC,
    "binary": bind([_BINARY_7, b"a"], statement="point", formats=[1, 0], results=[1]) + execute() + SYNC,
    "formats of each column": bind([b"7", b"a"], statement="point", formats=[0, 1], results=[1, 0]) + execute() + SYNC,
    "range": bind([b"3", b"9"], statement="range") + describe("P") + execute() + SYNC,
    "empty range": bind([b"9", b"3"], statement="range") + describe("P") + execute() + SYNC,
    "unnamed": parse(_POINT) + bind([b"7", b"a"]) + describe("P") + execute() + SYNC,
    "simple": query("SELECT visits, total FROM visits WHERE site = 7 AND url = 'a'"),
    "simple, of other values": query(" SELECT visits, total FROM visits WHERE site = 8 AND url = 'é''x' ; "),
}  # fmt: skip
# left to the conversation
_OTHERS = {
    "a portal with a name": bind([b"7", b"a"], statement="point", portal="p") + execute(portal="p") + SYNC,
    "some of the rows": bind([b"3", b"9"], statement="range") + execute(2) + execute() + SYNC,
    "two at once": _ONE + _ONE,
    "NULL": bind([None, b"a"], statement="point") + execute() + SYNC,
    "no number": bind([b"x", b"a"], statement="point") + execute() + SYNC,
    "too many values": bind([b"7", b"a", b"b"], statement="point") + execute() + SYNC,
    "too few values": bind([b"7"], statement="point") + execute() + SYNC,
    "broken text": bind([b"7", b"\xff"], statement="point") + execute() + SYNC,
    "a format that is none": bind([b"7", b"a"], statement="point", formats=[2]) + execute() + SYNC,
    "a result's format that is none": bind([b"7", b"a"], statement="point", results=[2]) + execute() + SYNC,
    "too many result formats": bind([b"7", b"a"], statement="point", results=[0, 0, 0]) + execute() + SYNC,
    "half a number": bind([b"\0\0", b"a"], statement="point", formats=[1, 0]) + execute() + SYNC,
    "no such statement": bind([b"7"], statement="none") + execute() + SYNC,
    "the statement described": describe("S", "point") + SYNC,
    "two statements in a text": query("SELECT visits FROM visits WHERE site = 7 AND url = 'a'; SELECT 1"),
    "closed at the end": bind([b"7", b"a"], statement="point") + execute() + close("P") + SYNC,
}  # fmt: skip


@pytest.fixture
def view(server: PullServer) -> Iterator[KeptView]:
    made = KeptView(server.world)
    made.fed.feed([{"l": site, "k": url, "n": Decimal(site) / 4} for site in range(10) for url in ("a", "é'x")])
    with RawClient(server.wire.port) as client:
        client.log_in(user="postgres", database="postgres")
        client.ask(_STATEMENTS)

        def answered() -> bool:
            for text in (_ONE, _LOOK_UPS["range"]):
                before = made.finished.answered
                client.ask(text)
                if made.finished.answered == before:
                    return False
            return True

        until(answered)
    yield made
    made.close()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What has been answered in one go."""
    return noted(monkeypatch)


def _session(server: PullServer) -> RawClient:
    client = RawClient(server.wire.port)
    client.log_in(user="postgres", database="postgres")
    assert kinds(client.ask(_STATEMENTS)) == "11Z"
    return client


def _both(
    server: PullServer, monkeypatch: pytest.MonkeyPatch, *asked: bytes, ends: int = 1
) -> tuple[list[bytes], list[bytes]]:
    """The answers with look-ups in one go and without."""
    answers: list[list[bytes]] = []
    for of in (True, False):
        with monkeypatch.context() as patched:
            if not of:
                patched.setattr(Machine, "look_up", lambda machine: None)
            with _session(server) as client:
                answers.append([client.ask(each, ends) for each in asked])
    return answers[0], answers[1]


@pytest.mark.parametrize("asked", _LOOK_UPS.values(), ids=_LOOK_UPS)
def test_a_look_up_is_answered_in_one_go(
    server: PullServer, view: KeptView, at_once: list[bytes], monkeypatch: pytest.MonkeyPatch, asked: bytes
) -> None:
    with_it, without = _both(server, monkeypatch, asked, asked, asked)
    assert with_it == without
    assert at_once == with_it[-len(at_once) :]
    assert len(at_once) >= 2  # the first makes the plan, or the unnamed statement


@pytest.mark.parametrize("asked", _OTHERS.values(), ids=_OTHERS)
def test_what_is_no_look_up_is_left_to_the_conversation(
    server: PullServer, view: KeptView, at_once: list[bytes], monkeypatch: pytest.MonkeyPatch, asked: bytes
) -> None:
    ends = asked.count(SYNC) or 1
    with_it, without = _both(server, monkeypatch, asked, asked, ends=ends)
    assert with_it == without
    assert not at_once


def test_a_session_is_as_after_any_other_statement(
    server: PullServer, view: KeptView, at_once: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    unnamed = _LOOK_UPS["unnamed"]
    with_it, without = _both(
        server, monkeypatch,
        _ONE, execute() + SYNC,  # the portal ended with its transaction
        unnamed, unnamed, bind([b"8", b"a"]) + execute() + SYNC,  # the unnamed statement is still there
        _LOOK_UPS["simple"], _LOOK_UPS["simple"], bind([b"8", b"a"]) + execute() + SYNC,  # a simple query ends it
        parse("SELECT 1") + SYNC, unnamed, unnamed,  # or another one takes its place
        query("BEGIN"), _ONE, execute() + SYNC, query("SELECT 1/0"), _ONE, query("ROLLBACK"), _ONE,
        query("SET TimeZone = 'Asia/Tokyo'"), _ONE, _ONE, query("DEALLOCATE point"), _ONE,
        parse("SELECT url FROM visits WHERE site = $1 AND url = $2", "point") + SYNC, _ONE, _ONE,
    )  # fmt: skip
    assert with_it == without
    assert len(at_once) >= 8


def test_what_is_asked_is_seen_in_the_activity(server: PullServer, view: KeptView, at_once: list[bytes]) -> None:
    with _session(server) as client:
        client.ask(_ONE)
        client.ask(query("SELECT 1"))
        before = len(at_once)
        client.ask(_ONE)
        assert len(at_once) == before + 1
        (found,) = server.backend.registry.activity()
    assert (found.query, found.state, found.xact_start) == (_POINT, "idle", None)


def test_a_commit_is_seen_by_the_next_look_up(server: PullServer, view: KeptView, at_once: list[bytes]) -> None:
    with _session(server) as client:
        for visits in range(2, 12):
            view.fed.feed([{"l": 7, "k": "a", "n": Decimal(1)}])
            assert rows(client.ask(_ONE)) == [(str(visits).encode(), f"{visits + Decimal('0.75'):.2f}".encode())]
            until(lambda: view.finished.status()[0].state == "ready")
            assert rows(client.ask(_ONE)) == [(str(visits).encode(), f"{visits + Decimal('0.75'):.2f}".encode())]
    assert len(at_once) >= 10


def test_messages_that_come_in_pieces(server: PullServer, view: KeptView, at_once: list[bytes]) -> None:
    with _session(server) as client:
        whole = client.ask(_ONE)
        for cut in (1, 5, len(_ONE) // 2, len(_ONE) - 5, len(_ONE) - 1):
            client.send(_ONE[:cut])
            client.send(_ONE[cut:])
            assert client.until() == whole


def test_answers_do_not_mix_between_sessions(server: PullServer, view: KeptView, at_once: list[bytes]) -> None:
    wrong: list[object] = []

    def look(site: int) -> None:
        with _session(server) as client:
            for _ in range(200):
                found = rows(client.ask(bind([b"%d" % site, b"a"], statement="point") + execute() + SYNC))
                if found != [(b"1", f"{Decimal(site) / 4:.2f}".encode())]:
                    wrong.append((site, found))

    threads = [threading.Thread(target=look, args=(site,)) for site in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong
    assert len(at_once) > 1_000


def test_a_longer_message_than_is_allowed_is_refused(server: PullServer, view: KeptView, at_once: list[bytes]) -> None:
    with _session(server) as client:
        client.send(bind([b"7", b"a" * limits.AT_ONCE_MESSAGES_BYTES_MAX], statement="point") + execute() + SYNC)
        assert rows(client.until()) == []
        assert not at_once
        client.send(_ONE[: -len(SYNC)] + b"S\0\0\0\5x")
        (found,) = [error_fields(body) for kind, body in split(client.until()) if kind == "E"]
        assert found["C"] == "08P01"
        assert not at_once
