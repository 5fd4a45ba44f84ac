"""Look-ups of the past beside the rows that are kept finished. The oracle is DuckDB, or what the view showed then."""

from __future__ import annotations

import datetime as dt
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mvserver import limits
from mvserver.serving.api import PullPlan
from mvserver.serving.fast.past_rows import place_of
from mvserver.streaming.watching.watched_views import WatchedViews
from spark_sinks.duckdb.history.histories import UNWATCHED
from spark_sinks.duckdb.history.history import Bounds, History
from tests.serving.kept import MEMORY, KeptView, until
from tests.serving.world import SCOPE, VISITS_ID, World

_POINT = "SELECT site, url, visits, total FROM visits AS OF {} WHERE site = {} AND url = {}"


class Past:
    """A view that is watched and kept finished; ``places`` are moments and tokens, with the rows by their keys then."""

    def __init__(self, folder: Path, seed: int, memory: int = MEMORY) -> None:
        print("seed", seed)
        self.chance = random.Random(seed)
        self.world = World(folder, finished_rows_memory=memory)
        self.view = KeptView(self.world)
        self.finished = self.view.finished
        views = {VISITS_ID: replace(self.view.target, view_id=VISITS_ID)}
        self.views = WatchedViews(self.view.writer, 3600.0, views.get, lambda view_id: "visits")
        self.watch = self.views.open(VISITS_ID, since=None, snapshot=False)
        self.places: list[tuple[str, str, dict[tuple[int, str], Any]]] = []
        self.point = self.world.plan(_POINT.format("$3", "$1", "$2"))

    @property
    def history(self) -> History:
        (found,) = self.view.writer.histories.open_ones.values()
        return found

    def feed(self, records: int = 3) -> None:
        chance = self.chance
        self.view.fed.feed(
            [
                {"l": chance.randrange(4), "k": chance.choice("ab"), "n": Decimal(chance.randrange(9))}
                for _ in range(records)
            ]
        )
        extent = self.history.extent
        rows = self.world.rows("SELECT site, url, visits, total FROM visits")
        token = f"{extent.incarnation}-{extent.last_seq:x}"
        self.places.append((extent.last_at.isoformat(), token, {row[:2]: row for row in rows}))

    def keep(self) -> None:
        """Asks until the past is kept and has all changes."""
        token = self.places[-1][1]
        until(lambda: self.found(0, "a", token) is not None)

    def found(self, site: int, url: str, place: Any, plan: PullPlan | None = None) -> list[tuple[Any, ...]] | None:
        return self.view.found(plan or self.point, [site, url, place])

    def close(self) -> None:
        self.watch.close()
        self.view.close()
        self.world.close()


@pytest.fixture
def past(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Past]:
    made = Past(tmp_path, 7)
    yield made
    made.close()


def _agrees(past: Past, places: list[tuple[str, str, dict[tuple[int, str], Any]]]) -> None:
    for at, token, rows in places:
        for site in range(4):
            for url in "ab":
                expected = [rows[site, url]] if (site, url) in rows else []
                for place in (at, token, dt.datetime.fromisoformat(at)):
                    assert past.found(site, url, place) == expected, (site, url, place)


def test_each_key_at_each_place(past: Past) -> None:
    for _ in range(12):
        past.feed()
    past.keep()
    assert past.found(0, "a", f"{past.history.extent.incarnation}-0") == []
    _agrees(past, past.places)
    for _ in range(5):  # it follows
        past.feed()
    past.keep()
    _agrees(past, past.places)
    status = past.finished.status()[0]
    assert status.bytes > 0


def test_it_agrees_with_duckdb_between_changes(past: Past) -> None:
    for _ in range(10):
        past.feed()
    past.keep()
    extent = past.history.extent
    times = [dt.datetime.fromisoformat(at) for at, _, _ in past.places]
    moments = [at + dt.timedelta(microseconds=step) for at in times for step in (-1, 0, 1)]
    tokens = [f"{extent.incarnation}-{seq:x}" for seq in range(extent.last_seq + 1)]  # also within a commit
    asked = 0
    for place in [*(moment.isoformat() for moment in moments if moment >= extent.since), *tokens]:
        for site, url in ((0, "a"), (3, "b")):
            assert past.found(site, url, place) == past.view.of_duckdb(past.point, [site, url, place]), place
        asked += 1
    assert asked > 30


