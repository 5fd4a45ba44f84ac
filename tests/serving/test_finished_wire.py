"""Clients of all protocols meet finished rows: what they read is never older than what they could know."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from mvserver import limits
from mvserver.serving.fast.finished_rows import KeptViews
from mvserver.streaming.watching.watched_views import WatchedViews
from tests.serving.kept import KeptView, until
from tests.serving.server import Client, PullServer
from tests.serving.world import VISITS_ID

_POINT = "SELECT visits, total FROM visits WHERE site = %s AND url = %s"
_RANGE = "SELECT site, url, visits, total FROM visits WHERE site >= %s AND site < %s"

Ask = Callable[[Client, str, tuple[Any, ...]], list[tuple[Any, ...]]]


def _simple(client: Client, text: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return psycopg.ClientCursor(client).execute(text, parameters).fetchall()


def _extended(client: Client, text: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return client.execute(text, parameters, prepare=False).fetchall()


def _prepared(client: Client, text: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return client.execute(text, parameters, prepare=True).fetchall()


def _binary(client: Client, text: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return client.execute(text, parameters, prepare=True, binary=True).fetchall()


_WAYS: tuple[Ask, ...] = (_simple, _extended, _prepared, _binary)


@pytest.fixture
def view(server: PullServer, caplog: pytest.LogCaptureFixture) -> Iterator[KeptView]:
    caplog.set_level(logging.DEBUG, "mvserver.serving.fast")  # why rows are not kept
    made = KeptView(server.world)
    yield made
    made.close()


def _warm(view: KeptView, client: Client, ask: Ask, text: str, parameters: tuple[Any, ...]) -> None:
    """Asks until the rows answer."""

    def answered() -> bool:
        before = view.finished.answered
        ask(client, text, parameters)
        return view.finished.answered > before

    until(answered)


@pytest.mark.parametrize("ask", _WAYS)
def test_rows_are_the_same_in_each_protocol_and_format(server: PullServer, view: KeptView, ask: Ask) -> None:
    records = [{"l": site, "k": url, "n": Decimal(site) / 4} for site in range(-2, 30) for url in ("a", "é''x")]
    view.fed.feed([*records, {"l": 3, "k": None}, {"l": 2**62, "k": "", "n": None}])
    asked = [(_POINT, (site, url)) for site in (-2, 7, 99, 2**62) for url in ("a", "é''x", "")]
    asked += [(_RANGE, (low, low + 6)) for low in (-3, 0, 28, 100)]
    with server.connect() as client:
        first = [sorted(ask(client, *each), key=repr) for each in asked]
        assert view.finished.answered == 0
        for text in (_POINT, _RANGE):
            _warm(view, client, ask, text, (1, "a") if text is _POINT else (0, 1))
        before = view.finished.answered
        for _ in range(2):  # the messages are made, and then kept
            assert [sorted(ask(client, *each), key=repr) for each in asked] == first
        assert view.finished.answered == before + 2 * len(asked)
        view.fed.feed([{"l": 7, "k": "a", "n": Decimal(100)}])
        _warm(view, client, ask, _POINT, (1, "a"))
        assert ask(client, _POINT, (7, "a")) == [(2, Decimal("101.75"))]
    assert first[3] == [(1, Decimal("1.75"))]
    sites = [(site, url, 1) for site in range(6) for url in ("a", "é''x")]
    assert sorted([row[:3] for row in first[-3]], key=repr) == sorted([*sites, (3, None, 1)], key=repr)


def test_readers_see_what_was_committed_and_never_go_back(server: PullServer, view: KeptView) -> None:
    """Of each answer there is a state, not older than the reader's last one nor than the last that was committed when
    it asked, that all of its rows are of."""
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    keys = [(site, url) for site in range(6) for url in ("a", "b", None)]
    counts: Counter[tuple[int, str | None]] = Counter()
    history: list[dict[tuple[int, str | None], int]] = [{}]  # by number of the commit
    begun = done = 0
    stop = threading.Event()
    failures: list[BaseException] = []
    checked = Counter[str]()

    def agrees(state: dict[Any, int], key: tuple[int, str] | None, low: int, rows: list[tuple[Any, ...]]) -> bool:
        if key is not None:
            return [row[0] for row in rows] == ([state[key]] if key in state else [])
        shown = {found: count for found, count in state.items() if low <= found[0] < low + 3}
        return {(site, url): visits for site, url, visits, _ in rows} == shown and len(rows) == len(shown)

    def read(number: int) -> None:
        chance, seen = random.Random(seed + number), 0
        ask = _WAYS[number % len(_WAYS)]
        try:
            with server.connect() as client:
                while not stop.is_set():
                    key, low = (chance.choice(keys) if chance.random() < 0.5 else None), chance.randrange(6)
                    if key is not None and key[1] is None:
                        continue
                    oldest = max(seen, done)
                    rows = ask(client, _POINT, key) if key is not None else ask(client, _RANGE, (low, low + 3))
                    states = range(oldest, begun + 1)
                    of = next((at for at in states if agrees(history[at], key, low, rows)), None)
                    assert of is not None, (key, low, rows, [history[at] for at in states])
                    seen = of
                    checked[ask.__name__] += 1
                    stop.wait(0.001)  # the writer's turn of the interpreter
        except BaseException as error:  # noqa: BLE001 - raised below, by the test's own thread
            failures.append(error)
            stop.set()

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    chance = random.Random(seed)
    ends = time.monotonic() + 60
    commits = answered = 0
    while not stop.is_set() and time.monotonic() < ends and (commits < 25 or answered < 150):
        batch = [{"l": site, "k": url} for site, url in chance.choices(keys, k=chance.randrange(1, 6))]
        counts.update((each["l"], each["k"]) for each in batch)
        history.append(dict(counts))
        begun += 1
        view.fed.feed(batch)
        done += 1
        commits += 1
        enough = answered + 4
        until(lambda: stop.is_set() or not view.finished.status() or view.finished.answered > enough)  # noqa: B023
        answered = view.finished.answered
    stop.set()
    for thread in threads:
        thread.join(20)
    if failures:
        raise failures[0]
    print(f"{commits} commits, {answered} of {checked.total()} answers from finished rows, {dict(checked)}")
    assert answered > 100
    assert not view.finished._refused
    assert commits >= 20


def test_a_pinned_snapshot_stays_as_it_was(server: PullServer, view: KeptView) -> None:
    view.fed.feed([{"l": 1, "k": "a", "n": Decimal(1)}])
    with server.connect() as pinned, server.connect() as other:
        for client in (pinned, other):
            _warm(view, client, _prepared, _POINT, (1, "a"))
        pinned.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert _prepared(pinned, _POINT, (1, "a")) == [(1, Decimal(1))]
        view.fed.feed([{"l": 1, "k": "a", "n": Decimal(1)}])
        _warm(view, other, _prepared, _POINT, (1, "a"))
        before = view.finished.answered
        assert _prepared(pinned, _POINT, (1, "a")) == [(1, Decimal(1))]
        assert view.finished.answered == before
        assert _prepared(other, _POINT, (1, "a")) == [(2, Decimal(2))]
        pinned.execute("COMMIT")
        assert _prepared(pinned, _POINT, (1, "a")) == [(2, Decimal(2))]


def test_a_failed_transaction_and_a_cursor_are_as_ever(server: PullServer, view: KeptView) -> None:
    view.fed.feed([{"l": 1, "k": "a"}, {"l": 1, "k": "b"}])
    with server.connect() as client:
        _warm(view, client, _prepared, _RANGE, (1, 2))
        with client.transaction():
            client.execute("DECLARE c CURSOR FOR SELECT url, visits FROM visits WHERE site >= 1 AND site < 2")
            view.fed.feed([{"l": 1, "k": "a"}])
            assert sorted(client.execute("FETCH ALL FROM c").fetchall()) == [("a", 1), ("b", 1)]
        client.execute("BEGIN")
        with pytest.raises(psycopg.errors.UndefinedTable):
            client.execute("SELECT 1 FROM nowhere")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            _prepared(client, _RANGE, (1, 2))
        client.execute("ROLLBACK")
        assert sorted(_prepared(client, _RANGE, (1, 2)))[0][:3] == (1, "a", 2)


def test_a_stale_plan_of_a_changed_catalog_is_not_used(server: PullServer, view: KeptView) -> None:
    """What a role may read is judged anew, as for any other plan."""
    view.fed.feed([{"l": 1, "k": "a"}])
    with server.connect() as client:
        _warm(view, client, _prepared, _POINT, (1, "a"))
        current = server.world.catalog.current
        server.world.catalog.change(relations=tuple(r for r in current.relations if r.name != "visits"))
        with pytest.raises(psycopg.errors.UndefinedTable):
            _prepared(client, _POINT, (1, "a"))


def test_a_view_is_kept_once_it_is_asked_for_often(
    server: PullServer, view: KeptView, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    ordinary = KeptViews._is_often

    def counted(self: KeptViews, name: str) -> bool:
        asked.append(1)
        return ordinary(self, name)

    monkeypatch.setattr(KeptViews, "_is_often", counted)
    monkeypatch.setattr(limits, "FINISHED_ROWS_ASKED_WITHIN_S", 60.0)
    view.fed.feed([{"l": 1, "k": "a"}])
    with server.connect() as client:
        while len(asked) < limits.FINISHED_ROWS_ASKED_MIN - 2:  # one that goes to a worker may ask twice
            _prepared(client, _POINT, (1, "a"))
        assert len(asked) < limits.FINISHED_ROWS_ASKED_MIN
        assert not view.finished.status()
        assert view.finished._thread is None
        _warm(view, client, _prepared, _POINT, (1, "a"))
    assert view.finished.status()[0].state == "ready"


@pytest.mark.parametrize("ask", _WAYS)
def test_look_ups_of_the_past_in_each_protocol(server: PullServer, view: KeptView, ask: Ask) -> None:
    """By a token and by a time, as texts and as parameters; DuckDB's answers come first."""
    views = {VISITS_ID: replace(view.target, view_id=VISITS_ID)}
    watched = WatchedViews(view.writer, 3600.0, views.get, lambda view_id: "visits")
    watch = watched.open(VISITS_ID, since=None, snapshot=False)
    try:
        places: list[tuple[Any, ...]] = []
        for number in range(1, 6):
            view.fed.feed([{"l": site, "k": "a", "n": Decimal(number)} for site in range(number)])
            (history,) = view.writer.histories.open_ones.values()
            extent = history.extent
            places.append((f"{extent.incarnation}-{extent.last_seq:x}", extent.last_at, extent.last_at.isoformat()))
        text = "SELECT site, visits, total FROM visits AS OF %s WHERE site = %s AND url = %s"
        asked = [(place, site, "a") for moment in places for place in moment for site in (0, 3, 9)]
        with server.connect() as client:
            first = [ask(client, text, each) for each in asked]
            assert view.finished.answered == 0
            for _, each in zip(range(3), asked, strict=False):
                _warm(view, client, ask, text, each)
            before = view.finished.answered
            assert [ask(client, text, each) for each in asked] == first
            assert view.finished.answered == before + len(asked)
            with pytest.raises(psycopg.errors.InvalidParameterValue):
                ask(client, text, ("2999-01-01 00:00:00+00", 0, "a"))
        assert first[0] == [(0, 1, Decimal(1))]
        assert first[-3] == [(0, 5, Decimal(15))]
        assert first[1] == []  # it came later
    finally:
        watch.close()
