"""Running queries: streaming, open results, pinned transactions, interrupts and time limits."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from mvserver import limits
from mvserver.errors import SqlError
from tests.serving.world import World, rows_of

LONG = "SELECT sum(a.g * b.g) FROM generate_series(1, 1000000) AS a(g), generate_series(1, 1000000) AS b(g)"
MANY = "SELECT g FROM generate_series(1, 1000000) AS t(g)"


def test_rows_come_in_bounded_chunks_without_waiting_for_all(world: World) -> None:
    result = world.snapshot.run(world.plan(MANY), [])
    started = time.perf_counter()
    first = next(result.batches)
    assert 0 < first.num_rows <= limits.RESULT_CHUNK_ROWS
    assert time.perf_counter() - started < 1.0
    result.close()
    result.close()
    assert world.value("SELECT 1") == 1


def test_a_whole_large_result_is_complete(world: World) -> None:
    result = world.snapshot.run(world.plan(MANY), [])
    assert sum(batch.num_rows for batch in result.batches) == 1_000_000
    assert result.tag == "SELECT "


def test_an_open_result_does_not_block_its_cursor(world: World) -> None:
    first = world.snapshot.run(world.plan("SELECT g FROM generate_series(1, 30000) AS t(g)"), [])
    begun = next(first.batches).num_rows
    assert world.value("SELECT 2") == 2
    rest = sum(batch.num_rows for batch in first.batches)
    assert begun + rest == 30_000


def test_what_is_too_large_to_be_read_aside_is_an_error_not_a_short_result(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SPOOLED_RESULT_BYTES_MAX", 100_000)
    first = world.snapshot.run(world.plan(MANY), [])
    next(first.batches)
    with pytest.raises(SqlError) as caught:
        world.value("SELECT 2")
    assert caught.value.sqlstate == "53400"
    with pytest.raises(SqlError):
        next(first.batches)
    assert world.value("SELECT 2") == 2


def test_a_look_up_leaves_its_cursor_free_for_a_streamed_query(world: World) -> None:
    snapshot = world.service.snapshot()
    look_up = world.plan("SELECT visits FROM visits WHERE url = $1")
    assert look_up.kind == "point"
    for _ in range(3):
        assert rows_of(snapshot.run(look_up, ["./home"])) == [(3,)]
        assert rows_of(
            snapshot.run(world.plan("SELECT count(*) FROM visits WHERE url = ANY($1)", (1009,)), [["./a"]])
        ) == [(1,)]
    snapshot.close()


def test_each_statement_sees_a_new_state_and_a_pinned_one_the_same(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        count = world.plan("SELECT count(*) FROM visits")
        pinned = world.service.snapshot()
        pinned.begin()
        assert rows_of(pinned.run(count, [])) == [(3,)]
        world.writer.execute("INSERT INTO _state.visits VALUES ('./new', 1, 1, 1)")
        assert rows_of(pinned.run(count, [])) == [(3,)]
        assert rows_of(world.snapshot.run(count, [])) == [(4,)]
        pinned.end()
        assert rows_of(pinned.run(count, [])) == [(4,)]
        pinned.close()
        pinned.close()
    finally:
        world.close()


def test_an_open_result_ends_with_its_transaction(world: World) -> None:
    snapshot = world.service.snapshot()
    snapshot.begin()
    result = snapshot.run(world.plan(MANY), [])
    next(result.batches)
    snapshot.end()
    with pytest.raises(SqlError) as caught:
        next(result.batches)
    assert caught.value.sqlstate == "34000"
    snapshot.close()


@pytest.mark.parametrize("text", [LONG, "SELECT pg_sleep(60)"])
def test_an_interrupt_ends_a_statement_within_a_second(world: World, text: str) -> None:
    snapshot = world.service.snapshot()
    asked: list[float] = []

    def interrupt() -> None:
        asked.append(time.monotonic())
        snapshot.interrupt()

    timer = threading.Timer(0.2, interrupt)
    timer.start()
    with pytest.raises(SqlError) as caught:
        rows_of(snapshot.run(world.plan(text), []))
    assert time.monotonic() - asked[0] < 1.0
    assert (caught.value.sqlstate, caught.value.message) == ("57014", "canceling statement due to user request")
    assert rows_of(snapshot.run(world.plan("SELECT 1"), [])) == [(1,)]
    snapshot.close()


@pytest.mark.parametrize("text", [LONG, "SELECT pg_sleep(60)"])
def test_a_time_limit_ends_a_statement(world: World, text: str) -> None:
    started = time.monotonic()
    with pytest.raises(SqlError) as caught:
        rows_of(world.snapshot.run(world.plan(text), [], timeout_s=0.2))
    assert time.monotonic() - started < 1.2
    assert (caught.value.sqlstate, caught.value.message) == ("57014", "canceling statement due to statement timeout")
    assert world.value("SELECT 1") == 1


def test_sleep_waits_and_answers(world: World) -> None:
    assert world.rows("SELECT pg_sleep(0.01)") == [("",)]
    assert world.rows("SELECT pg_catalog.pg_sleep($1)", [0.0]) == [("",)]


def test_too_little_memory_is_53200(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        world.writer.execute("SET memory_limit = '20MB'")
        with pytest.raises(SqlError) as caught:
            world.rows("SELECT array_agg(g ORDER BY g) FROM generate_series(1, 20000000) AS t(g)")
        assert caught.value.sqlstate == "53200"
        assert world.value("SELECT 1") == 1
    finally:
        world.close()


def test_many_threads_with_a_snapshot_each(world: World) -> None:
    failures: list[BaseException] = []

    def reader(number: int) -> None:
        snapshot = world.service.snapshot()
        try:
            for _ in range(20):
                plan = world.plan(f"SELECT visits + {number} FROM visits WHERE url = './home'")
                assert rows_of(snapshot.run(plan, [])) == [(3 + number,)]
        except BaseException as error:  # noqa: BLE001 - told to the main thread
            failures.append(error)
        finally:
            snapshot.close()

    threads = [threading.Thread(target=reader, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []


def test_live_relations_are_filled_for_each_run_and_join_with_views(tmp_path: Path) -> None:
    calls: list[int] = []

    def queries() -> pa.Table:
        calls.append(1)
        return pa.table({"view": ["./home"], "rows_in": pa.array([len(calls)], pa.int64())})

    world = World(tmp_path, {"queries": queries})
    try:
        plan = world.plan("SELECT rows_in FROM mv_catalog.queries")
        first = rows_of(world.snapshot.run(plan, []))
        second = rows_of(world.snapshot.run(plan, []))
        assert second[0][0] > first[0][0], "rows are asked for anew"
        joined = world.rows(
            "SELECT v.url, v.visits FROM visits v JOIN mv_catalog.queries q ON q.view = v.url WHERE q.rows_in > 0"
        )
        assert joined == [("./home", 3)]
        assert world.rows(
            "SELECT c.relname, c.relkind, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class c "
            "JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = 'mv_catalog'::regnamespace "
            "ORDER BY a.attnum"
        ) == [("queries", "v", "view", "text"), ("queries", "v", "rows_in", "bigint")]
        with pytest.raises(SqlError) as caught:
            world.plan("SELECT * FROM mv_catalog.nosuch")
        assert caught.value.sqlstate == "42P01"
    finally:
        world.close()


def test_an_interrupt_that_comes_too_late_does_not_hurt_the_next_statement(world: World) -> None:
    snapshot = world.service.snapshot()
    for text in ("SELECT 1", "SELECT count(*) FROM visits", "SELECT visits FROM visits WHERE url = './a'"):
        snapshot.interrupt()
        assert len(rows_of(snapshot.run(world.plan(text), []))) == 1
    snapshot.close()
    snapshot.interrupt()
