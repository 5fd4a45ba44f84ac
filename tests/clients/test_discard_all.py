"""DISCARD ALL as poolers send it: in one go where it can be, and in its effects as a real PostgreSQL's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from mvserver.pgwire.machine import Machine
from mvserver.session.state import SessionState
from tests.answers_in_one_go import noted
from tests.clients.client_world import Address
from tests.clients.live_server import LiveServer
from tests.wire.client import SYNC, RawClient, bind, execute, kinds, parse, query

_DISCARD = query("DISCARD ALL")
_LEFT = {
    "nothing": (),
    "a setting": (query("SET statement_timeout = '1s'"),),
    "a reported setting": (query("SET application_name = 'left'"), query("SET TimeZone = 'Asia/Tokyo'")),
    "a role": (query("CREATE ROLE left_over"), query("SET ROLE left_over")),
    "a path": (query("SET search_path = elsewhere, public"),),
    "prepared statements": (query("PREPARE p AS SELECT 1"), parse("SELECT $1::int", "q") + SYNC),
    "an unnamed statement": (parse("SELECT 1") + bind() + execute() + SYNC,),
    "a transaction that failed": (query("BEGIN"), query("SELECT 1 / 0"), query("ROLLBACK")),
}
_ELSEWHERE = {  # left to the conversation
    "an open cursor": (query("BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT 1; COMMIT"),),
    "a transaction": (query("BEGIN"),),
    "a failed transaction": (query("BEGIN"), query("SELECT 1 / 0")),
}
_AFTER = (
    query("SHOW application_name"),
    query("SHOW statement_timeout"),
    query("SELECT current_user, current_setting('TimeZone'), current_schemas(false)"),
    query("EXECUTE p"),
    bind([b"1"], statement="q") + execute() + SYNC,
    bind() + execute() + SYNC,
    query("FETCH c"),
    query("ROLLBACK"),
    query("SHOW search_path"),
)


@pytest.fixture
def in_one_go(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    return noted(monkeypatch)


def _asked(server: LiveServer, messages: Sequence[bytes]) -> list[bytes]:
    with RawClient(server.port) as client:
        client.log_in(user="postgres", database="postgres")
        try:
            return [client.ask(each) for each in messages]
        finally:
            client.ask(query("ROLLBACK"))
            client.ask(query("RESET ROLE"))
            client.ask(query("DROP ROLE IF EXISTS left_over"))


@pytest.mark.parametrize("left", _LEFT.values(), ids=_LEFT)
def test_it_is_answered_in_one_go_as_otherwise(
    server: LiveServer, in_one_go: list[bytes], monkeypatch: pytest.MonkeyPatch, left: tuple[bytes, ...]
) -> None:
    asked = (*left, _DISCARD, *_AFTER, _DISCARD, *_AFTER)
    answered = _asked(server, asked)
    assert in_one_go == [answer for question, answer in zip(asked, answered, strict=True) if question == _DISCARD]
    assert [kinds(each)[0] + kinds(each)[-1] for each in in_one_go] == ["CZ", "CZ"]
    with monkeypatch.context() as patched:
        patched.setattr(Machine, "look_up", lambda machine: None)
        assert _asked(server, asked) == answered


@pytest.mark.parametrize("left", _ELSEWHERE.values(), ids=_ELSEWHERE)
def test_what_has_to_be_ended_first_is_left_to_the_conversation(
    server: LiveServer, in_one_go: list[bytes], left: tuple[bytes, ...]
) -> None:
    _asked(server, (*left, _DISCARD))
    assert in_one_go == []


@pytest.mark.parametrize("text", ["DISCARD ALL", "discard all", " DISCARD ALL ; ", "DISCARD ALL;"])
def test_its_text_is_told_without_being_parsed(server: LiveServer, in_one_go: list[bytes], text: str) -> None:
    _asked(server, (query(text),))
    assert len(in_one_go) == 1


@pytest.mark.parametrize(
    "text", ["DISCARD ALL; SELECT 1", "DISCARD PLANS", "DISCARD  ALL", "DISCARD ALL \xff", "", "-- ALL"]
)
def test_other_texts_are_parsed(server: LiveServer, in_one_go: list[bytes], text: str) -> None:
    _asked(server, (query(text),))
    assert in_one_go == []


def test_a_session_with_nothing_to_discard_has_nothing_to_reset(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[SessionState] = []
    ordinary = SessionState.publish

    def publish(state: SessionState) -> None:
        published.append(state)
        ordinary(state)

    with RawClient(server.port) as client:
        client.log_in(user="postgres", database="postgres")
        client.ask(_DISCARD)
        monkeypatch.setattr(SessionState, "publish", publish)
        client.ask(_DISCARD)
        assert published == []
        client.ask(query("SET application_name = 'left'"))
        published.clear()
        client.ask(_DISCARD)
        assert len(published) == 1


def test_a_pooler_passes_on_what_postgresql_passes_on(ours: Address, theirs: Address) -> None:
    assert _passed_on(ours) == _passed_on(theirs)


def _passed_on(address: Address) -> list[Any]:
    found: list[Any] = []
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute("DISCARD ALL")
        for left in (
            "SET application_name = 'left'",
            "SET TimeZone = 'Asia/Tokyo'",
            "PREPARE left_over AS SELECT 1",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        ):
            connection.execute(left)
            found.append([connection.info.parameter_status(name) for name in ("application_name", "TimeZone")])
            connection.execute("DISCARD ALL")
            found.append([connection.info.parameter_status(name) for name in ("application_name", "TimeZone")])
            found.append(connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone())
            names = ("application_name", "TimeZone", "transaction_read_only")
            found.extend(connection.execute(f"SHOW {name}").fetchone() for name in names)
    return found
