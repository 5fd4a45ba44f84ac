"""Statements leave next to nothing to Python's collector of cycles, however long they are and however they end."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg
import pytest
from sqlglot import exp

import mvserver
from tests.serving.server import PullServer, wait_until

_PACKAGE = Path(mvserver.__file__).parent
NOTHING = {
    "columns": "SELECT url, visits + 1 AS n FROM visits WHERE visits > 3 ORDER BY 1",
    "a union": "SELECT 1 UNION SELECT 2",
    "a chain of plus": f"SELECT {' + '.join(['1'] * 400)}",
    "many arguments": f"SELECT concat({', '.join(map(str, range(2_000)))})",
    "many columns": f"SELECT {', '.join(f'{n} AS c{n}' for n in range(500))}",
    "ANDs": f"SELECT count(*) FROM visits WHERE {' AND '.join(f'visits <> {n}' for n in range(500))}",
    "several statements": "SELECT 1; SELECT 2 AS a; SELECT 'x'",
    "a cursor": "BEGIN; DECLARE c CURSOR FOR SELECT 1; FETCH c; COMMIT",
    "EXPLAIN": "EXPLAIN SELECT url FROM visits",
}
FAILING = {
    "42703": f"SELECT {', '.join(['visits'] * 500)}, nothing FROM visits",
    "42P01": f"SELECT {', '.join(['visits'] * 500)} FROM nowhere",
    "42883": f"SELECT {', '.join(['visits'] * 500)}, nosuch(visits) FROM visits",
    "42601": "SELECT 1; SELECT 1 FROM FROM",
    "22012": "SELECT 1/0 AS a",
    "0A000": "SELECT 1 AS a; SELECT nextval('x'); SELECT 2 AS b",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PullServer]:
    with PullServer(Path(tmp_path_factory.mktemp("garbage"))) as made:
        with made.connect() as client:
            client.execute("SELECT url FROM visits")  # what the first statement builds for all
        yield made


@pytest.fixture(autouse=True)
def collected() -> Iterator[list[Any]]:
    """What the collector found, and has not freed."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def _left(collected: list[Any], *kinds: type) -> list[str]:
    time.sleep(0.05)  # the server's threads have come to rest
    gc.collect()
    return [repr(found)[:80] for found in collected if issubclass(type(found), kinds)]


def _parameters_known() -> int:
    """How many of the objects known are parameters. Only types are asked: a lazy object may fail when touched."""
    return sum(type(known) is exp.Parameter for known in gc.get_objects())


def _frames(collected: list[Any]) -> list[str]:
    frames = [found for found in collected if type(found) is FrameType]
    return [str(frame) for frame in frames if Path(frame.f_code.co_filename).is_relative_to(_PACKAGE)]


@pytest.mark.parametrize("name", NOTHING)
def test_no_node_is_left(server: PullServer, collected: list[Any], name: str) -> None:
    with server.connect() as client:
        client.pgconn.exec_(NOTHING[name].encode())
        client.execute("SELECT 1 AS one").fetchall()
        assert _left(collected, exp.Expr) == []


@pytest.mark.parametrize("sqlstate", FAILING)
@pytest.mark.parametrize("prepare", [False, True])
def test_an_error_leaves_neither_nodes_nor_frames(
    server: PullServer, collected: list[Any], sqlstate: str, prepare: bool
) -> None:
    text = FAILING[sqlstate].split(";")[-1] if prepare and sqlstate == "42601" else FAILING[sqlstate]
    with server.connect() as client:
        if prepare and ";" not in text:
            found = client.pgconn.exec_params(text.encode(), None)
        else:
            found = client.pgconn.exec_(text.encode())
        assert found.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == sqlstate.encode()
        del found
        assert len(_left(collected, exp.Expr)) < 10  # the parser's own, where it stopped
        assert _frames(collected) == []


def test_a_session_that_is_ended_leaves_no_frames(server: PullServer, collected: list[Any]) -> None:
    with server.connect() as client, server.connect() as ended:
        process = ended.info.backend_pid
        client.execute("SELECT pg_terminate_backend(%s)", [process])
        with pytest.raises(psycopg.errors.AdminShutdown):
            ended.execute("SELECT 1")
        del ended
        gone = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
        wait_until(lambda: client.execute(gone, [process]).fetchone() == (0,))
        _left(collected)
        assert _frames(collected) == []


def test_a_large_prepared_statement_is_kept_without_nodes_and_means_what_its_text_means(server: PullServer) -> None:
    text = f"/* large */ SELECT sum(visits) FROM visits WHERE visits IN ({', '.join(['$1'] * 9_000)})"
    first = server.world.catalog.current
    with server.connect() as client:
        client.pgconn.prepare(b"large", text.encode())
        assert _parameters_known() < 100
        for value in (b"3", b"2"):
            assert client.pgconn.exec_prepared(b"large", [value]).get_value(0, 0) == value
        server.world.catalog.change(relations=())
        found = client.pgconn.exec_prepared(b"large", [b"3"])
        assert found.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"42P01"
        position = found.error_field(psycopg.pq.DiagnosticField.STATEMENT_POSITION)
        assert position == str(text.index("visits WHERE") + 1).encode()
        server.world.catalog.change(relations=first.relations)
        assert client.pgconn.exec_prepared(b"large", [b"3"]).get_value(0, 0) == b"3"
        assert _parameters_known() < 100


def test_a_prepared_statement_that_is_replaced_leaves_no_node(server: PullServer, collected: list[Any]) -> None:
    with server.connect() as client:
        many = ", ".join(f"${n}" for n in range(1, 301))
        client.pgconn.exec_params(f"SELECT 1 IN ({many})".encode(), [b"1"] * 300)
        client.pgconn.exec_params(b"SELECT 2", None)
        assert _left(collected, exp.Expr) == []
