"""Who asks the same shares one evaluation; what each is given is what it would find itself."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mvserver import limits
from mvserver.dialect.functions import volatile
from mvserver.errors import SqlError
from mvserver.front import PlainRows, Result
from mvserver.serving.api import NOBODY, PlanRequest, PullPlan, PullScope
from mvserver.serving.engine.snapshot import DuckSnapshot
from mvserver.serving.fast.shared import _key
from mvserver.sql import pull_functions
from mvserver.sql.dialect import parse_pull
from spark_sinks.duckdb.ledger.commits import Commits
from tests.serving.server import Client, PullServer
from tests.serving.world import SCOPE, World, rows_of

_TOTAL = "SELECT count(*), sum(visits) FROM visits"
_LONG = "SELECT count(*) FROM visits, generate_series(1, 3000000) AS a(x), generate_series(1, 3000000) AS b(y)"
_MANY = "SELECT url, g FROM visits, generate_series(1, 30000) AS t(g)"  # 90,000 rows


class Shared:
    """A server whose writer says when it commits; evaluations are counted, and can be held back."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commits = Commits()
        self.server = PullServer(folder, version=lambda view_ids: self.commits.version(view_ids))
        self.begun = 0
        self.gate = threading.Event()
        self.gate.set()
        self.entrance = threading.Event()
        self.entrance.set()
        self.failure: SqlError | None = None
        self._lock = threading.Lock()
        ordinary = DuckSnapshot.evaluate

        def evaluate(snapshot: DuckSnapshot, plan: PullPlan, parameters: Any) -> Any:
            with self._lock:
                self.begun += 1
                failure = self.failure
            assert self.entrance.wait(60)
            found = ordinary(snapshot, plan, parameters)
            assert self.gate.wait(60)
            if failure is not None:
                raise failure
            return found

        monkeypatch.setattr(DuckSnapshot, "evaluate", evaluate)
        # without a run on the event loop
        monkeypatch.setattr(limits, "AT_ONCE_S_MAX", -1.0)

    @property
    def world(self) -> World:
        return self.server.world

    @property
    def sharing(self) -> Any:
        return self.world.service.sharing

    def write(self, statement: str) -> None:
        self.world.writer.execute("BEGIN")
        self.world.writer.execute(statement)
        with self.commits.making(None):
            self.world.writer.execute("COMMIT")

    def seats(self) -> int:
        return sum(len(each._seats) for each in list(self.sharing._evaluations.values()))

    def wait_for_seats(self, number: int) -> None:
        _until(lambda: self.seats() == number)


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)  # bounded: until it holds


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shared]:
    made = Shared(tmp_path, monkeypatch)
    with made.server:
        yield made
        made.gate.set()
        made.entrance.set()


class Asking:
    """A client that asks in a thread of its own."""

    def __init__(self, shared: Shared, text: str = _TOTAL, **options: Any) -> None:
        self.client: Client = shared.server.connect(**options)
        self.answer: Any = None
        self.thread = threading.Thread(target=self._ask, args=(text,))
        self.thread.start()

    def _ask(self, text: str) -> None:
        try:
            self.answer = self.client.execute(text).fetchall()
        except psycopg.Error as error:
            self.answer = error

    def get(self) -> Any:
        self.thread.join(30)
        assert not self.thread.is_alive()
        return self.answer

    def close(self) -> None:
        self.thread.join(30)
        self.client.close()


# --- what may be shared -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "steady"),
    [
        (_TOTAL, True),
        ("SELECT url, visits FROM visits ORDER BY 2 LIMIT 3", True),
        ("SELECT date_trunc('day', ts) FROM all_types", True),
        ("SELECT count(*) FROM visits WHERE visits > $1", True),
        ("SELECT v.url FROM visits v JOIN all_types a ON v.visits = a.i4", True),
        ("SELECT visits FROM visits WHERE url = 'x'", False),  # a look-up is its own matter
        ("SELECT 1", False),  # reads nothing
        *(
            (f"SELECT {value} AS x, count(*) FROM visits", False)
            for value in (
                "now()",
                "CURRENT_DATE",
                "CURRENT_TIMESTAMP",
                "LOCALTIMESTAMP",
                "CURRENT_TIME",
                "clock_timestamp()",
                "statement_timestamp()",
                "transaction_timestamp()",
                "timeofday()",
                "random()",
                "gen_random_uuid()",
                "pg_backend_pid()",
                "current_setting('work_mem')",
                "set_config('work_mem', '1MB', false)",
                "age(timestamp '2020-01-01')",
            )
        ),
        ("SELECT url FROM visits TABLESAMPLE BERNOULLI (50)", False),
        ("SELECT count(*) FROM visits, pg_class", False),
        ("SELECT count(*) FROM pg_class", False),
    ],
)
def test_only_what_changes_with_its_views_is_shared(world: World, text: str, steady: bool) -> None:
    assert world.plan(text).steady == steady


