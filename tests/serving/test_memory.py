"""One query that needs all the memory: sorts go to disk, what cannot is refused, and others are answered.

DuckDB has no bound for one query (its ``operator_memory_limit`` holds for few of its operators): who comes just when
all is taken is refused too, with the same 53200, and nothing is lost or wrong.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mvserver.errors import SqlError
from mvserver.serving.engine.memory_watch import InUse, MemoryWatch
from tests.serving.world import World, rows_of

# 400,000 rows of 200 bytes, which a sort has to hold: more than the memory
SORTED = (
    "SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY md5(g::text)) AS n, repeat(md5(g::text), 6) AS t "
    "FROM generate_series(1, 400000) AS s(g)) AS x WHERE t <> ''"
)
HELD = "SELECT length(string_agg(repeat(md5(g::text), 20), ',')) FROM generate_series(1, 400000) AS s(g)"


@pytest.mark.parametrize(("greedy", "sqlstate"), [(SORTED, None), (HELD, "53200")], ids=["sorted", "held"])
def test_others_are_answered_or_refused_and_go_on(tmp_path: Path, greedy: str, sqlstate: str | None) -> None:
    world = World(tmp_path)
    own = world.service.snapshot()
    try:
        world.writer.execute("SET memory_limit = '60MB'")
        plan, ended = world.plan(greedy), threading.Event()
        outcome: list[object] = []

        def run() -> None:
            try:
                outcome.append(rows_of(own.run(plan, [])))
            except SqlError as error:
                outcome.append(error.sqlstate)
            finally:
                ended.set()

        thread = threading.Thread(target=run)
        thread.start()
        answered, refused = 0, set()
        while not ended.is_set():
            try:
                assert world.value("SELECT sum(visits) FROM visits") == 6
                answered += 1
            except SqlError as error:
                refused.add(error.sqlstate)
        thread.join(30)
        assert answered > 0
        assert refused <= {"53200"}
        assert outcome == [sqlstate or [(400_000,)]]
        world.writer.execute("INSERT INTO _state.visits VALUES ('./more', 1, 1, 1)")
        assert world.value("SELECT sum(visits) FROM visits") == 7
    finally:
        own.close()
        world.close()


# --- one query's share ----------------------------------------------------------------------------------------------

LIMIT = 80 * 2**20
ITEMS = (
    "SELECT array_length(array_agg(repeat(md5(g::text), 20)), 1) FROM generate_series(1, 400000) AS s(g)"  # some 300 MB
)
STREAMED = f"SELECT url, ({ITEMS}) AS n FROM visits, generate_series(1, 1000)"


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("limited"), query_memory_limit=LIMIT)
    yield made
    made.close()


@pytest.mark.parametrize("greedy", [ITEMS, STREAMED, HELD])
def test_a_query_that_takes_too_much_is_ended(limited: World, greedy: str) -> None:
    """Although there is enough for it; its memory comes back, and its session goes on."""
    measured = InUse(limited.database.cursor())
    before = measured() or 0  # the allocator's is the whole process's: other tests may have left some
    with pytest.raises(SqlError) as raised:
        limited.rows(greedy)
    assert raised.value.sqlstate == "53200"
    assert "more than 80 MiB" in (raised.value.detail or "")
    assert "query_memory_limit" in (raised.value.hint or "")
    deadline = time.monotonic() + 10
    in_use = measured()
    while in_use is None or in_use > before + LIMIT // 2:
        assert time.monotonic() < deadline, "the memory did not come back"
        time.sleep(0.01)
        in_use = measured()
    measured.close()
    assert limited.value("SELECT sum(visits) FROM visits") == 6


def test_what_goes_to_disk_is_no_part_of_it(limited: World) -> None:
    assert limited.value(SORTED) == 400_000


def test_the_others_and_the_merge_go_on(limited: World) -> None:
    own, ended = limited.service.snapshot(), threading.Event()
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(rows_of(own.run(limited.plan(ITEMS), [])))
        except SqlError as error:
            outcome.append(error.sqlstate)
        finally:
            ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    merged = 0
    while not ended.is_set():
        merged += 1
        limited.writer.execute(f"INSERT INTO _state.visits VALUES ('./merged{merged}', 1, 1, 1)")
        assert limited.value("SELECT count(*) FROM visits WHERE url LIKE './merged%'") == merged
    thread.join(10)
    own.close()
    assert outcome == ["53200"]
    assert merged > 0


def test_what_memory_grows_by_is_shared_out() -> None:
    in_use, stopped = [0], list[str]()
    watch = MemoryWatch(lambda: in_use[0], 100)
    try:
        one, other = watch.begin(lambda: stopped.append("one")), watch.begin(lambda: stopped.append("other"))
        in_use[0] = 150
        deadline = time.monotonic() + 10
        while one.taken < 75:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert (one.taken, other.taken, stopped) == (75, 75, [])
        other.end()
        in_use[0] = 200
        while not stopped:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert (one.over, other.over, set(stopped)) == (True, False, {"one"})
        other.check()
        with pytest.raises(SqlError):
            one.check()
    finally:
        watch.close()


def test_no_query_fills_the_disk(tmp_path: Path) -> None:
    """What may lie in the folder for sorts and joins is bounded; who needs more is refused, and gives it back."""
    world = World(tmp_path)
    try:
        world.writer.execute("SET memory_limit = '60MB'")
        world.writer.execute("SET max_temp_directory_size = '10MB'")
        with pytest.raises(SqlError) as raised:
            world.rows("SELECT repeat(md5(g::text), 5) AS v FROM generate_series(1, 500000) AS s(g) ORDER BY v")
        assert raised.value.sqlstate == "53200"
        assert sum(file.stat().st_size for file in (tmp_path / "spill").rglob("*") if file.is_file()) <= 10 * 2**20
        assert world.value("SELECT sum(visits) FROM visits") == 6
    finally:
        world.close()
