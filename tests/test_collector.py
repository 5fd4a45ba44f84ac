"""Collections of Python's cycles: begun by our thread, and not while a large statement is at work."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable

from mvserver import limits
from mvserver.collector import Collector
from mvserver.sql import parse_one
from mvserver.sql.statements.queries import Pull
from mvserver.sql.trees import dismantle


class Cyclic:
    def __init__(self) -> None:
        self.self = self


def _wait_for(condition: Callable[[], bool]) -> bool:
    ends = time.monotonic() + 10
    while not condition() and time.monotonic() < ends:
        time.sleep(0.02)
    return condition()


def _many_objects() -> list[object]:
    """Enough of them that a full collection is due."""
    return [[] for _ in range(8_000 * limits.COLLECT_AFTER_MIDDLE_COLLECTIONS)]


def test_a_full_collection_waits_while_a_large_statement_is_at_work() -> None:
    before, busy = gc.get_threshold(), True
    collector = Collector(lambda: busy)
    collector.start()
    try:
        made = Cyclic()
        garbage = weakref.ref(made)
        gc.collect(1)  # it has grown old when it becomes garbage
        del made
        kept = _many_objects()
        time.sleep(0.6)  # two looks of the thread; that nothing happens can only be watched
        assert garbage() is not None
        busy = False
        assert _wait_for(lambda: garbage() is None)
        assert kept
    finally:
        collector.close()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_a_tree_taken_apart_needs_no_collection() -> None:
    gc.disable()
    try:
        statement = parse_one("SELECT a + 1, (SELECT max(b) FROM u) FROM t WHERE a IN (1, 2) OR b = 'x'")
        assert isinstance(statement, Pull)
        nodes = [weakref.ref(node) for node in statement.select.walk()]
        assert len(nodes) > 10
        dismantle(statement.select)
        del statement
        assert [found for node in nodes if (found := node()) is not None] == []
    finally:
        gc.enable()
