"""Where the age of a record goes in the live lane, and what the threads take meanwhile.

python -m tests.bench.live_profile VIEWS EVENTS_PER_S [SECONDS]

The load and the client are those of the part ``lanes``. Ages are means of all records, from their times in Kafka.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tests.bench.bench import Bench, Settings
from tests.bench.parts import lanes
from tests.bench.processes import tree
from tests.bench.stats import latency_summary, median
from tests.bench.viewsets import clicks_views
from tests.bench.workload import CLICKS

_WARM_UPS = 3
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_THREADS_SHOWN = 16
_Spent = dict[tuple[str, str], float]  # seconds of the processor, by process and threads


def main(views: int, rate: int, seconds: float) -> None:
    with Bench.open(Settings()) as bench:
        lines = bench.folder / "commits"
        command = (sys.executable, "-m", "tests.bench.profiled_server", str(lines))
        with bench.fresh(CLICKS, clicks_views(views), command=command) as running:
            for turn in range(_WARM_UPS):
                lanes._ages(running, rate, 12.0, turn * 10_000)
            with running.connect() as client:
                queries = client.execute("SELECT query_id, view FROM mv_catalog.views").fetchall()
                names = {f"merge of {query}": f"merge of {view}" for query, view in queries}
            began, before = time.time(), _threads(running.server.pid)
            ages, cores = lanes._ages(running, rate, seconds, 500_000)
            after, ended = _threads(running.server.pid), time.time()
            print(
                f"{views} views, {rate:,} events/s, {lanes._lane(running)}, cores {cores:.2f}: {latency_summary(ages)}"
            )
            _print_threads(before, after, ended - began)
            found = [json.loads(line) for line in lines.read_text().splitlines()]
        _print_pieces([each for each in found if began < each["at"] < ended and "rows" in each], names)


def _print_pieces(commits: list[dict[str, Any]], names: dict[str, str]) -> None:
    """Means of a commit."""
    number = len(commits)
    cycle = (commits[-1]["at"] - commits[0]["at"]) / (number - 1) * 1000
    rows = sum(each["rows"] for each in commits)
    told = Counter(each.get("told", 0) for each in commits)
    middle = median([each["rows"] for each in commits])
    print(f"{number} commits, one in {cycle:.1f} ms, of {rows / number:.0f} records (median {middle:.0f})")
    print(f"  by how many merges told their rows: {dict(told)}")
    for name in ("newest_ms", "mean_ms", "oldest_ms"):
        print(f"  {name} when taken: {sum(each[name] * each['rows'] for each in commits) / rows:.1f}")
    took = sum((each["visible_at"] - each["taken_at"]) * each["rows"] for each in commits) / rows * 1000
    print(f"  from taken to visible, of a record: {took:.1f} ms")
    pieces: dict[str, list[list[float]]] = defaultdict(list)
    for each in commits:
        for piece, spent in each["pieces"].items():
            pieces[names.get(piece, piece)].append(spent)
    print("| piece | times | ms | of a processor | share of the cycle |\n|---|---|---|---|---|")
    for piece, all_spent in sorted(pieces.items(), key=lambda item: -sum(wall for wall, _ in item[1])):
        wall, cpu = (sum(spent[at] for spent in all_spent) / number for at in (0, 1))
        print(f"| {piece} | {len(all_spent)} | {wall:.2f} | {cpu:.2f} | {wall / cycle:.1%} |")


def _threads(pid: int) -> _Spent:
    """Of the process and its children."""
    found: _Spent = defaultdict(float)
    for process in tree(pid):
        owner = "server" if process == pid else "JVM or other"
        for task in Path(f"/proc/{process}/task").iterdir():
            try:
                name, fields = task.joinpath("comm").read_text().strip(), task.joinpath("stat").read_text()
            except OSError:
                continue
            if name == "MainThread" and int(task.name) != process:  # they have the name of whoever began them
                name = "DuckDB's workers"
            spent = fields.rpartition(")")[2].split()
            found[owner, name.rstrip("0123456789-# ")] += (int(spent[11]) + int(spent[12])) / _TICKS_PER_S
    return found


def _print_threads(before: _Spent, after: _Spent, seconds: float) -> None:
    print("| process | threads | cores |\n|---|---|---|")
    cores = {key: (spent - before.get(key, 0.0)) / seconds for key, spent in after.items()}
    for (owner, name), taken in sorted(cores.items(), key=lambda item: -item[1])[:_THREADS_SHOWN]:
        print(f"| {owner} | {name} | {taken:.3f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 40.0)
