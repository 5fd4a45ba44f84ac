"""pgcli's completion: what it asks for when it connects, and what it offers for it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from pgcli.completion_refresher import CompletionRefresher
from pgcli.pgcompleter import PGCompleter
from pgcli.pgexecute import PGExecute
from pgspecial.main import PGSpecial
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from tests.clients.live_server import LiveServer


@pytest.fixture
def pgcli(own_server: LiveServer) -> Iterator[PGExecute]:
    with psycopg.connect(own_server.conninfo, autocommit=True) as connection:
        connection.execute("CREATE VIEW slow AS SELECT url, visits AS slow_visits FROM visits")
    made = PGExecute(database="postgres", user="postgres", password="x", host="127.0.0.1", port=own_server.port)
    yield made
    made.conn.close()


@pytest.fixture
def completer(pgcli: PGExecute) -> PGCompleter:
    """Filled as its thread does."""
    filled = PGCompleter(smart_completion=True, pgspecial=PGSpecial())
    for refresh in CompletionRefresher.refreshers.values():
        refresh(filled, pgcli)
    return filled


def offered(completer: PGCompleter, text: str) -> set[str]:
    """At the place of the bar."""
    document = Document(text.replace("|", ""), cursor_position=text.index("|"))
    return {each.text for each in completer.get_completions(document, CompleteEvent())}


def test_names_are_offered(completer: PGCompleter) -> None:
    assert {"visits", "typed", "numbers", "slow"} <= offered(completer, "SELECT * FROM |")
    assert {"url", "slow_visits"} <= offered(completer, "SELECT | FROM slow")
    assert {"amount", "instant"} <= offered(completer, "SELECT t.| FROM typed t")
    assert "mv_catalog" in offered(completer, "SELECT * FROM mv_|")


def test_functions_come_with_their_types(pgcli: PGExecute) -> None:
    (found,) = [each for each in pgcli.functions() if each.func_name == "ascii"]
    assert (found.arg_types, found.return_type, found.is_aggregate) == (("text",), "integer", False)
    assert ("public", "slow", "slow_visits", "bigint", False, None) in list(pgcli.view_columns())


def test_a_definition_is_shown(pgcli: PGExecute) -> None:
    assert "select url, visits as slow_visits from public.visits" in pgcli.view_definition("slow").lower()
