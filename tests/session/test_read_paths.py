"""The ways to answer a SELECT are tried in their order, and none waits on the event loop."""

from __future__ import annotations

from typing import Any

import pytest

from mvserver.errors import SqlError
from mvserver.front import Field, Postponed, Result
from mvserver.serving.api import PlanRuns, PullPlan
from mvserver.session.clock import StatementClock
from mvserver.session.reads.pulls import PullRunner
from mvserver.session.reads.read_paths import Gathered, Read, read_paths
from tests.session.fakes import World

_PLAN = PullPlan("SELECT 1", (Field("x", 23),), (), (), runs=PlanRuns(few=True))


class Path:
    def __init__(self, name: str, asked: list[str], answer: Any = None, *, may: bool = True) -> None:
        self.name, self._asked, self._answer, self._may = name, asked, answer, may

    def ready(self, plan: PullPlan) -> bool:
        return True

    def may(self, read: Read) -> bool:
        return self._may

    def answer(self, read: Read) -> Any:
        self._asked.append(self.name)
        return self._answer


def _runner(world: World, *paths: Path) -> PullRunner:
    session = world.open()
    runner = session._dispatch.pulls
    runner._paths = paths
    runner._ready = tuple(path.ready for path in paths)
    return runner


def _clock(world: World) -> StatementClock:
    return StatementClock(world.services.deadlines, None)


def test_the_first_that_answers_is_the_last_that_is_asked(world: World) -> None:
    asked: list[str] = []
    answer = Result("SELECT 1")
    runner = _runner(
        world, Path("no", asked, may=False), Path("left", asked), Path("answered", asked, answer), Path("late", asked)
    )
    assert runner.run(_PLAN, (), _clock(world)) is answer
    assert asked == ["left", "answered"]
    assert runner.run_at_once(_PLAN, (), _clock(world)) is answer
    assert asked == ["left", "answered"] * 2


def test_what_nobody_answers_on_the_event_loop_is_postponed(world: World) -> None:
    asked: list[str] = []
    runner = _runner(world, Path("one", asked), Path("two", asked))
    assert runner.run_at_once(_PLAN, (), _clock(world)) == Postponed()
    assert asked == ["one", "two"]


def test_what_waits_for_others_is_told_to_its_next_try(world: World) -> None:
    seen: list[Gathered | None] = []

    class Waits(Path):
        def answer(self, read: Read) -> Any:
            seen.append(read.gathered)
            return Gathered(None, read.clock) if read.gathered is None else None  # type: ignore[arg-type]

    runner = _runner(world, Waits("waits", []))
    first = runner.run_at_once(_PLAN, (), _clock(world))
    assert isinstance(first, Postponed)
    assert first.together is not None
    assert runner.run_at_once(_PLAN, (), _clock(world)) == Postponed()
    assert [found is None for found in seen] == [True, False]


def test_a_cancel_that_came_while_it_waited_is_its_answer(world: World) -> None:
    clock = _clock(world)
    runner = _runner(world, Path("one", []))
    runner._gathered = Gathered(None, clock)  # type: ignore[arg-type]
    clock.cancel()
    with pytest.raises(SqlError) as caught:
        runner.run_at_once(_PLAN, (), _clock(world))
    assert caught.value.sqlstate == "57014"


def test_their_order() -> None:
    world = World()
    state = world.open()._state
    names = [type(path).__name__ for path in read_paths(state, None)]  # type: ignore[arg-type]
    world.close()
    assert names == [
        "FinishedRowsPath", "KeptResultPath", "GatheredPath", "FewRowsPath", "SharedEvaluationPath", "OwnSnapshotPath",
    ]  # fmt: skip


@pytest.mark.parametrize("number", [4, 5])
def test_the_last_two_are_never_asked_on_the_event_loop(world: World, number: int) -> None:
    path = world.open()._dispatch.pulls._paths[number]
    assert not path.may(Read(_PLAN, (), _clock(world), at_once=True))
    assert not path.ready(_PLAN)


@pytest.mark.parametrize("text", ["DECLARE c CURSOR FOR SELECT a FROM v", "CREATE SCHEMA s", "COMMIT"])
def test_other_statements_do_not_run_on_the_event_loop(world: World, text: str) -> None:
    session = world.open()
    session.parse("p", text, ())
    session.bind("", "p", ())
    session.at_once = True
    assert session.execute("") == Postponed()
    session.at_once = False
