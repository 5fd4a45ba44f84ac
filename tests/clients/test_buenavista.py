"""An unmodified buenavista Rewriter and Extension, reached by psycopg through the wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from buenavista import bv_dialects
from buenavista.core import BVType, Extension, QueryResult, Session, SimpleQueryResult
from buenavista.rewrite import Rewriter

from tests.clients.live_server import LiveServer, with_views

rewriter = Rewriter(bv_dialects.BVPostgres(), bv_dialects.BVDuckDB())


@rewriter.relation("top_page")
def top_page() -> str:
    return "SELECT url, visits FROM visits ORDER BY visits DESC LIMIT 1"


class Echo(Extension):  # type: ignore[misc]
    def type(self) -> str:
        return "echo"

    def apply(self, params: dict[str, Any], session: Session) -> QueryResult:
        return SimpleQueryResult("echo", params["text"], BVType.TEXT)


class Total(Extension):  # type: ignore[misc]
    def type(self) -> str:
        return "total"

    def apply(self, params: dict[str, Any], session: Session) -> QueryResult:
        return session.execute_sql("SELECT sum(visits) AS total FROM visits WHERE visits >= $1", [params["least"]])


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[psycopg.Connection[Any]]:
    server = with_views(LiveServer(tmp_path, rewriter=rewriter, extensions=(Echo(), Total())))
    server.start()
    with psycopg.connect(server.conninfo, autocommit=True) as made:
        yield made
    server.stop()


def test_a_rewriters_relation(connection: psycopg.Connection[Any]) -> None:
    assert connection.execute("SELECT url FROM top_page").fetchall() == [("./home",)]
    joined = "SELECT v.url FROM visits v JOIN top_page AS t ON v.url = t.url WHERE v.visits > %s"
    assert connection.execute(joined, [1]).fetchall() == [("./home",)]
    assert connection.execute("SELECT count(*) FROM visits").fetchone() == (3,)


def test_extensions(connection: psycopg.Connection[Any]) -> None:
    cursor = connection.execute('{"method": "echo", "params": {"text": "hello"}}')
    assert cursor.fetchall() == [("hello",)]
    assert cursor.description is not None
    assert cursor.description[0].name == "echo"
    assert connection.execute('{"method": "total", "params": {"least": 20}}').fetchall() == [(50,)]
    with pytest.raises(psycopg.errors.UndefinedFunction, match='extension "nothing" does not exist'):
        connection.execute('{"method": "nothing"}')
    assert connection.execute("SELECT 1").fetchone() == (1,)
