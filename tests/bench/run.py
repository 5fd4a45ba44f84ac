"""``make bench``, or ``make bench PARTS="freshness pull"``.

BENCH_SCALE=0.01 tries everything small; such results say so and are not rendered into the document.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback

from tests.bench import machine, render, results
from tests.bench.bench import Bench, Settings

PARTS = (
    "startup",
    "freshness",
    "lanes",
    "own_writes",
    "stores",
    "store_formats",
    "stream_joins",
    "changelog_join",
    "changelog_group",
    "view_cost",
    "tenth_view",
    "watching",
    "backlog",
    "nexmark",
    "pull",
    "read_paths",
    "pauses",
    "web",
    "cpu",
    "memory",
    "join_memory",
)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measures a running mvserver and writes the tables of the documents.")
    parser.add_argument("parts", nargs="*", help="all when none is named")
    parser.add_argument("--render", action="store_true", help="only write the tables from the results at hand")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.parts) - set(PARTS)):
        parser.error(f"unknown parts: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    failed = []
    settings = Settings.from_environment()
    if not options.render:
        with Bench.open(settings) as bench:
            for part in options.parts or PARTS:
                print(f"{part} ...", flush=True)
                described = machine.describe()
                began = time.monotonic()
                try:
                    measured = importlib.import_module(f"tests.bench.parts.{part}").measure(bench)
                except Exception:  # noqa: BLE001 - the other parts are still worth measuring; the exit code tells
                    traceback.print_exc()
                    failed.append(part)
                    continue
                path = results.save(part, described, settings.scale, measured)
                print(f"{part}: {time.monotonic() - began:.0f} s, {path}")
    measured_whole = {part: found for part, found in results.load().items() if found["scale"] == 1}
    if measured_whole:
        print(f"tables written: {', '.join(render.write(measured_whole))}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
