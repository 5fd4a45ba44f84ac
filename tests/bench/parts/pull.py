"""Pull queries beside a real PostgreSQL that holds the same rows, asked by the same clients, in turns.

Look-ups in the three protocols; ranges and aggregates; a long result streamed; many connections; and look-ups while
10,000 events a second come in for ten views. A figure is the median of its rounds.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.bench.bench import Bench, Running
from tests.bench.clients import PROTOCOLS, Question, ask, conninfo, stream
from tests.bench.load import LiveLoad, preload
from tests.bench.stats import median
from tests.bench.viewsets import View, wide_views
from tests.bench.workload import WIDE
from tests.bench.yardstick import Yardstick, postgres

CLIENTS = (1, 8, 32)
_EVENTS = 1_000_000  # fills the 100,000 keys of the view
_USERS = 20_000
_RANGE_USERS = 20
_ROUNDS = 3
_IDLE, _ACTIVE = 1_000, 200

_POLLED_VIEW = View("p_url", ("url",), ())
_USER_VIEW = View("p_user", ("user_id",), ("sum(amount) AS amount_sum",))
_ROWS_VIEW = View("p_user_device", ("user_id", "device_id"), ("sum(amount) AS amount_sum",))
_STREAM = "SELECT user_id, device_id, n, amount_sum, i FROM p_user_device, generate_series(1, {}) AS g(i)"


def one_user(chance: random.Random) -> Sequence[object]:
    return (chance.randrange(_USERS),)


def some_users(chance: random.Random) -> Sequence[object]:
    first = chance.randrange(_USERS - _RANGE_USERS)
    return (first, first + _RANGE_USERS)


def any_number(chance: random.Random) -> Sequence[object]:
    return (chance.randrange(1_000_000_000),)


def nothing(chance: random.Random) -> Sequence[object]:
    return ()


POINT = Question("look-up", "SELECT n, amount_sum FROM p_user WHERE user_id = %s", one_user)
PAIR = Question(
    "look-up by two columns",
    "SELECT n, amount_sum FROM p_user_device WHERE user_id = %s AND device_id = 'd1'",
    one_user,
)
RANGE = Question(
    "range of 100",
    "SELECT user_id, device_id, n FROM p_user_device WHERE user_id >= %s AND user_id < %s",
    some_users,
)
GROUPS = Question(
    "GROUP BY",
    "SELECT device_id, count(*), sum(n), max(amount_sum) FROM p_user_device GROUP BY device_id",
    nothing,
)
RESET = Question("DISCARD ALL", "DISCARD ALL", nothing)


ANEW = Question(
    "GROUP BY, each another",
    "SELECT device_id, count(*) + %s, sum(n), max(amount_sum) FROM p_user_device GROUP BY device_id",
    any_number,
)


def measure(bench: Bench) -> dict[str, Any]:
    events = max(50_000, int(_EVENTS * bench.settings.scale))
    seconds = max(0.5, 4.0 * min(1.0, bench.settings.scale))
    with (
        bench.fresh(
            WIDE, [_POLLED_VIEW, _USER_VIEW, _ROWS_VIEW], arguments=("--max-connections", str(_IDLE + 100))
        ) as running,
        postgres(_folder(bench)) as yardstick,
    ):
        preload(running.bootstrap, running.topic, WIDE, events, seed=1)
        running.watch_until(events)
        copied = _copy(running, yardstick)
        rows = [
            row
            for question, protocols in ((POINT, PROTOCOLS), (PAIR, ("prepared",)), (RANGE, ("prepared",)),
                                        (GROUPS, ("prepared",)), (ANEW, ("prepared",)),
                                        (RESET, ("simple",)))
            for protocol in protocols
            for clients in CLIENTS
            for row in _compared(running, yardstick, question, protocol, clients, seconds)
        ]  # fmt: skip
        streamed = _streamed(running, yardstick, bench.settings.scale)
        connections = _connections(running, seconds)
    return {
        "rows_held": copied,
        "rows": rows,
        "streamed": streamed,
        "connections": connections,
        "under_10000_events_per_s": _under_load(bench, events, seconds),
    }


def _copy(running: Running, yardstick: Yardstick) -> int:
    with running.connect() as client:
        yardstick.copy(client, "p_user", ("user_id bigint", "n bigint", "amount_sum numeric"), ("user_id",))
        return yardstick.copy(
            client,
            "p_user_device",
            ("user_id bigint", "device_id text", "n bigint", "amount_sum numeric"),
            ("user_id", "device_id"),
        )


def _compared(
    running: Running, yardstick: Yardstick, question: Question, protocol: str, clients: int, seconds: float
) -> Iterator[dict[str, Any]]:
    ports = {"mvserver": running.server.port, "PostgreSQL": yardstick.port}
    rounds: dict[str, list[dict[str, Any]]] = {system: [] for system in ports}
    for _ in range(_ROUNDS):
        for system, port in ports.items():
            rounds[system].append(ask(port, question, clients=clients, seconds=seconds, protocol=protocol))
    rates = {system: median([found["per_s"] for found in rounds[system]]) for system in ports}
    for system, found in rounds.items():
        row = {
            "query": question.name,
            "protocol": protocol,
            "clients": clients,
            "system": system,
            "per_s": rates[system],
            "ratio": round(rates[system] / rates["PostgreSQL"], 3),
            **{name: median([each[name] for each in found]) for name in ("p50_ms", "p99_ms")},
        }
        print(f"    {row}")
        yield row


def _streamed(running: Running, yardstick: Yardstick, scale: float) -> dict[str, Any]:
    """A result of five million rows; the memory of the server's own process while it is sent."""
    times = max(1, int(50 * scale))  # of a hundred thousand rows
    text = _STREAM.format(times)
    pid = running.server.pid
    seconds: dict[str, list[float]] = {"mvserver": [], "PostgreSQL": []}
    before, peak = _resident(pid), 0
    size = 0

    def look() -> None:
        nonlocal peak
        peak = max(peak, _resident(pid))

    for _ in range(_ROUNDS):
        took, size = stream(running.server.port, text, look)
        seconds["mvserver"].append(took)
        seconds["PostgreSQL"].append(stream(yardstick.port, text)[0])
    with yardstick.connect() as client:
        row = client.execute(f"SELECT count(*) FROM ({text}) AS s").fetchone()
    rows = int(row[0]) if row else 0
    ours, theirs = median(seconds["mvserver"]), median(seconds["PostgreSQL"])
    found = {
        "rows": rows,
        "mib": round(size / 2**20, 1),
        "rows_per_s": round(rows / ours),
        "postgres_rows_per_s": round(rows / theirs),
        "ratio": round(theirs / ours, 3),
        "rss_growth_mib": round((peak - before) / 2**20, 1),
    }
    print(f"    streamed: {found}")
    return found


