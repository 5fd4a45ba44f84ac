"""The page of locks is complete, and the watch finds what is against its order."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests import lock_order
from tests.lock_order import Named, Rule, Watch

RULES = {"outer": Rule(1, waits=True), "inner": Rule(2, waits=False)}


@pytest.fixture
def watch() -> Watch:
    return Watch(RULES)


@pytest.mark.slow
def test_the_page_names_all_locks_and_no_other() -> None:
    assert set(lock_order.rules()) == lock_order.made_in_source()


def test_locks_in_the_order_are_well(watch: Watch) -> None:
    outer, inner = (Named(threading.RLock(), name, watch) for name in RULES)
    with outer, outer, inner, outer:
        pass
    assert watch.violations == set()
    assert watch.held() == []


def test_locks_against_the_order_are_noted(watch: Watch) -> None:
    outer, inner = (Named(threading.Lock(), name, watch) for name in RULES)
    with inner, outer:
        pass
    assert watch.violations == {"outer under inner"}


def test_two_of_one_name_and_unknown_locks_are_noted(watch: Watch) -> None:
    one, two, new = (Named(threading.Lock(), name, watch) for name in ("inner", "inner", "new"))
    with one, two:
        pass
    with new, one:
        pass
    assert watch.violations == {"inner under inner", "inner under new"}


def test_who_gives_up_may_go_against_the_order(watch: Watch) -> None:
    outer, inner = (Named(threading.Lock(), name, watch) for name in RULES)
    with inner:
        assert outer.acquire(timeout=1)
        outer.release()
        assert outer.acquire(blocking=False)
        outer.release()
    assert watch.violations == set()


def test_a_condition_lets_go_of_its_lock_while_it_waits(watch: Watch) -> None:
    condition = threading.Condition(Named(threading.RLock(), "inner", watch))  # type: ignore[arg-type]
    with condition:
        condition.wait(timeout=0.01)
        assert [each.name for each in watch.held()] == ["inner"]
    assert watch.held() == []


@pytest.fixture
def installed(watch: Watch) -> Iterator[Watch]:
    end = lock_order.install(watch)
    yield watch
    end()


def test_locks_of_the_server_are_named_and_others_are_not(installed: Watch) -> None:
    from mvserver.session.large_texts import LargeTexts

    texts = LargeTexts()
    assert isinstance(texts._parsing, Named)
    assert texts._parsing.name == "mvserver.session.large_texts.LargeTexts._parsing"
    assert not isinstance(threading.Lock(), Named)


def test_a_thread_joined_under_a_lock_is_noted(installed: Watch) -> None:
    outer, inner = (Named(threading.Lock(), name, installed) for name in RULES)
    thread = threading.Thread(target=lambda: None)
    thread.start()
    with outer:
        thread.join()
    assert installed.violations == set()
    with inner:
        thread.join()
    assert installed.violations == {"a thread is joined under inner"}
