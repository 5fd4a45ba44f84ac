"""What statements need in common (the system catalog, the rows of mv_catalog) may take long where the machine is busy:
who is cancelled or out of time leaves it, the others go on with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.pgcatalog.common_work import CommonWork
from mvserver.pgcatalog.system import SystemCatalog
from tests.serving.server import STOPPED_WITHIN_S, Client, PullServer, is_cancelled

pytestmark = pytest.mark.usefixtures("made_system_catalog")

SLOW = pa.table({"n": [1, 2], "_o": pa.array([0, 0], pa.uint32()), "_r": pa.array([0, 0], pa.uint32())})


class Held:
    """What is called waits until it is let go."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = work
        self.entered = threading.Semaphore(0)
        self.let_go = threading.Event()
        self.let_go.set()
        self.times = 0

    def __call__(self, *arguments: Any) -> Any:
        self.times += 1
        self.entered.release()
        assert self.let_go.wait(30)
        return self._work(*arguments)


@pytest.fixture
def slow() -> Iterator[Held]:
    made = Held(lambda: SLOW)
    yield made
    made.let_go.set()


@pytest.fixture
def server(tmp_path: Path, slow: Held) -> Iterator[PullServer]:
    with PullServer(tmp_path, live={"slow": slow}) as made:
        yield made


def hold(monkeypatch: pytest.MonkeyPatch, name: str) -> Held:
    method = getattr(SystemCatalog, name)
    held = Held(method)
    held.let_go.clear()
    monkeypatch.setattr(SystemCatalog, name, lambda *arguments: held(*arguments))
    return held


def times_out(client: Client, text: str) -> None:
    client.execute("SET statement_timeout = '200ms'")
    began = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
        client.execute(text)  # type: ignore[arg-type]
    assert time.monotonic() - began < STOPPED_WITHIN_S
    client.execute("RESET statement_timeout")


@pytest.mark.parametrize("text", ["SELECT sum(visits) FROM visits", "SELECT relname FROM pg_class WHERE oid = 1259"])
def test_the_first_statements_leave_the_making_of_the_system_catalog(
    server: PullServer, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    held = hold(monkeypatch, "_fill_static")
    with server.connect() as one, server.connect() as other:
        is_cancelled(one, text, held.entered)
        for _ in range(limits.LEFT_WORK_OF_SESSION_MAX + 1):  # it is nobody's own, so nobody is refused for it
            times_out(one, text)
        waiting: list[Any] = []
        thread = threading.Thread(target=lambda: waiting.append(other.execute("SELECT 1 + 1").fetchone()))
        thread.start()
        held.let_go.set()
        thread.join(30)
        assert waiting == [(2,)]
        assert one.execute(text).fetchone() == ((6,) if "visits" in text else ("pg_class",))  # type: ignore[arg-type]


def test_the_rows_of_a_changed_catalog_are_left(server: PullServer, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT count(*) FROM pg_class WHERE relname = 'visits'"
    with server.connect() as one, server.connect() as other:
        assert one.execute(text).fetchone() == (1,)
        held = hold(monkeypatch, "_fill_living")
        server.world.catalog.change(relations=server.world.catalog.current.relations[1:])
        times_out(one, text)
        is_cancelled(one, text, held.entered)
        assert other.execute("SELECT sum(visits) FROM all_types a, (SELECT 6 AS visits) v").fetchone() == (6,)
        held.let_go.set()
        assert one.execute(text).fetchone() == (0,)


def test_the_rows_of_mv_catalog_are_left(server: PullServer, slow: Held) -> None:
    """The first time its columns are learned, later its rows are made."""
    text = "SELECT sum(n) FROM mv_catalog.slow"
    with server.connect() as one, server.connect() as other:
        slow.let_go.clear()
        is_cancelled(one, text, slow.entered)
        times_out(one, text)
        slow.let_go.set()
        assert one.execute(text).fetchone() == (3,)
        slow.let_go.clear()
        while slow.entered.acquire(blocking=False):
            pass
        is_cancelled(one, text, slow.entered)
        times_out(one, text)
        assert other.execute("SELECT sum(visits) FROM visits").fetchone() == (6,)
        slow.let_go.set()
        ends = time.monotonic() + 20
        while server.world.service.left:
            assert time.monotonic() < ends
            time.sleep(0.01)
        assert one.execute(text).fetchone() == (3,)


# --- the work itself --------------------------------------------------------------------------------------------------


def test_work_is_begun_once_for_all_who_wait() -> None:
    work, gate, done, times = CommonWork("test"), threading.Event(), threading.Event(), []

    def carry_out() -> None:
        times.append(1)
        assert gate.wait(20)
        done.set()

    threads = [
        threading.Thread(target=lambda: work.until(done.is_set, carry_out, lambda: False)) for _ in range(8)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    with pytest.raises(SqlError) as raised:
        work.until(done.is_set, carry_out, lambda: True)
    assert raised.value.sqlstate == "57014"
    gate.set()
    for thread in threads:
        thread.join(20)
    assert times == [1]
    work.close()


def test_a_failure_is_told_and_the_work_tried_again() -> None:
    work, done, times = CommonWork("test"), threading.Event(), []

    def fails_once() -> None:
        times.append(1)
        if len(times) == 1:
            raise ZeroDivisionError
        done.set()

    with pytest.raises(ZeroDivisionError):
        work.until(done.is_set, fails_once, lambda: False)
    work.until(done.is_set, fails_once, lambda: False)
    work.until(done.is_set, fails_once, lambda: True)
    assert times == [1, 1]
    work.close()
    work.until(done.is_set, fails_once, lambda: False)
    done.clear()
    with pytest.raises(SqlError) as raised:
        work.until(done.is_set, fails_once, lambda: False)
    assert raised.value.sqlstate == "57P01"
