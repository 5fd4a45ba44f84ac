"""Where readers begin whose source keeps its history for them alone."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from mvserver.compiler.plans import ErrorHandling
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.subscribers import Subscriber


def subscriber(name: str) -> Subscriber:
    target: Any = SimpleNamespace(query_id=name)
    return Subscriber(target, 1, {"start": "earliest"}, ErrorHandling.TERMINATE)


class Source:
    """Settles at ascending places; ``meanwhile`` happens while it does."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], None] = lambda: None
        self.settled = 0
        self.checked: list[Any] = []
        self.held = self
        self.health = SimpleNamespace(check_history=self.checked.append)

    def is_settled(self, position: Any) -> bool:
        return "lsn" in position

    def settle(self, position: Any, assign: Callable[[Any], None]) -> None:
        self.settled += 1
        self.meanwhile()
        assign({"lsn": self.settled})


def test_views_that_wait_begin_together_and_one_that_comes_meanwhile_after_them() -> None:
    source: Any = Source()
    state = RunningState(source, SimpleNamespace(), records_max=10)  # type: ignore[arg-type]
    first, second, late = subscriber("a"), subscriber("b"), subscriber("c")
    state.add(first)
    state.add(second)
    source.meanwhile = lambda: state.add(late)
    state.verify_new()
    assert (first.position, second.position, first.unverified) == ({"lsn": 1}, {"lsn": 1}, False)
    assert (late.position, late.unverified) == ({"start": "earliest"}, True)
    assert not state.joins(late, {"lsn": 1})
    source.meanwhile = lambda: None
    state.verify_new()
    assert (late.position, late.claimed, late.unverified) == ({"lsn": 2}, {"lsn": 2}, False)
    assert source.checked == [{"lsn": 1}, {"lsn": 1}, {"lsn": 2}]
