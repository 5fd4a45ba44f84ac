"""One query that needs all the memory: sorts go to disk, what cannot is refused, and others are answered.

DuckDB has no bound for one query (its ``operator_memory_limit`` holds for few of its operators): who comes just when
all is taken is refused too, with the same 53200, and nothing is lost or wrong.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from serving_world import World, rows_of

from mvserver.errors import SqlError

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
