"""The past of views in pull queries. The oracle is what the view showed when it was that time."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mvserver.errors import SqlError
from mvserver.serving.api import PlanRequest
from mvserver.sql.dialect import parse_pull
from mvserver.streaming.watching.watched_views import WatchedViews
from mvserver.types import oids
from spark_sinks.duckdb.history.histories import UNWATCHED
from spark_sinks.duckdb.history.history import Bounds, History
from tests.serving.kept import KeptView
from tests.serving.world import SCOPE, VISITS_ID, World, rows_of

CHANGES = 'SELECT mv_token, mv_epoch, mv_time, mv_op, site, url, visits, total FROM "visits$changes"'


class Past:
    """A view that is watched, and what it showed behind each commit."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.kept = KeptView(world)
        self.target = replace(self.kept.target, view_id=VISITS_ID)
        views = {VISITS_ID: self.kept.target}
        self.views = WatchedViews(self.kept.writer, 3600.0, views.get, lambda view_id: "visits")
        self.watch = self.views.open(VISITS_ID, since=None, snapshot=False)
        self.shown: list[tuple[dt.datetime, str, Counter[Any]]] = []

    @property
    def history(self) -> History:
        (found,) = self.kept.writer.histories.open_ones.values()
        return found

    def feed(self, rows: list[dict[str, Any]]) -> None:
        self.kept.fed.feed(rows)
        extent = self.history.extent
        token = f"{extent.incarnation}-{extent.last_seq:x}"
        self.shown.append((extent.last_at, token, Counter(self.world.rows("SELECT * FROM visits"))))


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    world = World(tmp_path)
    made = Past(world)
    yield made
    made.watch.close()
    made.kept.close()
    world.close()


def fed(past: Past, commits: int = 8) -> Past:
    chance = random.Random(5)
    for _ in range(commits):
        past.feed([{"l": chance.choice([1, 2, None]), "k": chance.choice("ab"), "n": None} for _ in range(3)])
    return past


def test_a_view_as_of_each_time_and_token(past: Past) -> None:
    for at, token, rows in fed(past).shown:
        assert Counter(past.world.rows(f"SELECT * FROM visits AS OF '{at.isoformat()}'")) == rows
        assert Counter(past.world.rows(f"SELECT v.* FROM public.visits AS OF '{token}' AS v")) == rows
        assert Counter(past.world.rows(f"SELECT * FROM visits AS OF '{at.isoformat()}'::timestamptz v")) == rows
        scope = replace(SCOPE, as_of=token)
        assert Counter(past.world.rows("SELECT * FROM visits", scope=scope)) == rows
        total = sum(row[2] * count for row, count in rows.items())
        assert past.world.value(f"SELECT sum(visits) FROM visits AS OF '{token}'") == total
    beginning = f"{past.history.extent.incarnation}-0"
    assert past.world.rows(f"SELECT * FROM visits AS OF '{beginning}'") == []


def test_two_moments_in_one_query(past: Past) -> None:
    (_, first, _), *_, (_, last, _) = fed(past).shown
    rows = past.world.rows(
        f"SELECT a.url, b.visits - a.visits FROM visits AS OF '{first}' a JOIN visits AS OF '{last}' b "
        "ON a.site = b.site AND a.url = b.url"
    )
    then, now = ({row[:2]: row[2] for row in each} for each in (past.shown[0][2], past.shown[-1][2]))
    assert Counter(rows) == Counter((key[1], now[key] - then[key]) for key in then if key[0] is not None)


def test_a_look_up_of_the_past(past: Past) -> None:
    at, _, rows = fed(past).shown[2]
    found = past.world.rows(f"SELECT visits FROM visits AS OF '{at.isoformat()}' WHERE site = 1 AND url = 'a'")
    assert found == [(row[2],) for row in rows if row[:2] == (1, "a")]


def test_its_changes_are_a_relation(past: Past) -> None:
    rows = fed(past).world.rows(f"{CHANGES} ORDER BY mv_epoch, mv_token")
    copy: Counter[Any] = Counter()
    for token, epoch, at, kind, *row in rows:
        copy[tuple(row)] += 1 if kind in ("+I", "+U") else -1
        assert at == past.shown[epoch - 1][0]
        assert token.startswith(past.history.extent.incarnation)
    assert +copy == past.shown[-1][2]
    assert rows[-1][0] == past.shown[-1][1]
    assert past.world.value("SELECT count(*) FROM \"visits$changes\" WHERE mv_op = '+I'") > 0