def test_texts_of_one_form_and_the_setting_are_answered(past: Past) -> None:
    for _ in range(4):
        past.feed()
    past.keep()
    at, token, rows = past.places[1]
    for text, scope in (
        (_POINT.format(f"'{token}'", "1", "'a'"), SCOPE),
        (_POINT.format(f"'{at}'", "1", "'a'"), SCOPE),
        ("SELECT site, url, visits, total FROM visits WHERE site = 1 AND url = 'a'", replace(SCOPE, as_of=token)),
        ("SELECT v.* FROM visits AS OF '" + token + "' v WHERE v.url = 'a' AND 1 = v.site", SCOPE),
    ):
        plan = past.world.plan(text, scope=scope)
        assert past.finished.knows(plan)
        assert past.view.found(plan) == [rows[1, "a"]]
        known = past.world.service.known(text, scope)
        if known is not None:
            assert past.view.found(*known) == [rows[1, "a"]]


def test_conditions_of_other_columns_hold_for_the_row_as_it_was(past: Past) -> None:
    for _ in range(8):
        past.feed()
    past.keep()
    plan = past.world.plan(
        "SELECT site, url, visits FROM visits AS OF $4 WHERE site = $1 AND url = $2 AND visits > $3 AND visits <= 5"
    )
    answered = 0
    for at, token, rows in past.places:
        for (site, url), row in rows.items():
            for least in range(-1, 6):
                expected = [row[:3]] if least < row[2] <= 5 else []
                for place in (at, token):
                    assert past.view.found(plan, [site, url, least, place]) == expected, (site, url, least, place)
                    answered += 1
    assert answered > 100
    at, token, rows = past.places[2]
    for scope, text in (
        (replace(SCOPE, as_of=token), "SELECT visits FROM visits WHERE site = {} AND url = 'a' AND visits > {}"),
        (SCOPE, "SELECT visits FROM visits AS OF '" + at + "' WHERE site = {} AND url = 'a' AND visits > {}"),
    ):
        past.world.plan(text.format(1, 0), scope=scope)
        for site, least in ((1, -1), (1, 2), (2, 0), (3, 1)):
            row = rows.get((site, "a"))
            each = text.format(site, least)
            expected = [(row[2],)] if row is not None and row[2] > least else []
            assert past.view.found(past.world.plan(each, scope=scope)) == expected
            known = past.world.service.known(each, scope)
            if known is not None:
                assert past.view.found(*known) == expected


def test_what_only_duckdb_can_tell(past: Past) -> None:
    for _ in range(4):
        past.feed()
    past.keep()
    extent = past.history.extent
    future = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    before = extent.since - dt.timedelta(microseconds=1)
    for place in (
        None, "", "now", "yesterday", "2024-02-30 00:00:00", "0123456789abcdef-1", future.isoformat(),
        before.isoformat(), f"{extent.incarnation}-{extent.last_seq + 1:x}", "infinity", 5,
    ):  # fmt: skip
        assert past.found(0, "a", place) is None, place
    assert past.world.plan("SELECT * FROM visits AS OF $1 WHERE site = 1").key_read is None
    assert past.world.plan("SELECT * FROM visits AS OF $1 WHERE site IN (1, 2) AND url = 'a'").key_read is None
    assert (
        past.world.plan("SELECT * FROM visits AS OF $1 WHERE site = 1 AND url = 'a' AND total > 1").key_read is not None
    )
    summed = past.world.plan("SELECT visits FROM visits AS OF $1 WHERE site = 0 AND url = 'a' AND total > $2")
    assert past.view.found(summed, [past.places[0][1], Decimal(0)]) is None
    assert past.world.plan("SELECT * FROM \"visits$changes\" WHERE site = 1 AND url = 'a'").key_read is None
    elsewhere = past.world.plan(_POINT.format("$3", "$1", "$2"), scope=replace(SCOPE, time_zone="Asia/Tokyo"))
    without_zone = past.places[0][0].removesuffix("+00:00")
    assert past.found(0, "a", without_zone, elsewhere) is None
    assert past.found(0, "a", without_zone) is not None


