"""Large statements hold up nobody: not the event loop, and not another client's look-ups."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

TESTS = Path(__file__).parents[1]
HELD_S_MAX = 0.1  # the promise is 50 ms; the rest is room for a busy machine
TRIES = 3


class Beating:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("heartbeats.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={"PYTHONPATH": f"{TESTS.parent}:{TESTS}:{Path(__file__).parent}"},
        )  # fmt: skip
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def longest(self) -> float:
        """Between two heartbeats since the last call."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write("?\n")
        stdin.flush()
        return float(stdout.readline())

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres", autocommit=True)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(20) == 0


@pytest.fixture(scope="module")
def server() -> Iterator[Beating]:
    made = Beating()
    yield made
    made.close()


LARGE: dict[str, tuple[str, object]] = {
    "numbers behind IN": (
        f"SELECT count(*) FROM visits WHERE visits IN ({', '.join(map(str, range(100_000)))})",
        3,
    ),
    "negative numbers behind IN": (
        f"SELECT count(*) FROM visits WHERE visits - 4 IN ({', '.join(str(-n) for n in range(30_000))})",
        3,
    ),
    "ORs": (f"SELECT count(*) FROM visits WHERE {' OR '.join(f'visits = {n}' for n in range(5_000))}", 3),
    "rows of VALUES": (
        f"SELECT sum(a + b) FROM (VALUES {', '.join(f'({n}, -{n})' for n in range(25_000))}) AS v(a, b)",
        0,
    ),
    "one literal": (f"SELECT length('{'x' * 1_000_000}')", 1_000_000),
    "comments": (f"SELECT {'/* x */ ' * 120_000} 1", 1),
    "columns": (f"SELECT {', '.join(f'{n} AS c{n}' for n in range(1_600))}", 0),
    "tokens": (f"SELECT 1{',' * 1_000_000}", "54000"),
    "statements": (";".join(["SELECT 1"] * 10_000), "54000"),
    "UNIONs": (" UNION ALL ".join(["SELECT 1"] * 2_000), "54001"),
}


@pytest.mark.parametrize("name", LARGE)
def test_the_event_loop_goes_on(server: Beating, name: str) -> None:
    text, expected = LARGE[name]
    gaps = []
    with server.connect() as client:
        for _ in range(TRIES):
            server.longest()
            try:
                found: object = client.execute(text).fetchone()[0]  # type: ignore[arg-type,call-overload,index]
            except psycopg.Error as error:
                found = error.sqlstate
            gaps.append(server.longest())
            assert found == expected
            if min(gaps) <= HELD_S_MAX:
                break
    assert min(gaps) <= HELD_S_MAX


def test_prepared_with_parameters_too(server: Beating) -> None:
    text = f"SELECT count(*) FROM visits WHERE visits IN ({', '.join(map(str, range(10_000)))}) AND url = %s"
    gaps = []
    with server.connect() as client:
        for _ in range(TRIES):
            server.longest()
            assert client.execute(text, ("./home",), prepare=True).fetchone() == (1,)  # type: ignore[arg-type]
            gaps.append(server.longest())
            client.execute("DEALLOCATE ALL")
    assert min(gaps) <= HELD_S_MAX


def test_many_at_once_take_turns(server: Beating) -> None:
    """Four clients with a large statement each, and one that looks up."""
    text, expected = f"SELECT count(*) FROM visits WHERE {' OR '.join(f'visits = {n}' for n in range(2_000))}", 3
    failures: list[object] = []

    def send() -> None:
        with server.connect() as client:
            found = client.execute(text).fetchone()  # type: ignore[arg-type]
            if found != (expected,):
                failures.append(found)

    threads = [threading.Thread(target=send) for _ in range(4)]
    with server.connect() as looking:
        looking.execute("SELECT visits FROM visits WHERE url = './a'")
        for thread in threads:
            thread.start()
        waits = []
        while any(thread.is_alive() for thread in threads):
            began = time.monotonic()
            assert looking.execute("SELECT visits FROM visits WHERE url = './a'").fetchone() == (1,)
            waits.append(time.monotonic() - began)
    assert not failures
    waits.sort()
    assert waits[len(waits) // 2] <= HELD_S_MAX
