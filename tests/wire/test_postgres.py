"""The same messages to a real PostgreSQL and to us: the same kinds of answers, severities and SQLSTATEs."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.wire.client import (
    FLUSH,
    SYNC,
    TERMINATE,
    RawClient,
    bind,
    close,
    describe,
    errors,
    execute,
    message,
    parse,
    query,
    split,
)
from tests.wire.record_encodings import record
from tests.wire.server import Running

pytestmark = pytest.mark.postgres


class SocketClient(RawClient):
    """To a PostgreSQL that listens on a file."""

    def __init__(self, dsn: str) -> None:
        given = psycopg.conninfo.conninfo_to_dict(dsn)
        host, port = str(given["host"]), given.get("port", 5432)
        if host.startswith("/"):
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(10)
            self.socket.connect(f"{host}/.s.PGSQL.{port}")
        else:
            self.socket = socket.create_connection((host, int(str(port))), timeout=10)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with Running() as server:
        yield server


class Words:
    """The statements of a transcript in either server's language."""

    def __init__(self, rows: str, command: str, echo: str) -> None:
        self.rows, self.command, self.echo = rows, command, echo


THEIRS = Words("select g from generate_series(1, 10) g", "set application_name to x", "select $1::int4, $2::text")
OURS = Words("rows 10 4", "insert 1", "echo $1::int4 $2::text")

TRANSCRIPTS: dict[str, Any] = {
    "rows, twice": lambda w: [parse(w.rows), bind(), execute(), execute(), SYNC],
    "rows in parts": lambda w: [parse(w.rows), bind(), execute(3), execute(7), execute(5), execute(), SYNC],
    "negative limit": lambda w: [parse(w.rows), bind(), execute(-5), SYNC],
    "command, twice": lambda w: [parse(w.command), bind(), execute(), execute(), SYNC],
    "no data": lambda w: [parse(w.command), describe("S"), bind(), describe("P"), execute(), SYNC],
    "unknown closes": lambda w: [close("S", "x"), close("P", "x"), SYNC],
    "unknown describes": lambda w: [describe("S", "x"), SYNC, describe("P", "x"), SYNC],
    "unknown executes": lambda w: [execute(0, "x"), SYNC, bind(statement="x"), SYNC],
    "copy messages": lambda w: [message(b"d", b"x"), message(b"c"), message(b"f", b"x\0"), SYNC],
    "password": lambda w: [message(b"p", b"x\0")],
    "unknown type": lambda w: [message(b"y")],
    "empty": lambda w: [parse(""), bind(), describe("P"), execute(), execute(), SYNC, query(""), query(" ; ;")],
    "too few parameters": lambda w: [parse(w.echo), bind([b"1"]), SYNC],
    "too many parameters": lambda w: [parse(w.echo), bind([b"1", b"2", b"3"]), SYNC],
    "parameter formats": lambda w: [parse(w.echo), bind([b"1", b"2"], formats=[0, 0, 0]), SYNC],
    "unknown format": lambda w: [parse(w.echo), bind([b"1", b"2"], formats=[5]), SYNC],
    "result formats": lambda w: [parse(w.echo), bind([b"1", b"2"], results=[0, 0, 0]), SYNC],
    "text that is no number": lambda w: [parse(w.echo), bind([b"x", b"2"]), SYNC],
    "binary of a wrong length": lambda w: [parse(w.echo), bind([b"12345", b"2"], formats=[1, 0]), SYNC],
    "parameter that is no text": lambda w: [parse(w.echo), bind([b"1", b"\xff"]), SYNC],
    "parameter with a zero byte": lambda w: [parse(w.echo), bind([b"1", b"a\0b"]), SYNC],
    "query that is no text": lambda w: [message(b"Q", b"\xff\xfe\0")],
    "portal that exists": lambda w: [query("begin"), parse(w.rows), bind(portal="p"), bind(portal="p"), SYNC],
    "portal after its end": lambda w: [parse(w.rows), bind(portal="p"), execute(2, "p"), SYNC, execute(2, "p"), SYNC],
    "unnamed portal after a query": lambda w: [parse(w.rows), bind(), query("begin"), describe("P"), SYNC],
    "portal in a block": lambda w: [
        query("begin"), parse(w.rows), bind(portal="p"), execute(2, "p"), SYNC, execute(2, "p"), close("P", "p"),
        execute(1, "p"), SYNC, query("rollback"),
    ],
    "subtypes": lambda w: [message(b"D", b"Xx\0"), SYNC, message(b"C", b"Xx\0"), SYNC],
    "left-over bytes": lambda w: [
        message(b"D", b"Sx\0zzz"), SYNC, message(b"S", b"x"), SYNC, message(b"H", b"x"), SYNC
    ],
    "missing bytes": lambda w: [message(b"E", b"\0\0"), SYNC, message(b"P", b"abc"), SYNC, message(b"Q", b"abc")],
    "skip until sync": lambda w: [parse("syntax"), bind(), query("begin"), FLUSH, close("S"), SYNC],
    "errors in a block": lambda w: [query("begin"), query("syntax"), query("rollback"), query("syntax")],
    "pipeline": lambda w: [
        *[parse(w.command), bind(), execute()] * 2, SYNC, parse("syntax"), bind(), SYNC, parse(w.command), bind(),
        execute(), SYNC,
    ],
}  # fmt: skip


def answer(client: RawClient, messages: list[bytes], **parameters: str) -> tuple[str, list[tuple[str, str]]]:
    with client:
        client.log_in(**parameters)
        client.send(*messages, TERMINATE)
        heard = client.rest()
    # which parameters are reported and what is noticed is each server's own
    kinds = "".join(kind for kind, _ in split(heard) if kind not in "NS")
    return kinds, [(error["S"], error["C"]) for error in errors(heard)]


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcripts_agree(running: Running, postgres_server: Any, name: str) -> None:
    theirs = answer(SocketClient(postgres_server.dsn), TRANSCRIPTS[name](THEIRS), user="postgres", database="postgres")
    ours = answer(RawClient(running.port), TRANSCRIPTS[name](OURS))
    assert ours == theirs


def test_recorded_encodings_are_still_true(postgres_server: Any) -> None:
    recorded = json.loads((Path(__file__).parent / "pg15_encodings.json").read_text())
    assert record(postgres_server.dsn) == recorded