def test_places_of_texts() -> None:
    epoch = 1_704_067_200_000_000
    for text, place in (
        ("2024-01-01 00:00:00+00", epoch),
        (" 2024-01-01T00:00:00Z ", epoch),
        ("2024-01-01 09:00:00.5+09:00", epoch + 500_000),
        ("2024-01-01 00:00:00", epoch),
        ("0123456789abcdef-1f", ("0123456789abcdef", 31)),
        ("2024-01-01", None),
        ("2024-01-01 24:00:00", None),
        ("2024-01-01 00:00:00 Europe/Paris", None),
    ):
        assert place_of(text, "UTC") == place, text


def test_what_is_trimmed_is_refused(past: Past) -> None:
    for _ in range(6):
        past.feed()
    past.keep()
    past.history.bounds = Bounds(3600.0, rows=6)
    past.feed()
    past.keep()
    first = past.history.extent.first_seq
    assert first > 1
    for at, token, _ in past.places:
        if int(token.rpartition("-")[2], 16) < first - 1:
            assert past.found(0, "a", token) is None
            assert past.found(0, "a", at) is None
    kept = [place for place in past.places if int(place[1].rpartition("-")[2], 16) >= first - 1]
    assert len(kept) >= 2
    _agrees(past, kept)


def test_a_commit_that_is_too_much_and_histories_that_end(past: Past) -> None:
    past.feed()
    past.feed()
    past.keep()
    past.history.bounds = Bounds(3600.0, rows=1)
    past.feed(8)  # its changes are not kept
    past.history.bounds = Bounds(3600.0)
    past.feed()
    past.keep()
    _agrees(past, past.places[2:])
    assert past.found(0, "a", past.places[0][1]) is None
    with past.view.writer.transaction():
        past.view.writer.histories.end_one(past.history, UNWATCHED)
    assert past.found(0, "a", past.places[-1][1]) is None
    past.views = WatchedViews(
        past.view.writer, 3600.0, {VISITS_ID: replace(past.view.target, view_id=VISITS_ID)}.get, lambda view_id: "v"
    )
    past.watch = past.views.open(VISITS_ID, since=None, snapshot=False)  # another incarnation
    old = past.places
    past.places = []
    past.feed()
    past.keep()
    assert past.found(0, "a", old[-1][1]) is None
    _agrees(past, past.places)


def test_without_room_duckdb_answers_and_the_rows_of_now_stay(tmp_path: Path) -> None:
    past = Past(tmp_path, 3, memory=20_000)
    try:
        for _ in range(60):
            past.feed(6)
        present = past.view.keep("SELECT visits FROM visits WHERE site = $1 AND url = $2", [0, "a"])
        for _ in range(2 * limits.FINISHED_ROWS_ASKED_MIN):
            assert past.found(0, "a", past.places[0][1]) is None
        until(lambda: f"{VISITS_ID}$past" in past.finished._refused)
        assert past.finished._budget.taken == past.finished.status()[0].bytes < 20_000
        assert past.view.found(present, [0, "a"]) is not None
    finally:
        past.close()


def test_memory_is_given_back(past: Past) -> None:
    for _ in range(20):
        past.feed()
    past.keep()
    now = past.finished._clock()
    past.finished._clock = lambda: now + 2 * limits.FINISHED_ROWS_IDLE_S
    with past.finished._condition:
        past.finished._let_idle_go()
    assert past.finished._budget.taken == 0


def test_look_ups_beside_commits_are_always_right(past: Past) -> None:
    """Threads ask for places that have passed while the view changes and its history is trimmed."""
    for _ in range(5):
        past.feed()
    past.keep()
    stop = threading.Event()
    wrong: list[Any] = []
    answered = [0, 0, 0]

    def ask(number: int) -> None:
        chance = random.Random(number)
        while not stop.is_set():
            at, token, rows = chance.choice(past.places[-8:])
            site, url = chance.randrange(4), chance.choice("ab")
            found = past.found(site, url, chance.choice([at, token]))
            if found is not None:
                answered[number] += 1
                if found != ([rows[site, url]] if (site, url) in rows else []):
                    wrong.append((at, token, site, url, found))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        past.history.bounds = Bounds(3600.0, rows=40)
        for _ in range(60):
            past.feed(4)
            past.keep()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert all(answered), answered
