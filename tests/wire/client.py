"""Frontend messages as bytes, backend messages as tuples, and an engine driven without sockets."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from mvserver.pgwire.actions import BlockingCall, CancelOther, Signal
from mvserver.pgwire.authentication import TrustLoopback
from mvserver.pgwire.machine import Machine

PROTOCOL_3 = 3 << 16


def startup(protocol: int = PROTOCOL_3, **parameters: str) -> bytes:
    given = parameters or {"user": "u", "database": "toy"}
    body = b"".join(k.encode() + b"\0" + v.encode() + b"\0" for k, v in given.items()) + b"\0"
    return struct.pack("!ii", len(body) + 8, protocol) + body


def special(code: int, rest: bytes = b"") -> bytes:
    return struct.pack("!iI", len(rest) + 8, (1234 << 16) | code) + rest


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def query(sql: str) -> bytes:
    return message(b"Q", text(sql))


def parse(sql: str, name: str = "", oids: Sequence[int] = ()) -> bytes:
    return message(b"P", text(name) + text(sql) + struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def bind(
    values: Sequence[bytes | None] = (),
    *,
    portal: str = "",
    statement: str = "",
    formats: Sequence[int] = (),
    results: Sequence[int] = (),
) -> bytes:
    body = text(portal) + text(statement) + struct.pack(f"!H{len(formats)}h", len(formats), *formats)
    body += struct.pack("!H", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return message(b"B", body + struct.pack(f"!H{len(results)}h", len(results), *results))


def describe(kind: str, name: str = "") -> bytes:
    return message(b"D", kind.encode() + text(name))


def close(kind: str, name: str = "") -> bytes:
    return message(b"C", kind.encode() + text(name))


def execute(rows: int = 0, portal: str = "") -> bytes:
    return message(b"E", text(portal) + struct.pack("!i", rows))


SYNC, FLUSH, TERMINATE = message(b"S"), message(b"H"), message(b"X")


def split(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Backend messages; what is not whole is an error."""
    at = 0
    while at < len(data):
        kind = chr(data[at])
        (length,) = struct.unpack_from("!i", data, at + 1)
        assert at + 1 + length <= len(data), "a message is cut off"
        yield kind, data[at + 5 : at + 1 + length]
        at += 1 + length


def kinds(data: bytes) -> str:
    return "".join(kind for kind, _ in split(data))


def error_fields(body: bytes) -> dict[str, str]:
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def errors(data: bytes) -> list[dict[str, str]]:
    return [error_fields(body) for kind, body in split(data) if kind == "E"]


def row(body: bytes) -> tuple[bytes | None, ...]:
    (count,) = struct.unpack_from("!H", body)
    at, cells = 2, []
    for _ in range(count):
        (size,) = struct.unpack_from("!i", body, at)
        at += 4
        cells.append(None if size < 0 else body[at : at + size])
        at += max(size, 0)
    assert at == len(body)
    return tuple(cells)


def rows(data: bytes) -> list[tuple[bytes | None, ...]]:
    return [row(body) for kind, body in split(data) if kind == "D"]


def tags(data: bytes) -> list[str]:
    return [body[:-1].decode() for kind, body in split(data) if kind == "C"]


class Driven:
    """An engine with everything done in line; ``say`` returns what it answers."""

    def __init__(self, backend: Any, **options: Any) -> None:
        given = {"process": 7, "key": b"\1\2\3\4", "peer": "127.0.0.1", "local": True, **options}
        given.setdefault("authentication", TrustLoopback())
        self.machine = Machine(backend, **given)
        self.done = False
        self.cancels: list[tuple[int, bytes]] = []
        self.flushes = 0
        self.machine.advance()

    def say(self, *data: bytes) -> bytes:
        out = b""
        for piece in data:
            self.machine.feed(piece)
            out += self.go()
        return out

    def go(self) -> bytes:
        out = b""
        action = self.machine.advance()
        while not self.done:
            if isinstance(action, BlockingCall):
                action = self.machine.perform(action)
            elif isinstance(action, CancelOther):
                self.cancels.append((action.process, action.key))
                action = self.machine.advance()
            elif action is Signal.FLUSH:
                self.flushes += 1
                out += self.machine.take_output()
                action = self.machine.advance()
            else:
                self.done = action is Signal.DONE
                break
        return out + self.machine.take_output()

    def log_in(self) -> Driven:
        self.say(startup())
        return self


class RawClient:
    """A blocking socket."""

    def __init__(self, port: int, timeout: float = 10.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)

    def send(self, *data: bytes) -> None:
        self.socket.sendall(b"".join(data))

    def exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(min(65536, size - len(data)))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def until(self, last: str = "Z") -> bytes:
        """Messages up to and with the first of this kind."""
        data = bytearray()
        while True:
            head = self.exactly(5)
            (length,) = struct.unpack("!i", head[1:])
            data += head + self.exactly(length - 4)
            if chr(head[0]) == last:
                return bytes(data)

    def rest(self) -> bytes:
        """All until the server hangs up."""
        data = b""
        try:
            while piece := self.socket.recv(65536):
                data += piece
        except ConnectionResetError:
            pass
        return data

    def ask(self, data: bytes, ends: int = 1) -> bytes:
        """What is answered, up to so many ReadyForQuery."""
        self.send(data)
        return b"".join([self.until() for _ in range(ends)])

    def log_in(self, **parameters: str) -> bytes:
        self.send(startup(**parameters))
        return self.until()

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
