"""Collections of Python's cycles: begun by our thread, which looks at what is new, and rarely at all that stays."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable, Iterator

import pytest

from mvserver import limits
from mvserver.collector import Collector


class Cyclic:
    def __init__(self) -> None:
        self.self = self


def _wait_for(condition: Callable[[], bool]) -> bool:
    ends = time.monotonic() + 10
    while not condition() and time.monotonic() < ends:
        time.sleep(0.02)
    return condition()


def _many_objects() -> list[object]:
    """Enough of them that a collection is due."""
    return [[] for _ in range(9_000 * limits.COLLECT_AFTER_MIDDLE_COLLECTIONS)]


def _garbage_that_is_old() -> weakref.ref[Cyclic]:
    """Python's young collections have seen it while it was in use."""
    made = Cyclic()
    gc.collect(1)
    return weakref.ref(made)


@pytest.fixture
def busy() -> list[bool]:
    return [True]


@pytest.fixture
def collector(busy: list[bool]) -> Iterator[Collector]:
    before = gc.get_threshold()
    made = Collector(lambda: busy[0])
    made.start()
    yield made
    made.close()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("collector")
def test_what_is_new_is_looked_at_once_more(busy: list[bool]) -> None:
    busy[0] = False
    garbage = _garbage_that_is_old()
    kept = _many_objects()
    assert _wait_for(lambda: garbage() is None)
    assert kept


@pytest.mark.usefixtures("collector")
def test_what_is_new_while_a_large_statement_is_at_work_is_not_looked_at() -> None:
    staying = gc.get_freeze_count()
    garbage = _garbage_that_is_old()
    kept = _many_objects()
    assert _wait_for(lambda: gc.get_freeze_count() >= staying + len(kept) // 2)
    assert garbage() is not None


@pytest.mark.usefixtures("collector")
def test_what_stays_is_not_looked_at_again() -> None:
    staying = gc.get_freeze_count()
    kept = _many_objects()
    assert _wait_for(lambda: gc.get_freeze_count() >= staying + len(kept) // 2)
    assert len(gc.get_objects()) < len(kept)


@pytest.mark.usefixtures("collector")
def test_all_is_looked_at_when_much_has_come_to_stay_and_no_large_statement_is_at_work(
    busy: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mvserver.collector._SHARE", 1_000_000)
    monkeypatch.setattr(limits, "COLLECT_ALL_AFTER_OBJECTS", 1_000)
    garbage = _garbage_that_is_old()
    gc.freeze()
    kept = _many_objects()
    staying = gc.get_freeze_count()
    assert _wait_for(lambda: gc.get_freeze_count() >= staying + len(kept) // 2)
    time.sleep(0.3)  # some looks of the thread; that nothing happens can only be watched
    assert garbage() is not None
    busy[0] = False
    assert _wait_for(lambda: garbage() is None)


@pytest.mark.usefixtures("collector")
def test_all_is_looked_at_anyway_when_very_much_has_come_to_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COLLECT_ALL_ANYWAY_AFTER_OBJECTS", 1_000)
    garbage = _garbage_that_is_old()
    gc.freeze()
    kept = _many_objects()
    assert _wait_for(lambda: garbage() is None)
    assert kept


@pytest.mark.parametrize("is_busy", [False, True])
def test_no_object_is_taken_into_our_hands(
    collector: Collector, busy: list[bool], monkeypatch: pytest.MonkeyPatch, is_busy: bool
) -> None:
    """Another thread's ``tuple(generator)`` fails with a SystemError if anybody else holds the tuple while it grows."""

    def held(*_: object, **__: object) -> None:
        raise AssertionError("objects that may be under construction")

    for name in ("get_objects", "get_referrers", "get_referents"):
        monkeypatch.setattr(gc, name, held)
    busy[0] = is_busy
    collector._collect_new()
    collector._collect_all()


def test_a_tuple_that_is_being_made_fails_where_it_is_held() -> None:
    """Why: this is what Python does. The day on which it does not, the rule above can go."""
    seen: list[object] = []

    def rows() -> Iterator[list[int]]:
        for n in range(500):
            if n == 100:
                gc.collect(1)
                seen.extend(each for each in gc.get_objects(generation=2) if type(each) is tuple)
            yield [n]

    with pytest.raises(SystemError):
        tuple(rows())
