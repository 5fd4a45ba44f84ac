"""SIGKILL at random moments: every acknowledged statement is there, none is half there."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from catalog.store import Catalog

CHILD = """
import sys
from pathlib import Path
from catalog.store import Catalog
from tests.catalog.objects import add_view, relation

catalog = Catalog.open(Path(sys.argv[1]))
print("ready", flush=True)
number = max((int(name[1:]) for name in (d.name for d in catalog.databases.all()) if name[0] == "d"), default=-1) + 1
while True:
    with catalog.transaction():  # one statement that touches every table, and takes away what the last one made
        for old in catalog.relations.all():
            found = catalog.dependencies.of_relation(old)
            if old.kind == "stream" and old.name != f"s{number}":
                catalog.dependencies.drop((old, *found.relations), found.queries)
        catalog.databases.add(f"d{number}", "postgres")
        source = catalog.relations.add(relation(catalog, f"s{number}"))
        add_view(catalog, f"v{number}", source)
        catalog.settings.set("last", str(number))
    print(number, flush=True)
    number += 1
"""


def run_and_kill(path: Path, delay: float) -> int | None:
    """Starts the child, kills it ``delay`` seconds after it is ready; returns the last number it acknowledged."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    timer = threading.Timer(delay, os.kill, (child.pid, signal.SIGKILL))
    timer.start()
    lines = child.stdout.read().splitlines(keepends=True)
    child.wait(30)
    timer.join()
    child.stdout.close()
    assert child.returncode == -signal.SIGKILL
    whole = [line for line in lines if line.endswith("\n")]
    return int(whole[-1]) if whole else None


def check_whole(path: Path, acknowledged: int | None) -> int | None:
    catalog = Catalog.open(path)
    try:
        last_text = catalog.settings.get("last")
        if last_text is None:
            assert acknowledged is None
            return None
        last = int(last_text)
        if acknowledged is not None:
            assert last in (acknowledged, acknowledged + 1)  # the next may be durable and not told
        names = {d.name for d in catalog.databases.all()}
        assert names == {"postgres", *(f"d{i}" for i in range(last + 1))}
        assert {s.database_id for s in catalog.schemas.all()} == {d.id for d in catalog.databases.all()}
        assert [r.name for r in catalog.relations.all()] == [f"s{last}", f"v{last}"]
        (query,) = catalog.queries.all()
        source, view = catalog.relations.all()
        assert (query.source_ids, query.sink_id) == ((source.id,), view.id)
        assert catalog.generation == last + 2
        return last
    finally:
        catalog.close()


def kill_repeatedly(folder: Path, kills: int) -> None:
    seed = int(os.environ.get("CATALOG_KILL_SEED", time.time_ns() % 1_000_000))
    print(f"CATALOG_KILL_SEED={seed}")
    chance = random.Random(seed)
    path = folder / "catalog.sqlite"
    before: int | None = None
    for _ in range(kills):
        acknowledged = run_and_kill(path, chance.uniform(0.0, 0.15))
        last = check_whole(path, acknowledged)
        assert (last or -1) >= (before or -1)
        before = last
    assert before is not None


def test_kills_lose_nothing_acknowledged_and_leave_nothing_half(tmp_path: Path) -> None:
    kill_repeatedly(tmp_path, 5)


@pytest.mark.night
def test_a_hundred_kills(tmp_path: Path) -> None:
    kill_repeatedly(tmp_path, 100)
