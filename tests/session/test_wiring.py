"""What the server gives a session: defaults of settings, parsed texts kept, the search path that handlers read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mvserver import limits
from mvserver.front import Startup
from mvserver.pgcatalog.snapshot import CatalogSnapshot, Role
from mvserver.session.activity_table import activity_table
from mvserver.session.context import SessionContext
from mvserver.session.parsing import RememberingParser
from mvserver.sql import parse
from mvserver.sql.statements.base import Statement
from tests.session.fakes import World, rows, run, show, values


def test_defaults_of_the_server_are_what_reset_goes_back_to() -> None:
    world = World(setting_defaults={"statement_timeout": "5s"})
    session = world.open()
    assert show(session, "statement_timeout") == "5s"
    run(session, "SET statement_timeout = '1s'")
    run(session, "RESET statement_timeout")
    assert show(session, "statement_timeout") == "5s"
    assert show(world.open(options="-c statement_timeout=2s"), "statement_timeout") == "2s"
    world.close()


class Counting:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str) -> Sequence[Statement]:
        self.texts.append(text)
        return parse(text)


def test_a_select_is_parsed_once_and_other_statements_each_time() -> None:
    counting = Counting()
    remembering = RememberingParser(counting)
    for _ in range(3):
        assert remembering("SELECT n FROM v")[0].text == "SELECT n FROM v"
        remembering("SHOW search_path")
        remembering("SELECT 1; SELECT 2")
    assert counting.texts.count("SELECT n FROM v") == 1
    assert counting.texts.count("SHOW search_path") == 3
    assert counting.texts.count("SELECT 1; SELECT 2") == 3


def test_what_is_kept_is_bounded() -> None:
    counting = Counting()
    remembering = RememberingParser(counting)
    for number in range(limits.PARSED_TEXTS_MAX + 1):
        remembering(f"SELECT {number}")
    remembering("SELECT 1")
    remembering("SELECT 0")
    assert counting.texts.count("SELECT 1") == 1
    assert counting.texts.count("SELECT 0") == 2
    long = f"SELECT '{'x' * limits.PARSED_TEXT_CHARACTERS_MAX}'"
    remembering(long)
    remembering(long)
    assert counting.texts.count(long) == 2


def test_all_that_is_kept_is_bounded_by_its_characters() -> None:
    counting = Counting()
    remembering = RememberingParser(counting)
    half = limits.PARSED_TEXT_CHARACTERS_MAX // 2
    texts = [f"SELECT '{number}{'x' * half}'" for number in range(limits.PARSED_CHARACTERS_MAX // half)]
    for text in (*texts, *texts[:1], *texts[-2:], *texts[-2:]):
        remembering(text)
    assert [counting.texts.count(text) for text in (texts[0], *texts[-2:])] == [2, 1, 1]


def test_repeated_texts_are_not_parsed_again_in_either_protocol() -> None:
    counting = Counting()
    world = World()
    object.__setattr__(world.services, "parse", RememberingParser(counting))
    session = world.open()
    for _ in range(3):
        assert values(session, "SELECT n FROM v") == [(1,), (1,), (1,)]
        session.parse("", "SELECT n FROM w", ())
        session.bind("", "", ())
        rows(session.execute(""))
        session.sync()
    assert counting.texts == ["SELECT n FROM v", "SELECT n FROM w"]
    world.close()


@pytest.mark.parametrize(
    ("schema", "path", "found"),
    [
        ("public", '"$user", public', ("public",)),
        ("b", 'b, "C", public', ("b", "C", "public")),
        ("public", "", ("public",)),
        ("given_in", "b, public", ("given_in",)),  # at COMMIT: the place of the waiting statements
    ],
)
def test_handlers_see_the_whole_search_path(schema: str, path: str, found: tuple[str, ...]) -> None:
    context = SessionContext("postgres", "postgres", schema, settings={"search_path": path})
    assert context.search_path == found


def test_activity_goes_by_the_number_that_the_client_was_given() -> None:
    world = World()
    session = world.backend.open_session(Startup("postgres", "postgres", {}, "127.0.0.1", local=True, process=4711))
    run(session, "SELECT n FROM v")
    catalog = CatalogSnapshot(1, roles=(Role(10, "postgres", superuser=True),))
    (row,) = activity_table(world.backend.registry.activity(), catalog).to_pylist()
    assert (row["pid"], row["usename"], row["usesysid"], row["state"]) == (4711, "postgres", 10, "idle")
    assert (row["query"], row["datid"], row["client_addr"]) == ("SELECT n FROM v", None, "127.0.0.1")
    world.close()
