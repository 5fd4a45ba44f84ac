"""Turns in DuckDB, views that are not there yet, and parameters that are compared with ANY."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mvserver.errors import SqlError
from mvserver.serving.api import PlanRequest
from mvserver.serving.engine.admission import Admission
from mvserver.sql.dialect import parse_pull
from tests.serving.world import SCOPE, VISITS_ID, World, rows_of


@pytest.fixture
def own(tmp_path: Path) -> Iterator[World]:
    """With one turn; its views may be taken away."""
    made = World(tmp_path, concurrency=1, why_missing=lambda view_id: CAUSE)
    yield made
    made.close()


CAUSE = "Its query 7 is FAILED: no such topic."
MANY = "SELECT g FROM generate_series(1, 100000) AS t(g)"


def test_a_result_that_is_not_read_holds_no_turn(own: World) -> None:
    service = own.service
    first, second = service.snapshot(), service.snapshot()
    plan = service.plan(PlanRequest(parse_pull(MANY), SCOPE))
    half_read = first.run(plan, ())
    next(half_read.batches)
    assert len(rows_of(second.run(plan, ()))) == 100_000
    assert sum(batch.num_rows for batch in half_read.batches) < 100_000
    first.close()
    second.close()


def test_whoever_waits_for_its_turn_can_be_interrupted(own: World) -> None:
    service = own.service
    snapshot = service.snapshot()
    plan = service.plan(PlanRequest(parse_pull("SELECT count(*) FROM visits"), SCOPE))
    raised: list[SqlError] = []
    began = threading.Event()

    def run() -> None:
        began.set()
        try:
            snapshot.run(plan, ())
        except SqlError as error:
            raised.append(error)

    with service._admission.taken(lambda: False):
        thread = threading.Thread(target=run)
        thread.start()
        assert began.wait(5)
        while thread.is_alive():
            snapshot.interrupt()  # repeated, as a session's clock does
            thread.join(0.05)
    assert [error.sqlstate for error in raised] == ["57014"]
    assert rows_of(snapshot.run(plan, ())) == [(3,)]
    snapshot.close()


def test_no_more_than_the_width_at_a_time() -> None:
    turns = Admission(2)
    inside, most, lock = 0, 0, threading.Lock()
    together = threading.Barrier(2, timeout=5)

    def work() -> None:
        nonlocal inside, most
        with turns.taken(lambda: False):
            with lock:
                inside += 1
                most = max(most, inside)
            together.wait()
            with lock:
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert most == 2


def test_a_view_without_content_is_named_with_its_cause(own: World) -> None:
    service = own.service
    snapshot = service.snapshot()
    before = service.plan(PlanRequest(parse_pull("SELECT url FROM visits"), SCOPE))
    own.writer.execute(f'DROP VIEW _views."{VISITS_ID}"')
    for attempt in (
        lambda: service.plan(PlanRequest(parse_pull("SELECT visits FROM visits"), SCOPE)),
        lambda: rows_of(snapshot.run(before, ())),
    ):
        with pytest.raises(SqlError) as raised:
            attempt()
        error = raised.value
        assert (error.sqlstate, error.message) == ("55000", 'materialized view "visits" has no content yet')
        assert error.detail == CAUSE
        assert VISITS_ID not in f"{error} {error.detail}"
    own.writer.execute(f'CREATE VIEW _views."{VISITS_ID}" AS SELECT * FROM _state.visits')
    own.writer.execute("ALTER TABLE _state.visits RENAME TO gone")  # its state, not the view itself
    with pytest.raises(SqlError) as raised:
        rows_of(snapshot.run(before, ()))
    assert raised.value.sqlstate in ("42P01", "55000")
    snapshot.close()


def test_a_view_that_was_dropped_between_plan_and_run(own: World) -> None:
    plan = own.plan("SELECT url FROM visits")
    own.catalog.change(relations=())
    own.writer.execute(f'DROP VIEW _views."{VISITS_ID}"')
    with pytest.raises(SqlError) as raised:
        own.snapshot.run(plan, ())
    assert (raised.value.sqlstate, VISITS_ID in raised.value.message) == ("42P01", False)


@pytest.mark.parametrize(
    ("text", "oid", "value", "rows"),
    [
        ("SELECT url FROM visits WHERE url = ANY($1)", 1009, ["./a", "x"], [("./a",)]),
        ("SELECT url FROM visits WHERE visits = ANY($1)", 1016, [3], [("./home",)]),
        ("SELECT url FROM visits WHERE visits <> ALL($1) AND total = $2", 1016, [1, 2], [("./home",)]),
        ("SELECT i4 FROM all_types WHERE f8 = ANY($1)", 1022, [2.5], [(2,)]),
        ("SELECT url FROM visits WHERE url = ANY($1)", 1009, [], []),
    ],
)
def test_any_takes_an_array_of_what_it_is_compared_with(
    world: World, text: str, oid: int, value: list[object], rows: list[tuple[object, ...]]
) -> None:
    plan = world.plan(text, (0,) * (2 if "$2" in text else 1))
    assert plan.parameter_oids[0] == oid
    assert plan.kind != "point"
    parameters = [value, 10] if "$2" in text else [value]
    assert rows_of(world.snapshot.run(plan, parameters)) == rows


def test_the_cached_plan_of_any_is_no_look_up_either(world: World) -> None:
    assert world.plan("SELECT url FROM visits WHERE url = ANY(ARRAY['./a'])").kind != "point"
    assert world.plan("SELECT url FROM visits WHERE url = $1").kind == "point"
