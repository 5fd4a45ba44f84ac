"""How long hostile texts and messages hold up the event loop, and so all other clients.

The server is the wire, the sessions and the pull queries, in a process of its own, over three small views; its event
loop notes the longest time between two heartbeats, of the clock or of the process's own processor time, whichever is
less: what other programs do on the machine is none of it. Each is sent several times; the least of the longest pauses
counts, since a pause that the text causes comes each time.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from typing import Any

from tests.bench.bench import Bench
from tests.serving.beating import Beating
from tests.serving.hostile_texts import BOMBS, at_the_limit, copies, messages, parse, query  # tests send the same

_PROMISED_MS = 50.0
_TRIES = 3
_SHOWN = 10
_ANSWER_S = 120.0


def measure(bench: Bench) -> dict[str, Any]:
    texts = [*BOMBS.items(), *at_the_limit()]
    sync = b"S\0\0\0\4"
    groups: dict[str, Iterable[tuple[str, list[bytes]]]] = {
        "Query": ((name, [query(text)]) for name, text in texts),
        "Parse": ((name, [parse(text) + sync]) for name, text in texts),
        "Bind": ((name, [sent]) for name, sent in messages()),
        "CopyData": ((name, [query("COPY src FROM STDIN"), sent + b"c\0\0\0\4"]) for name, sent in copies()),
    }
    tries = _TRIES if bench.settings.scale >= 1 else 1
    server = Beating()
    try:
        found = [row for group, sent in groups.items() for row in _paused(server, group, sent, tries)]
    finally:
        server.close()
    rows = [_summary(group, found) for group in groups]
    return {"promised_ms": _PROMISED_MS, "rows": rows, "longest": _longest(found)}


def _paused(server: Any, group: str, sent: Iterable[tuple[str, list[bytes]]], tries: int) -> Iterator[dict[str, Any]]:
    for name, parts in sent:
        pauses = []
        for _ in range(tries):
            with _connected(server.port) as wire:
                server.longest()
                for part in parts:
                    wire.sendall(part)
                    _answered(wire)
                pauses.append(server.longest() * 1_000)
            if pauses[-1] <= _PROMISED_MS / 2:
                break
        row = {"message": group, "text": name, "pause_ms": round(min(pauses), 1)}
        print(f"    {row}")
        yield row


def _connected(port: int) -> socket.socket:
    from tests.serving.hostile_texts import startup

    wire = socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_S)
    wire.sendall(startup())
    _answered(wire)
    return wire


def _answered(wire: socket.socket) -> None:
    """Up to ReadyForQuery, or CopyInResponse: the server waits for the client; or to the end of the connection."""
    last = b""
    received = bytearray()
    while last not in (b"Z", b"G"):
        data = wire.recv(1 << 20)
        if not data:
            return
        received += data
        at = 0
        while len(received) - at >= 5:
            end = at + 1 + int.from_bytes(received[at + 1 : at + 5])
            if end > len(received):
                break
            last, at = bytes(received[at : at + 1]), end
        del received[:at]


def _summary(group: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    of_group = sorted(row["pause_ms"] for row in found if row["message"] == group)
    return {
        "message": group,
        "sent": len(of_group),
        "median_ms": of_group[len(of_group) // 2],
        "longest_ms": of_group[-1],
        "over": sum(pause > _PROMISED_MS for pause in of_group),
    }


def _longest(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: row["pause_ms"], reverse=True)[:_SHOWN]
