"""Work that has taken too much memory and is left: the error says so, and what the work uses stays its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mvserver.dialect.typing import constants
from mvserver.errors import SqlError
from mvserver.serving.api import NOBODY, Owner
from mvserver.serving.engine.abandonable_work import WorkAbandoned
from mvserver.serving.engine.memory_watch import MemoryWatch, Watched
from mvserver.serving.engine.results import StreamedBatches, Watch
from tests.serving.server import wait_until
from tests.serving.world import World


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Watched]:
    """Each query that is watched from now on."""
    found: list[Watched] = []
    begin = MemoryWatch.begin

    def noted(self: MemoryWatch, interrupt: Callable[[], None], owner: Any = NOBODY) -> Watched:
        found.append(begin(self, interrupt, owner))
        return found[-1]

    monkeypatch.setattr(MemoryWatch, "begin", noted)
    return found


def test_the_tree_stays_with_the_binder_that_was_left(
    world: World, begun: list[Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken apart while the binder was still at work on it."""
    gate, sizes = threading.Event(), list[int]()

    def held(cursor: object, tree: Any) -> None:
        begun[-1].over_since = time.monotonic()
        assert gate.wait(30)
        sizes.append(sum(1 for _ in tree.walk()))

    monkeypatch.setattr(constants, "check", held)
    with pytest.raises(WorkAbandoned) as raised:
        world.plan("SELECT visits + 1, total + 2 FROM visits WHERE url = 'x'")
    assert (raised.value.sqlstate, raised.value.message) == ("53200", "out of memory")
    assert "MiB" in (raised.value.detail or "")
    assert "query_memory_limit" in (raised.value.hint or "")
    assert world.service.left == 1
    gate.set()
    wait_until(lambda: world.service.left == 0)
    assert sizes[0] > 10


def test_a_binding_that_ends_in_time_is_told_the_same(
    world: World, begun: list[Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(cursor: object, tree: object) -> None:
        begun[-1].over_since = time.monotonic()
        raise SqlError("57014", "interrupted")

    monkeypatch.setattr(constants, "check", failing)
    with pytest.raises(SqlError) as raised:
        world.plan("SELECT visits + 3 FROM visits")
    assert (raised.value.sqlstate, type(raised.value)) == ("53200", SqlError)
    assert world.service.left == 0


def test_a_snapshot_that_was_left_is_lost(world: World, begun: list[Watched]) -> None:
    gate = threading.Event()
    snapshot: Any = world.service.snapshot()
    watched = world.service._memory.begin(snapshot.interrupt)
    watched.over_since = time.monotonic()
    snapshot._stopped_at = time.monotonic() - 10
    with pytest.raises(WorkAbandoned) as raised:
        snapshot._abandonable_run(watched, lambda: gate.wait(30))
    assert raised.value.sqlstate == "53200"
    assert snapshot.lost
    gate.set()
    wait_until(lambda: world.service.left == 0)


def test_a_reader_that_was_left_is_not_closed() -> None:
    """It is at work on another thread, which closes it with its cursor."""
    closed: list[str] = []
    reader: Any = SimpleNamespace(close=lambda: closed.append("reader"))

    def left(work: object) -> None:
        raise WorkAbandoned(SqlError("53200", "out of memory"))

    watch = Watch(lambda: None, None, lambda error: None)
    batches = StreamedBatches(reader, watch, lambda rows: closed.append("query"), no_turn, left, lambda: None)
    with pytest.raises(WorkAbandoned):
        next(batches)
    batches.close()
    assert closed == ["query"]


def test_open_results_go_on_when_another_query_of_the_role_was_left(world: World) -> None:
    """Their role is refused new queries until that has ended."""
    owner, memory = Owner("greedy", 7), world.service._memory
    reading, other = (world.service.snapshot(owner=owner) for _ in range(2))
    plan = world.plan("SELECT g, url FROM visits, generate_series(1, 20000) AS s(g)")
    result = reading.run(plan, [])
    assert next(result.batches).num_rows
    left = memory.begin(lambda: None, owner)
    left.taken = 2.0**50
    left.leave()
    try:
        with pytest.raises(SqlError, match="canceled statements") as raised:
            other.run(plan, [])
        assert raised.value.sqlstate == "53200"
        assert sum(batch.num_rows for batch in result.batches) > 30_000
    finally:
        left.ended()
        reading.close()
        other.close()


class no_turn:
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...
