"""Processor time of a commit with and without somebody who watches its view, without Spark: the real writer alone.

``python -m tests.bench.watched_commits [view ...]`` prints a table. A phase of each kind follows the other, and the
figure is the median of all commits of a kind, so that other work on the machine changes it little.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvserver.streaming.watching.watched_views import WatchedViews
from spark_sinks.duckdb.batch_plans import BatchCommit
from spark_sinks.duckdb.history.histories import UNWATCHED
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from spark_sinks.duckdb.writer import Writer
from tests.streaming import changelog_states, states

VIEWS = {
    "counts and sums": "SELECT k, count(*) AS n, sum(i) AS s FROM events GROUP BY k",
    "averages": "SELECT k, count(*) AS n, avg(i) AS a, avg(l) AS b FROM events GROUP BY k",
    "WHERE and HAVING": "SELECT k, max(i) AS m, sum(l) AS s FROM events WHERE i > 1 GROUP BY k HAVING count(*) > 1",
    "over a changelog": "SELECT k, count(*) AS n, sum(i) AS s FROM rows GROUP BY k",
    "rows of a changelog": "SELECT id, k, i FROM rows WHERE i > 1",
}
BURSTS = ((200, 40), (200, 500), (200, 5_000), (45_000, 5_000))  # groups, records
_PHASES, _COMMITS, _WARM_UP = 2, 15, 3


@dataclass(frozen=True)
class Fed:
    """``prepare`` makes the next commit of so many records over so many groups, and gives what makes it."""

    writer: Writer
    view: Any
    prepare: Callable[[int, int], Callable[[], None]]


@contextmanager
def _fed(folder: Path, text: str) -> Iterator[Fed]:
    chance = random.Random(text)

    def records(groups: int, count: int) -> list[dict[str, Any]]:
        return [
            {"id": chance.randrange(groups), "k": f"k{chance.randrange(groups)}", "i": chance.randrange(9), "l": 3}
            for _ in range(count)
        ]

    if "FROM rows" not in text:
        view = states.target(text)
        with states.writer_in(folder) as (database, writer):
            fed = states.Fed(database, writer, view)

            def prepare(groups: int, count: int) -> Callable[[], None]:
                fed.prepare(records(groups, count))
                return fed.commit

            yield Fed(writer, view, prepare)
        return
    keyed = changelog_states.target(text)
    with closing(changelog_states.Changes(folder, keyed)) as changes:
        numbers = iter(range(1_000_000))

        def prepare_changes(groups: int, count: int) -> Callable[[], None]:
            merge, number = changes.merge(records(groups, count)), next(numbers)
            entry = LedgerEntry("p", 1, number, {"at": number}, {"at": number + 1}, count)
            return lambda: _committed(changes.writer, BatchCommit(entry, (merge,)))

        yield Fed(changes.writer, keyed, prepare_changes)


def _committed(writer: Writer, batch: BatchCommit) -> None:
    assert writer.commit(batch)


def measure(name: str, groups: int, burst: int) -> tuple[float, float, int]:
    """Milliseconds of a commit, those of one that is watched, and how many changes that has."""
    times: dict[bool, list[float]] = {False: [], True: []}
    changes = 0
    with tempfile.TemporaryDirectory() as folder, _fed(Path(folder), VIEWS[name]) as fed:
        views = WatchedViews(fed.writer, 3600.0, {fed.view.view_id: fed.view}.get, lambda view_id: view_id)

        def commit() -> float:
            made = fed.prepare(groups, burst)
            began = time.process_time()
            made()
            return time.process_time() - began

        for _ in range(_WARM_UP):
            fed.prepare(groups, 5_000)()
        for _ in range(_PHASES):
            times[False] += [commit() for _ in range(_COMMITS)]
            watch = views.open(fed.view.view_id, since=None, snapshot=False)
            times[True] += [commit() for _ in range(_COMMITS)]
            history = fed.writer.histories.of(fed.view.query_id)
            assert history is not None
            changes = history.extent.rows // _COMMITS
            watch.close()
            with fed.writer.transaction():
                fed.writer.histories.end_one(history, UNWATCHED)
    return statistics.median(times[False]) * 1000, statistics.median(times[True]) * 1000, changes


def main() -> None:
    print("| view | groups | records | changes | commit ms | watched | more ms |\n|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or VIEWS:
        for groups, burst in BURSTS:
            without, watched, changes = measure(name, groups, burst)
            print(
                f"| {name} | {groups:,} | {burst:,} | {changes:,} | {without:.1f} | {watched:.1f} | "
                f"{watched - without:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