def test_every_function_of_the_engine_that_changes_by_itself_is_known(world: World) -> None:
    """Or not to be called. The text is DuckDB's, in which they are looked for."""
    rows = world.writer.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability <> 'CONSISTENT' "
        "AND function_type IN ('scalar', 'aggregate', 'table')"
    ).fetchall()
    assert len(rows) > 20
    called = pull_functions.table().keys() - _BY_THE_ZONE
    assert not {name for (name,) in rows if name in called and not volatile.changes(f"SELECT {name}()")}


_BY_THE_ZONE = {"date_part", "date_trunc", "generate_series", "make_timestamptz", "timezone"}
"""They change with the session's time zone alone, as DuckDB says since 2.0.1; sessions of one zone share answers."""


def test_a_streams_rows_are_read_by_each(world: World) -> None:
    scope = PullScope("postgres", ("public",), "postgres", reads_streams=True)
    assert not world.plan("SELECT count(*) FROM src", scope=scope).steady


# --- what is kept -----------------------------------------------------------------------------------------------------
def test_a_result_is_kept_until_its_views_change(shared: Shared) -> None:
    with shared.server.connect() as one, shared.server.connect() as other:
        assert one.execute(_TOTAL).fetchall() == [(3, 6)]
        assert other.execute(f"  {_TOTAL};").fetchall() == [(3, 6)]
        assert other.execute(_TOTAL, prepare=True).fetchall() == [(3, 6)]
        assert shared.begun == 1
        shared.write("INSERT INTO _state.visits VALUES ('./b', 4, 1, 1)")
        assert other.execute(_TOTAL).fetchall() == [(4, 10)]
        assert one.execute(_TOTAL).fetchall() == [(4, 10)]
        assert shared.begun == 2


def test_a_kept_result_of_few_rows_is_answered_on_the_event_loop(shared: Shared) -> None:
    with shared.server.connect() as client:
        client.execute(_TOTAL).fetchall()
        (plan,) = shared.world.service._plans.all()
        assert plan.runs.kept
        work = shared.server.wire.workers.submit

        def none(*_: Any) -> Any:
            raise AssertionError

        shared.server.wire.workers.submit = none  # type: ignore[method-assign]
        try:
            assert client.execute(_TOTAL).fetchall() == [(3, 6)]
        finally:
            shared.server.wire.workers.submit = work  # type: ignore[method-assign]


def test_values_time_zones_and_roles(shared: Shared) -> None:
    text = "SELECT count(*) FROM visits WHERE visits >= %s"
    with shared.server.connect() as client:
        assert client.execute(text, (2,)).fetchall() == [(2,)]
        assert client.execute(text, (3,)).fetchall() == [(1,)]
        assert client.execute(text, (2,)).fetchall() == [(2,)]
        assert shared.begun == 2
        zoned = "SELECT min(tz)::text FROM all_types"
        assert client.execute(zoned).fetchall() == [("2020-01-02 03:04:05+00",)]
        client.execute("SET TimeZone = 'Asia/Tokyo'")
        assert client.execute(zoned).fetchall() == [("2020-01-02 12:04:05+09",)]


@pytest.mark.parametrize(
    ("value", "same"), [(1, True), (1, 1.0), (0.0, -0.0), ("1", 1), (Decimal("1.0"), Decimal("1.00"))]
)
def test_values_that_python_takes_for_equal_are_told_apart(world: World, value: Any, same: Any) -> None:
    plan = world.plan("SELECT count(*) FROM visits WHERE visits = $1")
    assert _key(plan, (value,)) != _key(plan, (same,))
    assert _key(plan, (object(),)) is None


