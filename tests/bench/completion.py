"""How long a query takes to come to the end of what its source holds, and what it costs."""

from __future__ import annotations

import time

from mvserver.demo.server import Server
from tests.bench.bench import Client
from tests.bench.processes import usage

_POLL_S = 0.1
_STEADY = 10  # looks in a row that show the query to be complete
_WAIT_S = 1_200.0


def create(server: Server, client: Client, statement: str) -> tuple[float, float]:
    """Seconds until the server's only query is complete, and those of processors that server and Spark took till then.

    The time counts from its CREATE.
    """
    began, before = time.monotonic(), usage(server.pid).cpu_s
    client.execute(statement.encode())
    complete: list[float] = []
    cpu_s = 0.0
    while len(complete) < _STEADY:
        found = client.execute("SELECT rows_in, caught_up, state, error FROM mv_catalog.queries").fetchone()
        if found is None:
            raise RuntimeError("the query is gone")
        read, caught_up, state, error = found
        moment = time.monotonic()
        if state == "FAILED" or moment > began + _WAIT_S:
            raise RuntimeError(f"the query is {state}, {read} records read: {error}")
        complete = [*complete, moment] if caught_up and read else []
        if len(complete) == 1:
            cpu_s = usage(server.pid).cpu_s - before
        time.sleep(_POLL_S)  # asking more often would take the cores from what is measured
    return complete[0] - began, cpu_s