def _connections(running: Running, seconds: float) -> list[dict[str, Any]]:
    """The memory of a connection that has asked once, and look-ups by one client beside many."""
    port, pid = running.server.port, running.server.pid
    found = []
    before = _resident(pid)
    with _open(port, _IDLE):
        idle = {
            "connections": _IDLE,
            "active": 1,
            "kib_each": round((_resident(pid) - before) / _IDLE / 1024, 1),
            **_latencies(port, 1, seconds),
        }
        found.append(idle)
        print(f"    {idle}")
    active = {"connections": _ACTIVE, "active": _ACTIVE, **_latencies(port, _ACTIVE, seconds)}
    found.append(active)
    print(f"    {active}")
    return found


def _latencies(port: int, clients: int, seconds: float) -> dict[str, float]:
    found = ask(port, POINT, clients=clients, seconds=seconds)
    return {name: found[name] for name in ("per_s", "p50_ms", "p99_ms")}


@contextmanager
def _open(port: int, number: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(number):
            client = stack.enter_context(psycopg.connect(conninfo(port), autocommit=True))
            client.execute(POINT.text, (1,)).fetchall()
        yield


def _under_load(bench: Bench, events: int, seconds: float) -> list[dict[str, Any]]:
    views = [*wide_views(8), _USER_VIEW, _ROWS_VIEW]
    with bench.fresh(WIDE, views) as running:
        preload(running.bootstrap, running.topic, WIDE, events, seed=1)
        running.watch_until(events)
        load = LiveLoad(running.bootstrap, running.topic, running.workload, 10_000)
        load.start()
        time.sleep(5.0)  # the load has come to its rate
        rows = [
            {"query": question.name, "clients": clients, **ask(running.server.port, question, clients=clients,
                                                               seconds=seconds)}
            for question in (POINT, PAIR, RANGE, GROUPS)
            for clients in (1, 8)
        ]  # fmt: skip
        load.stop()
    for row in rows:
        print(f"    under load: {row}")
    return rows


def _resident(pid: int) -> int:
    """Of the process alone, without Spark's JVM."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def _folder(bench: Bench) -> Path:
    folder = bench.folder / "postgres"
    folder.mkdir()
    return folder