def test_rows_are_the_same_for_all_types_kept_or_not(shared: Shared) -> None:
    text = "SELECT * FROM all_types ORDER BY i4"
    with shared.server.connect() as client:
        first = client.execute(text).fetchall()
        assert client.execute(text).fetchall() == first
        assert client.execute(text, binary=True).fetchall() == client.execute(text + " LIMIT 5", binary=True).fetchall()
        assert shared.begun == 2


def test_what_is_kept_is_bounded(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    sharing = shared.sharing
    plan = shared.world.plan("SELECT count(*) FROM visits WHERE visits > $1")

    def keep(numbers: range) -> None:
        for number in numbers:
            rows = PlainRows([(number, "x" * 10)], plan.arrow_types)
            sharing.keep(plan, (number,), sharing.version(plan), Result("SELECT ", plan.fields, rows=rows))
            assert 0 < sharing.kept_bytes <= limits.SHARED_RESULTS_BYTES_MAX
        assert sharing.kept_bytes == sum(kept.bytes for kept in sharing._kept.values())

    keep(range(50))
    assert all(sharing.kept(plan, (number,)) is not None for number in range(50))
    shared.write("INSERT INTO _state.visits VALUES ('./b', 4, 1, 1)")
    keep(range(100, 160))
    assert len(sharing._kept) == 60  # what nobody asks for again has gone with its commit
    assert sharing.kept(plan, (1,)) is None
    monkeypatch.setattr(limits, "SHARED_RESULTS_BYTES_MAX", 2_000)
    keep(range(200, 230))
    assert 0 < len(sharing._kept) < 20
    assert sharing.kept(plan, (229,)) is not None
    monkeypatch.setattr(limits, "SHARED_RESULT_BYTES_MAX", 100)
    keep(range(300, 301))
    assert sharing.kept(plan, (300,)) is None


def test_a_pinned_snapshot_is_read_by_itself(shared: Shared) -> None:
    with shared.server.connect() as client:
        client.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert client.execute(_TOTAL).fetchall() == [(3, 6)]
        shared.write("INSERT INTO _state.visits VALUES ('./b', 4, 1, 1)")
        with shared.server.connect() as other:
            assert other.execute(_TOTAL).fetchall() == [(4, 10)]
            assert other.execute(_TOTAL).fetchall() == [(4, 10)]
        assert client.execute(_TOTAL).fetchall() == [(3, 6)]
        client.execute("COMMIT")
        assert client.execute(_TOTAL).fetchall() == [(4, 10)]
        assert shared.begun == 1


def test_a_commit_that_is_being_made_is_not_waited_for(shared: Shared) -> None:
    with shared.server.connect() as client:
        assert client.execute(_TOTAL).fetchall() == [(3, 6)]
        shared.world.writer.execute("BEGIN")
        shared.world.writer.execute("INSERT INTO _state.visits VALUES ('./b', 4, 1, 1)")
        with shared.commits.making(None):
            assert client.execute(_TOTAL).fetchall() == [(3, 6)]
            shared.world.writer.execute("COMMIT")  # seen by others before its writer says so
            assert client.execute(_TOTAL).fetchall() == [(4, 10)]
        assert client.execute(_TOTAL).fetchall() == [(4, 10)]
        assert shared.begun == 2


# --- one evaluation ---------------------------------------------------------------------------------------------------
def test_those_who_ask_meanwhile_wait_for_it(shared: Shared) -> None:
    shared.gate.clear()
    asking = [Asking(shared) for _ in range(8)]
    shared.wait_for_seats(8)
    shared.gate.set()
    assert [each.get() for each in asking] == [[(3, 6)]] * 8
    assert shared.begun == 1
    assert not shared.sharing._evaluations
    for each in asking:
        each.close()


def test_who_asks_after_a_commit_does_not_share_what_began_before(shared: Shared) -> None:
    shared.gate.clear()
    early = Asking(shared)
    shared.wait_for_seats(1)
    _until(lambda: shared.begun == 1)
    shared.write("INSERT INTO _state.visits VALUES ('./b', 4, 1, 1)")
    late = [Asking(shared), Asking(shared)]
    shared.wait_for_seats(2)  # the late ones' evaluation has taken the place of the early one's
    shared.gate.set()
    assert [each.get() for each in late] == [[(4, 10)]] * 2
    assert early.get() in ([(3, 6)], [(4, 10)])
    assert shared.begun == 2
    again = Asking(shared)
    assert again.get() == [(4, 10)]
    assert shared.begun == 2
    for each in (early, *late, again):
        each.close()


@pytest.mark.parametrize("who", [0, 1])
def test_a_cancel_ends_the_waiting_of_one(shared: Shared, who: int) -> None:
    """The first has begun the evaluation, with a cursor of its own."""
    shared.gate.clear()
    asking = []
    for number in (1, 2, 3):
        asking.append(Asking(shared))
        shared.wait_for_seats(number)
    asking[who].client.cancel_safe(timeout=30)
    assert isinstance(asking[who].get(), psycopg.errors.QueryCanceled)
    assert shared.seats() == 2
    shared.gate.set()
    assert [each.get() for at, each in enumerate(asking) if at != who] == [[(3, 6)]] * 2
    assert shared.begun == 1
    assert asking[who].client.execute(_TOTAL).fetchall() == [(3, 6)]
    assert asking[who].client.execute("SELECT 1").fetchall() == [(1,)]
    for each in asking:
        each.close()


def test_each_has_its_own_time_out(shared: Shared) -> None:
    shared.gate.clear()
    patient = Asking(shared)
    shared.wait_for_seats(1)
    hasty = Asking(shared, options="-c statement_timeout=200ms")
    answer = hasty.get()
    assert isinstance(answer, psycopg.errors.QueryCanceled)
    assert "statement timeout" in str(answer)
    shared.gate.set()
    assert patient.get() == [(3, 6)]
    for each in (patient, hasty):
        each.close()


def test_a_client_that_hangs_up_leaves_the_others_their_answer(shared: Shared) -> None:
    shared.gate.clear()
    first = Asking(shared)
    shared.wait_for_seats(1)
    second = Asking(shared)
    shared.wait_for_seats(2)
    with socket.socket(fileno=os.dup(first.client.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)
    shared.wait_for_seats(1)
    shared.gate.set()
    assert second.get() == [(3, 6)]
    assert shared.begun == 1
    _until(lambda: shared.server.wire.connections == 1)
    for each in (first, second):
        each.close()


def test_the_last_who_leaves_ends_it(shared: Shared) -> None:
    asking = [Asking(shared, _LONG), Asking(shared, _LONG)]
    shared.wait_for_seats(2)
    began = time.monotonic()
    for each in asking:
        each.client.cancel_safe(timeout=30)
        assert isinstance(each.get(), psycopg.errors.QueryCanceled)
    assert time.monotonic() - began < 20
    _until(lambda: not shared.sharing._evaluations and shared.world.service.left == 0)
    for each in asking:
        assert each.client.execute("SELECT 1").fetchall() == [(1,)]
        each.close()


def test_what_goes_wrong_is_found_out_by_each(shared: Shared) -> None:
    shared.gate.clear()
    shared.failure = SqlError("53200", "out of memory")
    first = Asking(shared)
    shared.wait_for_seats(1)
    _until(lambda: shared.begun == 1)
    shared.failure = None
    others = [Asking(shared), Asking(shared)]
    shared.wait_for_seats(3)
    shared.gate.set()
    assert isinstance(first.get(), psycopg.errors.OutOfMemory)
    assert [each.get() for each in others] == [[(3, 6)]] * 2
    assert first.client.execute(_TOTAL).fetchall() == [(3, 6)]
    for each in (first, *others):
        each.close()


def test_an_error_of_the_query_is_that_of_all(shared: Shared) -> None:
    text = "SELECT sum(1 / (visits - 1)) FROM visits"
    shared.gate.clear()
    asking = [Asking(shared, text) for _ in range(3)]
    shared.gate.set()
    assert all(isinstance(each.get(), psycopg.errors.DivisionByZero) for each in asking)
    for each in asking:
        each.close()


def test_a_large_result_is_read_by_each(shared: Shared) -> None:
    shared.entrance.clear()
    asking = [Asking(shared, _MANY) for _ in range(3)]
    shared.wait_for_seats(3)
    shared.entrance.set()
    answers = [sorted(each.get(), key=repr) for each in asking]
    assert len(answers[0]) == 90_000
    assert answers[1] == answers[0]
    assert answers[2] == answers[0]
    assert asking[0].client.execute("SELECT 1").fetchall() == [(1,)]
    assert len(asking[0].client.execute(_MANY).fetchall()) == 90_000
    begun = shared.begun
    assert len(asking[1].client.execute(_MANY).fetchall()) == 90_000  # it is known to be large
    assert shared.begun == begun
    for each in asking:
        each.close()


def test_a_large_result_whose_first_asker_has_left(shared: Shared) -> None:
    shared.entrance.clear()
    first = Asking(shared, _MANY)
    shared.wait_for_seats(1)
    second = Asking(shared, _MANY)
    shared.wait_for_seats(2)
    first.client.cancel_safe(timeout=30)
    assert isinstance(first.get(), psycopg.errors.QueryCanceled)
    shared.entrance.set()
    assert len(second.get()) == 90_000
    _until(lambda: not shared.world.service._memory._queries)
    for each in (first, second):
        each.close()


def test_a_seat_given_up_leaves_nothing(shared: Shared) -> None:
    service = shared.world.service
    plan = service.plan(PlanRequest(parse_pull(_MANY), SCOPE))
    seat = service.sharing.seat(plan, (), service.snapshot, NOBODY)
    assert seat is not None
    _until(lambda: seat._evaluation.outcome is not None)
    seat.give_up()
    assert not service._memory._queries
    assert rows_of(seat.snapshot.run(service.plan(PlanRequest(parse_pull("SELECT 1 AS x"), SCOPE)), ())) == [(1,)]
    seat.snapshot.close()


# --- beside a writer --------------------------------------------------------------------------------------------------
def test_random_readers_beside_a_writer(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer is that of one commit: none older than the last one before the question, nor than the session's
    last answer."""
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    monkeypatch.setattr(limits, "AT_ONCE_S_MAX", 0.002 if seed % 2 else -1.0)
    shared.write("UPDATE _state.visits SET visits = 0, total = 0")
    committed = 0
    stop = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        nonlocal committed
        chance = random.Random(seed)
        for number in range(1, 150):
            shared.write(f"UPDATE _state.visits SET visits = {number}, total = {number}")
            committed = number
            stop.wait(chance.choice((0.0, 0.002, 0.01)))
        stop.set()

    def read(number: int) -> None:
        chance = random.Random(seed + number)
        last = 0
        try:
            with shared.server.connect() as client:
                while not stop.is_set():
                    least = max(last, committed)
                    prepare = chance.random() < 0.5
                    rows = client.execute(
                        chance.choice((
                            "SELECT min(visits), max(visits), min(total), max(total) FROM visits",
                            "SELECT min(visits), max(total), min(total), max(visits) FROM visits",
                        )),
                        prepare=prepare,
                    ).fetchall()  # fmt: skip
                    assert len(set(rows[0])) == 1, rows
                    assert rows[0][0] >= least, (rows, least)
                    last = rows[0][0]
        except BaseException as error:  # noqa: BLE001 - raised below, by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(6)]
    writer = threading.Thread(target=write)
    for thread in (*threads, writer):
        thread.start()
    for thread in (*threads, writer):
        thread.join(60)
    if failures:
        raise failures[0]
    assert committed == 149
    assert shared.begun > 0


# --- versions ---------------------------------------------------------------------------------------------------------
def test_a_version_is_that_of_the_rows_asked_for() -> None:
    commits = Commits()
    both, one, other = (commits.version(ids) for ids in (["a", "b"], ["a"], ["b"]))
    with commits.making({"a"}):
        assert commits.version(["a"]) is None
        assert commits.version(["a", "b"]) is None
        assert commits.version(["b"]) == other
    assert commits.version(["a"]) not in (one, None)
    assert commits.version(["a", "b"]) not in (both, None)
    with pytest.raises(ValueError), commits.making(None):  # noqa: PT012 - whatever fails
        assert commits.version(["b"]) is None
        raise ValueError
    assert commits.version(["b"]) not in (other, None)
