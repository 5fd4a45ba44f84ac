"""The ways by which rows come to a client of the wire, as the bytes that are sent."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import pq

Connection = psycopg.Connection[Any]
Rows = list[tuple[bytes | None, ...]]
PIECE = 7  # rows of a FETCH, so that several pieces come


class RefusedError(Exception):
    """With the SQLSTATE."""


def cells(result: Any) -> Rows:
    if result.status != pq.ExecStatus.TUPLES_OK:
        raise RefusedError((result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode())
    columns = range(result.nfields)
    return [tuple(result.get_value(row, column) for column in columns) for row in range(result.ntuples)]


def simple(connection: Connection, text: str) -> Rows:
    return cells(connection.pgconn.exec_(text.encode()))


def binary(connection: Connection, text: str) -> Rows:
    return cells(connection.pgconn.exec_params(text.encode(), [], result_format=1))


def prepared(connection: Connection, text: str) -> Rows:
    """The third time, as drivers ask with what they have prepared."""
    wire = connection.pgconn
    wire.prepare(b"ways", text.encode())
    try:
        return [cells(wire.exec_prepared(b"ways", [])) for _ in range(3)][-1]
    finally:
        wire.exec_(b"DEALLOCATE ways")


def fetched(connection: Connection, text: str, kind: str = "") -> Rows:
    wire, found = connection.pgconn, []
    wire.exec_(b"BEGIN")
    try:
        wire.exec_(f"DECLARE ways {kind} CURSOR FOR {text}".encode())
        while piece := cells(wire.exec_(f"FETCH {PIECE} FROM ways".encode())):
            found += piece
    finally:
        wire.exec_(b"ROLLBACK")
    return found


def fetched_in_binary(connection: Connection, text: str) -> Rows:
    return fetched(connection, text, "BINARY")


def copied(options: str) -> Callable[[Connection, str], bytes]:
    def ask(connection: Connection, text: str) -> bytes:
        into = io.BytesIO()
        try:
            with connection.cursor().copy(f"COPY ({text}) TO STDOUT {options}".encode()) as copy:
                for block in copy:
                    into.write(block)
        except psycopg.Error as error:
            raise RefusedError(error.sqlstate) from error
        return into.getvalue()

    return ask


WAYS: dict[str, Callable[[Connection, str], Any]] = {
    "simple": simple, "binary": binary, "prepared": prepared, "cursor": fetched, "binary cursor": fetched_in_binary,
    "copy": copied(""), "csv": copied("(FORMAT csv)"), "quoted csv": copied("(FORMAT csv, FORCE_QUOTE *, HEADER)"),
    "binary copy": copied("(FORMAT binary)"),
}  # fmt: skip


def outcome(way: str, connection: Connection, text: str) -> Any:
    """What came, or the SQLSTATE."""
    try:
        return WAYS[way](connection, text)
    except RefusedError as error:
        return str(error)
