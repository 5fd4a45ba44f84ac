"""What a watched view costs a batch, and what reads of its past cost beside reads of the present.

Bursts of events are sent to a server with one view, in phases with a watcher and without one in turn. A burst is timed
from its last acknowledgement to the look that shows all of it; the medians of both kinds are compared. Reads carry a
condition that differs each time, so that none is answered from what is kept.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from mvserver.streaming.watching.watched_views import WatchedViews
from spark_sinks.duckdb.history.histories import UNWATCHED
from tests.bench.bench import Bench, Client, Running
from tests.bench.load import preload
from tests.bench.stats import median
from tests.bench.viewsets import View
from tests.bench.workload import WIDE
from tests.streaming.states import Fed, target, writer_in

_VIEWS = (
    View("few", ("url",), ("sum(amount) AS amount_sum",)),
    View("many", ("user_id", "plan"), ("sum(amount) AS amount_sum",)),
)
_LANES = {"batches": ("--live-lane", "off"), "live": ()}
_BURST = 5_000
_COMMITTED = (  # three views of one batch, of which the first is watched
    "SELECT k, count(*) AS n, sum(i) AS s, avg(l) AS a FROM events GROUP BY k",
    "SELECT k, i, count(*) AS n FROM events GROUP BY k, i",
    "SELECT k, i, l, count(*) AS n, max(t) AS last FROM events GROUP BY k, i, l",
)
_COMMITS = ((200, 40), (200, 5_000), (45_000, 400), (45_000, 5_000))  # keys of the watched view, records
_COMMITS_IN_TURN = 30
_PHASES = 3  # of each kind
_BURSTS = 6
_WARM_UP_BURSTS = 6
_READS = 30
_WARM_UP_READS = 300  # of look-ups: as many as finished rows wait for
_FURTHER = "user_id = {} AND plan = 'p1' AND n > -1"
_KEPT = "user_id = {} AND plan = 'p1'"
_AGAIN = "user_id = 7 AND plan = 'p1' AND n > -1"
_PAUSE_S = 0.3
_UNWATCHED_S = 120.0


def measure(bench: Bench) -> dict[str, Any]:
    return {
        "burst_events": _BURST,
        "rows": [_cost(bench, view, lane) for lane in _LANES for view in _VIEWS],
        "commits": commits(bench.folder),
        "reads": _reads(bench),
    }


def commits(folder: Path) -> list[dict[str, Any]]:
    """Processor time of a commit alone, which other programs on the machine change least: by the number of groups."""
    return [_committed(folder / f"commits-{groups}-{records}", groups, records) for groups, records in _COMMITS]


def _committed(folder: Path, groups: int, records: int) -> dict[str, Any]:
    folder.mkdir()
    chance = random.Random(groups)
    targets = [target(text, number) for number, text in enumerate(_COMMITTED)]
    view = targets[0]
    times: dict[bool, list[float]] = {False: [], True: []}
    changed = 0
    with writer_in(folder) as (database, writer):
        fed = Fed(database, writer, *targets)
        views = WatchedViews(writer, 3600.0, {view.view_id: view}.get, lambda view_id: view_id)

        def feed(count: int = records) -> float:
            rows = [{"k": f"k{chance.randrange(groups)}", "i": chance.randrange(9), "l": 3} for _ in range(count)]
            fed.prepare(rows)
            began = time.process_time()
            fed.commit()
            return time.process_time() - began

        for _ in range(_WARM_UP_BURSTS):
            feed(_BURST)
        for _ in range(_PHASES):
            times[False] += [feed() for _ in range(_COMMITS_IN_TURN)]
            watch = views.open(view.view_id, since=None, snapshot=False)
            times[True] += [feed() for _ in range(_COMMITS_IN_TURN)]
            history = writer.histories.of(view.query_id)
            assert history is not None
            changed = history.extent.rows // _COMMITS_IN_TURN
            watch.close()
            with writer.transaction():
                writer.histories.end_one(history, UNWATCHED)
    found = {
        "groups": groups,
        "records": records,
        "changes": changed,
        "cpu_ms": round(median(times[False]) * 1000, 1),
        "watched_cpu_ms": round(median(times[True]) * 1000, 1),
    }
    print(f"    {found}")
    return found


def _cost(bench: Bench, view: View, lane: str) -> dict[str, Any]:
    turns = itertools.count()
    times: dict[bool, list[float]] = {False: [], True: []}
    with bench.fresh(WIDE, [view], arguments=("--history-retention", "1s", *_LANES[lane])) as running:
        _bursts(running, turns, _WARM_UP_BURSTS)
        for _ in range(_PHASES):
            times[False] += _bursts(running, turns, _BURSTS)
            with _watched(running, view):
                times[True] += _bursts(running, turns, _BURSTS)
            _wait_unwatched(running)
        without, with_ = median(times[False]) * 1000, median(times[True]) * 1000
        found = {
            "lane": lane,
            "view": view.name,
            "keys": running.keys(),
            "burst_ms": round(without, 1),
            "watched_ms": round(with_, 1),
            "share": round(with_ / without - 1, 4),
        }
    print(f"    {found}")
    return found


def _bursts(running: Running, turns: Iterator[int], number: int) -> list[float]:
    measured = []
    for _ in range(number):
        time.sleep(_PAUSE_S)  # the server at rest
        turn = next(turns)
        preload(running.bootstrap, running.topic, running.workload, _BURST, seed=turn)
        sent = time.monotonic()
        points = running.watch_until((turn + 1) * _BURST, poll_s=0.003, timeout_s=300)
        measured.append(points[-1][0] - sent)
    return measured


@contextlib.contextmanager
def _watched(running: Running, view: View) -> Iterator[None]:
    with running.connect() as client:
        began = threading.Event()
        thread = threading.Thread(target=_follow, args=(client, view, began))
        thread.start()
        try:
            assert began.wait(_UNWATCHED_S)
            yield
        finally:
            client.cancel()
            thread.join()


def _follow(client: Client, view: View, began: threading.Event) -> None:
    with contextlib.suppress(psycopg.errors.QueryCanceled):
        for _ in client.cursor().stream(f"SUBSCRIBE TO {view.name} WITH (SNAPSHOT)".encode()):
            began.set()


def _wait_unwatched(running: Running) -> None:
    deadline = time.monotonic() + _UNWATCHED_S
    with running.connect() as client:
        while client.execute("SELECT count(*) FROM mv_catalog.watched_views").fetchone() != (0,):
            assert time.monotonic() < deadline, "the history is kept on"
            time.sleep(0.1)


def _reads(bench: Bench) -> list[dict[str, Any]]:
    view = _VIEWS[1]
    with bench.fresh(WIDE, [view], arguments=("--history-retention", "600s")) as running:
        preload(running.bootstrap, running.topic, running.workload, 20 * _BURST, seed=99)
        running.watch_until(20 * _BURST, timeout_s=300)
        with _watched(running, view), running.connect() as client:
            first = client.execute("SELECT latest_token FROM mv_catalog.watched_views").fetchone()
            assert first is not None
            total = 20 * _BURST
            for turn in range(10):
                preload(running.bootstrap, running.topic, running.workload, _BURST // 5, seed=turn)
                total += _BURST // 5
                running.watch_until(total, timeout_s=300)
            token, name = first[0], view.name
            keys, changes = running.keys(), _count(client, f'"{name}$changes"')
            found = [
                _compared(client, "whole view", name, f"{name} AS OF '{token}'", "*", keys),
                _compared(client, "group", name, f"{name} AS OF '{token}'", "plan, sum(n)", keys, " GROUP BY plan"),
                _compared(client, "look-up", name, f"{name} AS OF '{token}'", "*", 1, look_up=_FURTHER),
                _compared(client, "look-up of finished rows", name, f"{name} AS OF '{token}'", "*", 1, look_up=_KEPT),
                _compared(client, "the same look-up again", name, f"{name} AS OF '{token}'", "*", 1, look_up=_AGAIN),
                _compared(client, "changes", name, f'"{name}$changes"', "*", changes, per_row=keys / changes),
            ]
    return found


def _count(client: Client, relation: str) -> int:
    row = client.execute(f"SELECT count(*) FROM {relation}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def _compared(
    client: Client, read: str, now: str, then: str, columns: str, rows: int, tail: str = "", *,
    look_up: str = "", per_row: float = 1.0,
) -> dict[str, Any]:  # fmt: skip
    """``per_row``: by how much the rows of the present are more."""
    numbers = itertools.count()

    def text(relation: str) -> Callable[[], str]:
        def made() -> str:
            number = next(numbers)
            condition = look_up.format(number % 1000) or f"n > -{number + 1}"
            return f"SELECT {columns} FROM {relation} WHERE {condition}{tail}"

        return made

    present = _timed(client, text(now), look_up=bool(look_up))
    past = _timed(client, text(then), look_up=bool(look_up)) * per_row
    found = {
        "read": read, "rows": rows, "present_ms": round(present, 2), "past_ms": round(past, 2),
        "ratio": round(past / present, 2),
    }  # fmt: skip
    print(f"    {found}")
    return found


def _timed(client: Client, text: Callable[[], str], *, look_up: bool) -> float:
    times = []
    for _ in range(_WARM_UP_READS if look_up else 0):
        client.execute(text().encode()).fetchall()
    for _ in range(_READS):
        query = text().encode()
        began = time.monotonic()
        client.execute(query).fetchall()
        times.append(time.monotonic() - began)
    return median(times) * 1000