def error_of(call: Any) -> SqlError:
    with pytest.raises(SqlError) as caught:
        call()
    return caught.value


def test_what_is_not_kept(past: Past) -> None:
    world = fed(past).world
    at, token, _ = past.shown[0]
    past.history.bounds = Bounds(3600.0, rows=2)
    past.feed([{"l": 1, "k": "a"}])
    for place in (at.isoformat(), token):
        for text in ("SELECT * FROM visits AS OF '{}'", "SELECT count(*) FROM visits AS OF '{}' LIMIT 1"):
            error = error_of(lambda t=text, p=place: world.rows(t.format(p)))
            assert error.sqlstate == "72000", place
            assert str(past.views.statuses()[0].kept.oldest) in (error.detail or "")
    assert error_of(lambda: world.rows(f"SELECT * FROM visits AS OF '{'0' * 16}-1'")).sqlstate == "72000"
    assert error_of(lambda: world.rows("SELECT * FROM visits AS OF '2999-01-01'")).sqlstate == "22023"
    assert error_of(lambda: world.rows("SELECT * FROM visits AS OF 'soon'")).sqlstate == "22007"
    assert error_of(lambda: world.rows("SELECT * FROM all_types AS OF '2020-01-01'")).sqlstate == "55000"
    assert error_of(lambda: world.rows('SELECT * FROM "all_types$changes"')).message == (
        'the history of materialized view "all_types" is not kept'
    )
    assert error_of(lambda: world.rows("SELECT * FROM pg_class AS OF '2020-01-01'")).sqlstate == "0A000"
    assert error_of(lambda: world.rows("WITH x AS (SELECT 1) SELECT * FROM x AS OF '2020-01-01'")).sqlstate == "0A000"
    assert error_of(lambda: world.rows('SELECT * FROM "none$changes"')).message == (
        'relation "none$changes" does not exist'
    )


def test_an_empty_history_of_an_empty_view_is_asked_too(past: Past) -> None:
    early = (past.history.extent.since - dt.timedelta(seconds=1)).isoformat()
    for text in ("SELECT * FROM visits AS OF '{}'", "SELECT * FROM visits AS OF '{}' LIMIT 1"):
        assert error_of(lambda t=text: past.world.rows(t.format(early))).sqlstate == "72000"


def test_nobody_reads_it_without_the_privilege(past: Past) -> None:
    bob = replace(SCOPE, role="bob")
    for text in (CHANGES, "SELECT * FROM visits AS OF '2020-01-01'"):
        denied = error_of(lambda: past.world.rows("SELECT * FROM visits", scope=bob))
        assert error_of(lambda t=text: past.world.rows(t, scope=bob)).sqlstate == denied.sqlstate


def looked_up(past: Past, text: str) -> list[tuple[Any, ...]]:
    """By the plan that a text like it has had before, where there is one."""
    service = past.world.service
    plan, values = service.known(text, SCOPE) or (
        service.plan(PlanRequest(parse_pull(text), SCOPE, (), text)),
        (),
    )
    assert plan.kind == "point", text
    return rows_of(past.world.snapshot.run(plan, values))


