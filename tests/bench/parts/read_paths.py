"""What each way to answer a SELECT earns: the same questions to a server with it and to one without it, in turns.

Each is measured under the load that it was made for. Finished rows answer most look-ups, so they are switched off on
both sides where a way behind them is measured. Processor time is that of the server's own process, without Spark's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.bench.bench import Bench, Running
from tests.bench.clients import Question, ask
from tests.bench.load import LiveLoad, preload
from tests.bench.parts.pull import GROUPS, POINT, RANGE
from tests.bench.processes import own_cpu_s
from tests.bench.stats import median
from tests.bench.viewsets import View
from tests.bench.workload import WIDE

_EVENTS = 300_000
_ROUNDS = 3
_LIVE_PER_S = 1_000
_NO_FINISHED = ("--finished-rows-memory", "0")
_VIEWS = (
    View("p_url", ("url",), ()),
    View("p_user", ("user_id",), ("sum(amount) AS amount_sum",)),
    View("p_user_device", ("user_id", "device_id"), ("sum(amount) AS amount_sum",)),
)


@dataclass(frozen=True)
class Trial:
    path: str
    questions: tuple[tuple[Question, int], ...]  # and how many clients ask it
    left_out: str = ""  # the class of the path; none for finished rows, which a setting switches off
    both: tuple[str, ...] = ()  # arguments of both servers
    live: bool = False  # while records come in


TRIALS = (
    Trial("finished rows", ((POINT, 8), (RANGE, 8))),
    Trial("kept result", ((GROUPS, 8),), "KeptResultPath"),
    Trial("gathered", ((POINT, 1), (POINT, 32)), "GatheredPath", _NO_FINISHED),
    Trial("few rows", ((POINT, 1), (POINT, 8)), "FewRowsPath", _NO_FINISHED),
    Trial("shared evaluation", ((GROUPS, 32),), "SharedEvaluationPath", live=True),
)


def measure(bench: Bench) -> dict[str, Any]:
    return {"rows": [row for trial in TRIALS for row in _rows(bench, trial)]}


def _rows(bench: Bench, trial: Trial) -> Iterator[dict[str, Any]]:
    seconds = max(0.5, 3.0 * min(1.0, bench.settings.scale))
    command = (sys.executable, "-m", "tests.bench.without_paths", trial.left_out) if trial.left_out else ()
    without = trial.both if trial.left_out else _NO_FINISHED
    with (
        _filled(bench, trial.both, (), live=trial.live) as ordinary,
        _filled(bench, without, command, live=trial.live) as other,
    ):
        for question, clients in trial.questions:
            found: dict[str, list[dict[str, float]]] = {"with": [], "without": []}
            for _ in range(_ROUNDS):
                for side, running in (("with", ordinary), ("without", other)):
                    found[side].append(_asked(running, question, clients, seconds))
            row: dict[str, Any] = {"path": trial.path, "query": question.name, "clients": clients, "live": trial.live}
            for side, asked in found.items():
                row |= {f"{name}_{side}": median([each[name] for each in asked]) for name in asked[0]}
            row["ratio"] = round(row["per_s_with"] / row["per_s_without"], 2)
            print(f"    {row}")
            yield row


def _asked(running: Running, question: Question, clients: int, seconds: float) -> dict[str, float]:
    before = own_cpu_s(running.server.pid)
    found = ask(running.server.port, question, clients=clients, seconds=seconds)
    spent = own_cpu_s(running.server.pid) - before
    per_query = 1e6 * spent / max(1.0, found["per_s"] * seconds)
    return {"per_s": found["per_s"], "p50_ms": found["p50_ms"], "p99_ms": found["p99_ms"], "cpu_us": round(per_query)}


@contextmanager
def _filled(bench: Bench, arguments: Sequence[str], command: Sequence[str], *, live: bool) -> Iterator[Running]:
    events = max(20_000, int(_EVENTS * bench.settings.scale))
    with bench.fresh(WIDE, _VIEWS, arguments=arguments, command=command) as running:
        preload(running.bootstrap, running.topic, WIDE, events, seed=1)
        running.watch_until(events)
        load = LiveLoad(running.bootstrap, running.topic, WIDE, _LIVE_PER_S) if live else None
        if load is not None:
            load.start()
        try:
            yield running
        finally:
            if load is not None:
                load.stop()
