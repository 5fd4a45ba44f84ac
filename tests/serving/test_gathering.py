"""Look-ups answered together give each what it gets alone."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from catalog.model import Column
from mvserver import limits
from mvserver.serving.api import PlanRuns, PullPlan
from mvserver.serving.engine.snapshot import DuckSnapshot
from spark_sinks.duckdb.layout import Finishing
from tests.serving.server import PullServer
from tests.serving.world import VISITS_ID, World, key_visits, keyed_layout, make_keyed_state, rows_of

_ONE = "SELECT visits, mean FROM visits WHERE site = $1 AND url = 'u2'"
_TWO = "SELECT *, visits + 1 AS more FROM visits AS v WHERE url = $2 AND (v.site = $1) AND visits >= 0"


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    key_visits(world)
    yield world
    world.close()


def _alone(world: World, plan: PullPlan, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The oracle: the view, read by DuckDB."""
    through_the_view = replace(plan, direct=None, arrow_types=(), runs=PlanRuns(few=False))
    return rows_of(world.snapshot.run(through_the_view, parameters))


@pytest.mark.parametrize(
    ("text", "gathered"),
    [
        (_ONE, True),
        ("SELECT visits FROM visits WHERE site = $1 AND url = $2", True),
        ("SELECT visits FROM visits WHERE site = 1 AND url = 'u2'", False),  # nothing to tell them apart by
        ("SELECT visits FROM visits WHERE site = $1 AND url = $2 ORDER BY 1", False),
        ("SELECT visits FROM visits WHERE site = $1 AND url = $2 LIMIT 0", False),
        ("SELECT DISTINCT visits FROM visits WHERE site = $1 AND url = $2", False),
        ("SELECT visits + $3 AS x FROM visits WHERE site = $1 AND url = $2", False),
        ("SELECT visits FROM visits WHERE site = $1 AND url = $2 AND visits > $3", False),
        ("SELECT visits FROM visits WHERE site = $1 AND url = $2 AND visits = $1", False),
        ("SELECT visits FROM visits WHERE site = $1", False),  # a range
        ("SELECT seen FROM visits WHERE site = $1 AND url = $2", False),  # Python has not all times
        ("SELECT now() > seen AS past FROM visits WHERE site = $1 AND url = $2", False),
        ("SELECT count(*) FROM visits WHERE site = $1 AND url = $2", False),
    ],
)
def test_look_ups_by_the_key_alone_are_gathered(keyed: World, text: str, gathered: bool) -> None:
    assert (keyed.plan(text).together is not None) == gathered


def test_random_look_ups_equal_the_view(keyed: World) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    look_ups = keyed.service.gathering
    one, two = keyed.plan(_ONE), keyed.plan(_TWO.replace("*", "site, url, mean"))
    for count in (2, 3, 8, 9, 32, 33, 70):
        asked = []
        for _ in range(count):
            site = chance.randrange(-2, 410)
            plan, parameters = chance.choice([(one, (site,)), (two, (site, f"u{chance.randrange(6)}"))])
            found = look_ups.ask(plan, parameters)
            assert found is not None
            asked.append(found)
        assert look_ups.waiting
        look_ups.answer()
        assert not look_ups.waiting
        left = 0
        for each in asked:
            result, expected = look_ups.result(each), _alone(keyed, each.plan, each.parameters)
            if result is not None:
                assert rows_of(result) == expected, (each.plan.sql, each.parameters)
            elif expected:  # the last of an odd number has nobody to go with
                left += 1
        assert left <= 3


def test_one_that_is_alone_runs_by_itself(keyed: World) -> None:
    plan, look_ups = keyed.plan(_ONE), keyed.service.gathering
    asked = look_ups.ask(plan, (1,))
    assert asked is not None
    look_ups.answer()
    assert look_ups.result(asked) is None
    assert look_ups.ask(plan, (1,)) is None  # and the next ones do not wait for others
    assert any(look_ups.ask(plan, (n,)) for n in range(100))


def test_values_that_python_compares_in_another_way_are_not_gathered(keyed: World) -> None:
    plan = keyed.plan(_ONE)
    assert all(keyed.service.gathering.ask(plan, (value,)) is None for value in (None, True, 1.0, b"1"))


