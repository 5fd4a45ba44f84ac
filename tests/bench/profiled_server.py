"""``mvserver`` that times its live commits piece by piece, for ``tests.bench.live_profile``.

python -m tests.bench.profiled_server FILE serve ...

Each commit is a line of JSON in the file. A piece has its milliseconds by the clock, and those of the processor that
its own thread took, both without the pieces in it. DuckDB's other threads are in none. Threads have names in /proc.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mvserver import cli
from mvserver.serving.fast.finished_rows import KeptViews
from mvserver.streaming.batch.evaluate import TIME
from mvserver.streaming.live.row_server import RowServer
from mvserver.streaming.live.run import LiveRun
from mvserver.streaming.pipeline.committer import Committer
from spark_sinks.duckdb.batch_plans import ViewMerge
from spark_sinks.duckdb.batch_table import BatchTable
from spark_sinks.duckdb.ledger.write_ahead_log import WriteAheadLog
from spark_sinks.duckdb.writer import Writer
from spark_sinks.kafka.source import KafkaReader

PIECES: tuple[tuple[type, str, str], ...] = (
    (LiveRun, "_gather", "pause"),
    (RowServer, "take", "rows taken from the tasks"),
    (LiveRun, "_evaluated", "evaluated to Arrow"),
    (LiveRun, "_commit", "handed to the commit thread"),
    (Committer, "_commit", "the commit, else"),
    (KafkaReader, "confirm", "the topic is the same"),
    (Writer, "_begin", "BEGIN"),
    (BatchTable, "show", "copy of the batch"),
    (BatchTable, "hide", "copy of the batch"),
    (Writer, "_note", "changed keys"),
    (Writer, "_close", "ledger"),
    (Writer, "_commit", "COMMIT"),
    (KeptViews, "changing", "finished rows"),
    (KeptViews, "changed", "finished rows"),
    (KeptViews, "_bring_up_to_date", "finished rows, read anew beside"),
    (WriteAheadLog, "bound", "log folded in"),
)
_NAMES_S = 5.0


class Times:
    """Of the commit under way, by whichever thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._inner = threading.local()  # what the pieces in each piece that is open took
        self._pieces: dict[str, list[float]] = {}
        self.facts: dict[str, Any] = {}

    def timed(self, name: Callable[..., str], method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*arguments: Any, **options: Any) -> Any:
            stack: list[list[float]] = self._inner.__dict__.setdefault("stack", [])
            stack.append([0.0, 0.0])
            wall, cpu = time.perf_counter(), time.thread_time()
            try:
                return method(*arguments, **options)
            finally:
                taken = time.perf_counter() - wall, time.thread_time() - cpu
                inner = stack.pop()
                with self._lock:
                    piece = self._pieces.setdefault(name(*arguments), [0.0, 0.0])
                    for at in (0, 1):
                        piece[at] += (taken[at] - inner[at]) * 1000
                        if stack:
                            stack[-1][at] += taken[at]

        return call

    def note(self, name: str, more: int = 1) -> None:
        with self._lock:
            self.facts[name] = self.facts.get(name, 0) + more

    def write(self) -> None:
        with self._lock:
            line = {"at": time.time(), **self.facts, "pieces": self._pieces}
            self._pieces, self.facts = {}, {}
        with self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")


def observe(times: Times) -> None:
    """All that live commits do from now on."""
    for owner, method, piece in PIECES:
        setattr(owner, method, times.timed(lambda *_, piece=piece: piece, getattr(owner, method)))
    merge_view, tell = Writer._merge_view, Writer._merge_and_tell
    for method, merge in (("_merge_view", merge_view), ("_merge_and_tell", tell)):
        setattr(Writer, method, times.timed(_merge_of, merge))
    commit_rows, committed, told = LiveRun._commit_rows, Writer._commit, Writer._merge_and_tell

    def noted(run: LiveRun, batches: Sequence[pa.RecordBatch]) -> None:
        now = time.time()
        if batches:
            stamps = pa.chunked_array([batch.column(TIME) for batch in batches]).cast(pa.timestamp("us", "UTC"))
            micros = stamps.cast(pa.int64())
            times.facts.update(
                rows=len(micros),
                oldest_ms=now * 1000 - pc.min(micros).as_py() / 1000,
                mean_ms=now * 1000 - pc.mean(micros).as_py() / 1000,
                newest_ms=now * 1000 - pc.max(micros).as_py() / 1000,
                taken_at=now,
            )
        commit_rows(run, batches)
        times.write()

    def visible(writer: Writer, query_ids: Any) -> None:
        committed(writer, query_ids)
        times.facts["visible_at"] = time.time()

    def telling(writer: Writer, view: ViewMerge, wanted: str) -> None:
        times.note("told")
        told(writer, view, wanted)

    for owner, method, observed in (
        (LiveRun, "_commit_rows", noted),
        (Writer, "_commit", visible),
        (Writer, "_merge_and_tell", telling),
    ):
        setattr(owner, method, observed)


def _merge_of(_: Writer, view: ViewMerge, *__: Any) -> str:
    return f"merge of {view.query_id}"


def _name_threads() -> None:
    """As Python knows them."""
    while True:
        for thread in threading.enumerate():
            with contextlib.suppress(OSError):
                Path(f"/proc/self/task/{thread.native_id}/comm").write_text(thread.name[:15])
        time.sleep(_NAMES_S)


if __name__ == "__main__":
    observe(Times(Path(sys.argv[1])))
    threading.Thread(target=_name_threads, name="names", daemon=True).start()
    del sys.argv[1]
    sys.exit(cli.main())
