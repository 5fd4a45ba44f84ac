"""What others wrote for buenavista 0.5.0 runs unmodified: a Rewriter, an Extension, a program over Connection."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import pytest
import sqlglot
from buenavista import core, rewrite
from buenavista.core import BVType, Extension, QueryResult, SimpleQueryResult
from buenavista.rewrite import Rewriter

from mvserver.errors import SqlError
from mvserver.session.plugins.buenavista import BuenavistaConnection, BuenavistaSession
from mvserver.session.plugins.buenavista_types import arrow_type_of, oid_of
from mvserver.session.plugins.extensions import ExtensionCalls
from tests.session.fakes import World, rows, run, values

rewriter = Rewriter(sqlglot.Dialect.get_or_raise("postgres"), sqlglot.Dialect.get_or_raise("postgres"))


@rewriter.relation("report")
def report() -> str:
    return "SELECT a AS answer FROM v"


class Answer(Extension):  # type: ignore[misc]
    def type(self) -> str:
        return "answer"

    def apply(self, params: dict[str, Any], session: core.Session) -> QueryResult:
        return SimpleQueryResult("answer", params["value"], BVType.INTEGER)


class Reader(Extension):  # type: ignore[misc]
    """Reads through the session it is given, and hands on what it got."""

    def type(self) -> str:
        return "read"

    def apply(self, params: dict[str, Any], session: core.Session) -> QueryResult:
        return session.execute_sql(params["sql"], params.get("params"))


class Everything(QueryResult):  # type: ignore[misc]
    """One column per type of buenavista."""

    samples = (
        (BVType.BIGINT, 2**40), (BVType.BOOL, True), (BVType.BYTES, b"x"), (BVType.FLOAT, 1.5),
        (BVType.INTEGER, -1), (BVType.JSON, {"a": 1}), (BVType.TEXT, "t"), (BVType.INTEGERARRAY, [1, 2]),
        (BVType.STRINGARRAY, ["a", None]), (BVType.NULL, None), (BVType.UNKNOWN, "u"),
    )  # fmt: skip

    def has_results(self) -> bool:
        return True

    def column_count(self) -> int:
        return len(self.samples)

    def column(self, index: int) -> tuple[str, BVType]:
        kind = self.samples[index][0]
        return kind.name.lower(), kind

    def rows(self) -> Iterator[list[Any]]:
        yield [value for _, value in self.samples]

    def status(self) -> str:
        return "SELECT 1"


class Types(Extension):  # type: ignore[misc]
    def type(self) -> str:
        return "types"

    def apply(self, params: dict[str, Any], session: core.Session) -> QueryResult:
        return Everything()


@pytest.fixture
def plugged() -> Iterator[World]:
    world = World(rewriter=rewriter, extensions=(Answer(), Reader(), Types()))
    yield world
    world.close()


def test_the_names_of_buenavista_that_are_relied_on() -> None:
    assert metadata.version("buenavista") == "0.5.0"
    assert {kind.name for kind in BVType} == {
        "NULL", "BIGINT", "BOOL", "BYTES", "DATE", "FLOAT", "INTEGER", "INTERVAL", "JSON", "DECIMAL", "TEXT", "TIME",
        "TIMESTAMP", "UNKNOWN", "ARRAY", "INTEGERARRAY", "STRINGARRAY",
    }  # fmt: skip
    for kind in BVType:
        assert oid_of(kind) > 0
        assert arrow_type_of(kind) is not None
    expected = {
        core.Connection: {"create_session", "get_session", "close_session", "new_session", "parameters"},
        core.Session: {"cursor", "close", "execute_sql", "in_transaction", "load_df_function"},
        core.QueryResult: {"has_results", "column_count", "column", "rows", "status"},
        core.Extension: {"check_json", "type", "apply"},
        rewrite.Rewriter: {"relation", "rewrite", "rewrite_one"},
    }
    for owner, names in expected.items():
        public = {name for name, _ in inspect.getmembers(owner, callable) if not name.startswith("_")}
        assert public == names, owner
    assert list(inspect.signature(core.Session.execute_sql).parameters) == ["self", "sql", "params"]
    assert list(inspect.signature(core.Extension.apply).parameters) == ["self", "params", "session"]


def test_a_relation_of_a_rewriter(plugged: World) -> None:
    session = plugged.open()
    assert values(session, "SELECT answer FROM report AS r") == [(1,)] * 3
    assert plugged.pulls.texts[-1].startswith("SELECT answer FROM (SELECT a AS answer FROM v) AS r")
    session.parse("", "SELECT answer FROM report AS r", [])
    assert [field.name for field in session.describe_statement("").fields or ()] == ["answer"]


def test_errors_of_rewritten_text_have_no_position(plugged: World) -> None:
    with pytest.raises(SqlError) as caught:
        run(plugged.open(), "select answer from nothing")
    assert (caught.value.sqlstate, caught.value.position) == ("42P01", None)


def test_extensions_are_called_by_json(plugged: World) -> None:
    session = plugged.open()
    assert values(session, '{"method": "answer", "params": {"value": 42}}') == [(42,)]
    assert values(session, '/* tool */ {"method": "answer", "params": {"value": 7}};') == [(7,)]
    assert values(session, '{"method": "answer", /* inside */ "params": {"value": 8}} /* after */ ;') == [(8,)]
    assert values(session, '{"method": "answer", "params": {"value": 9}}; /* after */') == [(9,)]
    read = '{"method": "read", "params": {"sql": "SELECT a FROM v WHERE b = $1", "params": [9]}}'
    assert values(session, read) == [(9,)] * 3
    (row,) = values(session, '{"method": "types"}')
    assert row == (2**40, True, b"x", 1.5, -1, '{"a": 1}', "t", [1, 2], ["a", None], None, "u")
    assert session.transaction_status() == "I"


def test_what_is_no_call_stays_sql(plugged: World, world: World) -> None:
    session = plugged.open()
    assert values(session, "SELECT a FROM v -- {}") == [(1,)] * 3
    with pytest.raises(SqlError) as caught:
        run(session, '{"method": "unknown"}')
    assert (caught.value.sqlstate, caught.value.message) == ("42883", 'extension "unknown" does not exist')
    with pytest.raises(SqlError) as caught:
        run(session, "{not json}")
    assert caught.value.sqlstate == "42601"
    with pytest.raises(SqlError) as caught:
        run(world.open(), '{"method": "answer"}')  # none registered
    assert caught.value.sqlstate == "42601"


@pytest.mark.parametrize("text", ["/*" * 100_000 + "}", "{" + "/*" * 100_000 + "}", "{}" + "*/" * 100_000])
def test_texts_made_to_be_slow(world: World, text: str) -> None:
    calls = ExtensionCalls((Answer(),), world.open())
    started = time.process_time()
    with contextlib.suppress(SqlError):
        assert calls.run(text) is None
    assert time.process_time() - started < 0.5


def test_a_program_over_a_buenavista_connection(world: World) -> None:
    connection = BuenavistaConnection(world.backend)
    assert connection.parameters()["server_version"].startswith("15.")
    session = connection.create_session()
    assert isinstance(session, BuenavistaSession)
    assert connection.get_session(session.id) is session
    result = session.execute_sql("SELECT a FROM v")
    assert result.has_results()
    assert (result.column_count(), result.column(0)) == (1, ("a", BVType.INTEGER))
    assert list(result.rows()) == [[1], [1], [1]]
    assert result.status() == "SELECT 3"
    assert not session.in_transaction()
    assert session.execute_sql("BEGIN").status() == "BEGIN"
    assert session.in_transaction()
    assert list(session.execute_sql("SELECT a FROM v WHERE b = $1", [5]).rows()) == [[5]] * 3
    cursor = session.cursor().execute("SELECT a FROM v")
    assert cursor.description is not None
    assert cursor.description[0][0] == "a"
    assert (cursor.fetchone(), cursor.fetchall()) == ((1,), [(1,), (1,)])
    assert session.load_df_function("v").num_rows == 3
    connection.close_session(session)
    assert len(world.backend.registry) == 0


def test_results_of_extensions_have_fields(plugged: World) -> None:
    (result,) = [(r.fields, r.tag, rows(r)) for r in plugged.open().simple_query('{"method": "types"}')]
    assert result[0] is not None
    assert [field.type_oid for field in result[0][:3]] == [20, 16, 17]
    assert result[1] == "SELECT "
