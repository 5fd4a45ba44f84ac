"""The extended protocol over a socket, with parameters whose types are left to the server, as drivers of Go and Rust
and psycopg's texts do."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from psycopg.conninfo import conninfo_to_dict

from tests.wire import client as wire


@dataclass(frozen=True)
class Described:
    """The oids of the parameters and of the columns; or the error's SQLSTATE and message."""

    parameters: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Answered:
    rows: tuple[tuple[str | None, ...], ...] = ()
    error: str = ""


class UntypedClient:
    def __init__(self, conninfo: str) -> None:
        """Of a server that asks for no password."""
        parts = conninfo_to_dict(conninfo)
        host, port = str(parts.get("host", "127.0.0.1")), int(parts.get("port") or 5432)
        if host.startswith("/"):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(f"{host}/.s.PGSQL.{port}")
        else:
            self._socket = socket.create_connection((host, port))
        self._socket.settimeout(60)
        user, database = str(parts.get("user", "postgres")), str(parts.get("dbname", "postgres"))
        self._socket.sendall(wire.startup(user=user, database=database, TimeZone="UTC"))
        self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def describe(self, sql: str) -> Described:
        said = self._say(wire.parse(sql), wire.describe("S"), wire.SYNC)
        error = _error(said)
        if error:
            return Described(error=error)
        parameters: tuple[int, ...] = ()
        columns: list[int] = []
        for kind, body in wire.split(said):
            if kind == "t":
                parameters = struct.unpack_from(f"!{struct.unpack_from('!H', body)[0]}I", body, 2)
            if kind == "T":
                at = 2
                for _ in range(struct.unpack_from("!H", body)[0]):
                    at = body.index(b"\0", at) + 1
                    columns.append(struct.unpack_from("!I", body, at + 6)[0])
                    at += 18
        return Described(parameters, tuple(columns))

    def ask(self, sql: str, values: Sequence[str | None]) -> Answered:
        sent = [None if value is None else value.encode() for value in values]
        said = self._say(wire.parse(sql), wire.describe("S"), wire.bind(sent), wire.execute(), wire.SYNC)
        error = _error(said)
        if error:
            return Answered(error=error)
        return Answered(
            tuple(tuple(None if cell is None else cell.decode() for cell in row) for row in wire.rows(said))
        )

    def _say(self, *messages: bytes) -> bytes:
        self._socket.sendall(b"".join(messages))
        return self._answer()

    def _answer(self) -> bytes:
        """All messages up to ReadyForQuery."""
        received = b""
        while not _is_ready(received):
            piece = self._socket.recv(65_536)
            if not piece:
                raise ConnectionError("the server has closed the connection")
            received += piece
        return received


def _is_ready(received: bytes) -> bool:
    return len(received) >= 6 and received[-6:-1] == b"Z\0\0\0\5"


def _error(said: bytes) -> str:
    return next((f"{error['C']} {error['M']}" for error in wire.errors(said)), "")
