"""From the start of the process to its first answer about existing views, and to the first change of them."""

from __future__ import annotations

import time
from typing import Any

from tests.bench.bench import Bench
from tests.bench.load import preload
from tests.bench.stats import median
from tests.bench.viewsets import wide_views
from tests.bench.workload import WIDE

_RUNS = 5
_EVENTS = 100_000


def measure(bench: Bench) -> dict[str, Any]:
    answers, changes = [], []
    with bench.fresh(WIDE, wide_views(10)) as running:
        preload(running.bootstrap, running.topic, WIDE, _EVENTS, seed=1)
        running.watch_until(_EVENTS)
        for turn in range(1, _RUNS + 1):
            running.server.stop()
            preload(running.bootstrap, running.topic, WIDE, 1_000, seed=100 + turn)
            began = time.monotonic()
            running.server.start()
            with running.connect() as client:
                before = running.visible(client)
            answers.append(time.monotonic() - began)
            if before < _EVENTS:
                raise AssertionError(f"the first answer showed {before} of {_EVENTS} events")
            points = running.watch_until(_EVENTS + 1_000 * turn)
            changes.append(points[-1][0] - began)
            print(f"    answer {answers[-1]:.2f} s, change {changes[-1]:.2f} s")
    return {
        "first_answer_s": round(median(answers), 2),
        "first_change_s": round(median(changes), 2),
        "runs": _RUNS,
    }
