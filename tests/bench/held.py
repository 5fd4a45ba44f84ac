"""What a server holds: after a restart in which nothing is read, so not what filling it took."""

from __future__ import annotations

import time

from mvserver.demo.server import Server
from tests.bench.processes import usage
from tests.bench.stats import median

_SETTLE_LOOKS = 30


def held(server: Server) -> tuple[int, int]:
    """Bytes of resident memory of its processes, and of its data directory."""
    server.stop()
    disk = sum(path.stat().st_size for path in server.data_directory.rglob("*") if path.is_file())
    server.start()
    return _settled_rss(server), disk


def _settled_rss(server: Server) -> int:
    """Once Spark is up again too: the median of the last looks of half a minute."""
    found = []
    for _ in range(_SETTLE_LOOKS):
        time.sleep(1.0)  # between two looks of half a minute
        found.append(usage(server.pid).rss_bytes)
    return int(median(found[-5:]))