def test_look_ups_by_key_of_each_moment(past: Past) -> None:
    """As literals, by plans of other texts, and as parameters; of keys that come, change and never were."""
    fed(past)
    past.feed([{"l": 7, "k": "late"}])
    beginning = f"{past.history.extent.incarnation}-0"
    moments = [(None, beginning, Counter[Any]()), *past.shown]
    prepared = past.world.plan(
        "SELECT visits FROM visits AS OF $2 v WHERE v.url = $1 AND v.site = $3", (oids.TEXT, 0, oids.INT8)
    )
    assert prepared.parameter_oids == (oids.TEXT, oids.TEXT, oids.INT8)
    texts = 0
    for site in (1, 2, 7, 9):
        for url in ("a", "b", "late"):
            for at, token, rows in moments:
                expected = [(row[2],) for row in rows if row[:2] == (site, url)]
                for place in filter(None, (token, at and at.isoformat())):
                    text = f"SELECT visits FROM visits AS OF '{place}' WHERE site = {site} AND url = '{url}'"
                    assert looked_up(past, text) == expected, text
                    assert rows_of(past.world.snapshot.run(prepared, [url, place, site])) == expected, (place, site)
                    texts += 1
    assert texts == 12 * (2 * len(past.shown) + 1)
    at = past.shown[3][0]
    declared = past.world.plan("SELECT count(*) FROM visits AS OF $1", (oids.TIMESTAMPTZ,))
    assert rows_of(past.world.snapshot.run(declared, [at])) == [(past.shown[3][2].total(),)]


def test_the_oldest_place_is_looked_up_by_key(past: Past) -> None:
    """Behind it all changes are kept, although its own is not; a place before it is none."""
    fed(past)
    past.history.bounds = Bounds(3600.0, rows=6)
    past.feed([{"l": 1, "k": "a"}])
    oldest = past.views.statuses()[0].kept.oldest
    assert oldest.seq > 0
    rows = next(rows for _, token, rows in past.shown if token == str(oldest))
    world = past.world
    for site, url in ((1, "a"), (2, "b"), (1, "b"), (9, "a")):
        text = f"SELECT visits FROM visits AS OF '{oldest}' WHERE site = {site} AND url = '{url}'"
        plan = world.plan(text)
        assert plan.direct is not None
        assert rows_of(world.snapshot.run(replace(plan, sql="SELECT 'not direct'"), ())) == [
            (row[2],) for row in rows if row[:2] == (site, url)
        ]
        before = text.replace(str(oldest), f"{oldest.incarnation}-{oldest.seq - 1:x}")
        assert error_of(lambda t=before: world.rows(t)).sqlstate == "72000"


def test_texts_of_look_ups_of_the_past_share_a_plan(past: Past) -> None:
    (_, first, _), *_, (_, last, _) = fed(past).shown
    service = past.world.service
    text = "SELECT * FROM visits AS OF '{}' WHERE site = {} AND url = '{}'"
    for each in (text.format(first, 1, "a"), text.format(first, 2, "b")):
        service.plan(PlanRequest(parse_pull(each), SCOPE, (), each))
    found = [service.known(text.format(*values), SCOPE) for values in ((first, 3, "x"), (last, 4, "y"))]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0][0] is found[1][0]
    assert found[1][1] == (last, 4, "y")


def test_places_of_parameters_that_are_wrong(past: Past) -> None:
    world = fed(past).world
    by_key = world.plan("SELECT * FROM visits AS OF $1 WHERE site = 1 AND url = 'a'")
    whole = world.plan("SELECT a.url FROM visits AS OF $1 a JOIN visits AS OF $2 b USING (url) WHERE a.visits > $3")
    assert whole.parameter_oids == (oids.TEXT, oids.TEXT, oids.INT8)
    now = past.shown[-1][1]
    for place, sqlstate in (
        ("2999-01-01", "22023"), ("soon", "22007"), (None, "22023"), ("2020-01-01", "72000"),
        (f"{'0' * 16}-1", "72000"), (f"{now[:16]}-ffff", "22023"),
    ):  # fmt: skip
        for plan, given in ((by_key, [place]), (whole, [place, now, 0]), (whole, [now, place, 0])):
            error = error_of(lambda p=plan, g=given: rows_of(world.snapshot.run(p, g)))
            assert error.sqlstate == sqlstate, (place, error)


def test_a_look_up_of_a_history_that_has_ended(past: Past) -> None:
    world = fed(past).world
    text = f"SELECT * FROM visits AS OF '{past.shown[-1][1]}' WHERE site = 1 AND url = 'a'"
    plan = world.plan(text)
    with past.kept.writer.transaction():
        past.kept.writer.histories.end_one(past.history, UNWATCHED)
    assert error_of(lambda: rows_of(world.snapshot.run(plan, ()))).sqlstate == "55000"
    assert error_of(lambda: world.rows(text)).sqlstate == "55000"