def test_state_made_anew_leaves_each_to_itself(keyed: World) -> None:
    plan, look_ups = keyed.plan(_ONE), keyed.service.gathering
    make_keyed_state(keyed, 2, 100)
    asked = [look_ups.ask(plan, (n,)) for n in range(4)]
    look_ups.answer()
    for number, each in enumerate(asked):
        assert each is not None
        assert look_ups.result(each) is None
        assert rows_of(keyed.snapshot.run(plan, (number,))) == _alone(keyed, plan, (number,))


# --- over the wire ----------------------------------------------------------------------------------------------------
@pytest.fixture
def server(tmp_path: Path) -> Iterator[PullServer]:
    with PullServer(tmp_path) as made:
        key_visits(made.world)
        yield made


@pytest.fixture
def gathered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values each gathered statement had."""
    seen: list[int] = []
    ordinary = DuckSnapshot.rows_at_once

    def watched(self: DuckSnapshot, plan: Any, text: str, parameters: list[Any]) -> Any:
        seen.append(len(parameters))
        return ordinary(self, plan, text, parameters)

    monkeypatch.setattr(DuckSnapshot, "rows_at_once", watched)
    monkeypatch.setattr(limits, "AT_ONCE_S_MAX", 100.0)
    monkeypatch.setattr(limits, "EVENT_LOOP_HELD_S_MAX", 20.0)
    return seen


def _many(server: PullServer, clients: int, work: Any) -> None:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            with server.connect() as client:
                work(client, random.Random(number))
        except BaseException as error:  # noqa: BLE001 - raised below, by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if failures:
        raise failures[0]


def test_clients_beside_each_other_get_their_own_rows(server: PullServer, gathered: list[int]) -> None:
    (expected,) = [rows_of(server.world.snapshot.run(server.world.plan("SELECT site, url, visits FROM visits"), ()))]
    known = {(site, url): visits for site, url, visits in expected}

    def work(client: Any, chance: random.Random) -> None:
        cursor = psycopg.ClientCursor(client) if chance.random() < 0.5 else client.cursor()
        for _ in range(60):
            key = (chance.randrange(-3, 410), f"u{chance.randrange(6)}")
            row = cursor.execute("SELECT visits FROM visits WHERE site = %s AND url = %s", key).fetchone()
            assert (row[0] if row else None) == known.get(key), key

    _many(server, 8, work)
    assert gathered


def test_an_error_is_that_of_its_own_look_up(server: PullServer, gathered: list[int]) -> None:
    def work(client: Any, chance: random.Random) -> None:
        for _ in range(30):
            site = chance.randrange(400)
            zero = (site * 5 + 2) % 7 == 3
            try:
                query = "SELECT 10 / (visits - 3) FROM visits WHERE site = %s AND url = 'u2'"
                row = client.execute(query, (site,), prepare=True).fetchone()
                assert not zero
                assert row is not None
            except psycopg.errors.DivisionByZero:
                assert zero

    _many(server, 6, work)


def test_a_commit_is_seen_by_the_next_look_up(server: PullServer, gathered: list[int]) -> None:
    one_writer = threading.Lock()

    def work(client: Any, chance: random.Random) -> None:
        mine = chance.randrange(400)
        for number in range(25):
            with one_writer:
                server.world.writer.execute(f'UPDATE _state."{VISITS_ID}_1" SET n = n + 1 WHERE k0 = {mine}')
                after = server.world.writer.execute(
                    f"SELECT n FROM _state.\"{VISITS_ID}_1\" WHERE k0 = {mine} AND k1 = 'u2'"
                ).fetchall()
            query = "SELECT visits FROM visits WHERE site = %s AND url = 'u2'"
            row = client.execute(query, (mine,), prepare=True).fetchone()
            assert row is not None
            assert row[0] >= after[0][0], number

    _many(server, 4, work)


# --- while it waits ---------------------------------------------------------------------------------------------------
class Gate:
    """Holds back the answers of look-ups that wait for others, until it is opened."""

    def __init__(self, server: PullServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self._server = server
        self._answer = server.wire._answer_gathered
        self.waiting = threading.Event()
        monkeypatch.setattr(server.wire, "_answer_gathered", self.waiting.set)

    def open(self) -> None:
        self._server.loop.call_soon_threadsafe(self._answer)


def _waiting_client(server: PullServer, gate: Gate, answers: list[Any]) -> tuple[Any, threading.Thread]:
    client = server.connect()
    query = "SELECT visits FROM visits WHERE site = %s AND url = 'u2'"

    def ask() -> None:
        try:
            # the first ones are planned, and those after one that was alone do not wait
            answers.extend(client.execute(query, (3,), prepare=True).fetchone() for _ in range(200))
        except psycopg.Error as error:
            answers.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert gate.waiting.wait(30)
    return client, thread


def test_a_cancel_reaches_one_that_waits(
    server: PullServer, gathered: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, answers = Gate(server, monkeypatch), []
    client, thread = _waiting_client(server, gate, answers)
    client.cancel_safe(timeout=30)
    gate.open()
    thread.join(30)
    assert isinstance(answers[-1], psycopg.errors.QueryCanceled), answers[-3:]
    assert client.execute("SELECT 1").fetchone() == (1,)
    client.close()


def test_a_client_that_hangs_up_while_it_waits_leaves_nothing(
    server: PullServer, gathered: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, answers = Gate(server, monkeypatch), []
    client, thread = _waiting_client(server, gate, answers)
    with socket.socket(fileno=os.dup(client.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)
    thread.join(30)
    gate.open()
    deadline = time.monotonic() + 30
    while server.wire.connections and time.monotonic() < deadline:
        time.sleep(0.01)  # bounded: until the server has taken notice
    assert server.wire.connections == 0


@pytest.mark.parametrize(
    ("kind", "made", "value", "same"),
    [
        ("DATE", "'infinity'::DATE", "infinity", "2024-05-01"),
        ("DOUBLE", "9007199254740993::DOUBLE", 9007199254740993, 7),
    ],
)
def test_a_key_that_python_writes_in_another_way_is_found(
    keyed: World, kind: str, made: str, value: int | str, same: int | str
) -> None:
    for table in (f'_state."{VISITS_ID}_1"', f'_state."{VISITS_ID}_1_nulls"'):
        columns = f"k0 {kind}, k1 VARCHAR, n BIGINT, m0 DOUBLE, m1 TIMESTAMP, PRIMARY KEY (k0, k1)"
        keyed.writer.execute(f"DROP TABLE {table}")
        keyed.writer.execute(f"CREATE TABLE {table} ({columns})")
    keyed.writer.execute(f"INSERT INTO _state.\"{VISITS_ID}_1\" VALUES ({made}, 'u2', 5, 0, NULL)")
    keyed.writer.execute(
        f'CREATE OR REPLACE VIEW _views."{VISITS_ID}" AS SELECT k0 AS site, k1 AS url, n AS visits, m0 AS mean, '
        f'm1 AS seen FROM _state."{VISITS_ID}_1"'
    )
    layout = keyed_layout(1)
    stored = (("k0", kind), *layout.stored[1:])
    columns = (("site", "k0"), ("url", "k1"), ("visits", "n"), ("mean", "m0"), ("seen", "m1"))
    finishing = Finishing(columns, tuple((name, name) for _, name in columns))
    keyed.layouts.change({VISITS_ID: replace(layout, stored=stored, finishing=finishing, nulls=None)})
    current = keyed.catalog.current
    visits = current.relations_by_id[VISITS_ID]
    declared = (Column("site", kind), *visits.columns[1:])
    others = (each for each in current.relations if each.id != VISITS_ID)
    keyed.catalog.change(relations=(replace(visits, columns=declared), *others))
    plan, look_ups = keyed.plan("SELECT visits FROM visits WHERE site = $1 AND url = 'u2'"), keyed.service.gathering
    asked = [look_ups.ask(plan, (each,)) for each in (value, same)]
    look_ups.answer()
    found = []
    for each in asked:
        result = None if each is None else look_ups.result(each)
        parameters = (value if each is asked[0] else same,)
        found.append(rows_of(result) if result is not None else rows_of(keyed.snapshot.run(plan, parameters)))
    assert found == [[(5,)], []]
