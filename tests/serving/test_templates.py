"""Texts that differ in the values of their comparisons share a plan, and mean what each of them means by itself."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from catalog.model import Column
from mvserver import limits
from mvserver.serving.api import PlanRequest
from mvserver.serving.fast.templates import Template, template_of
from mvserver.sql.dialect import parse_pull
from tests.serving.server import PullServer
from tests.serving.world import SCOPE, VISITS_ID, World, rows_of

_INT4, _INT8, _OPEN = 23, 20, 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT n FROM v WHERE k = 5", Template("SELECT n FROM v WHERE k = $1", (_INT4,), (5,))),
        ("TABLE v WHERE k=5 AND s='d'", Template("TABLE v WHERE k=$1 AND s=$2", (_INT4, _OPEN), (5, "d"))),
        ("SELECT n FROM v WHERE k = -5", Template("SELECT n FROM v WHERE k = $1", (_INT4,), (-5,))),
        ("SELECT n FROM v WHERE k = 2147483648", Template("SELECT n FROM v WHERE k = $1", (_INT8,), (2**31,))),
        ("SELECT n FROM v WHERE s = 'it''s; = 5'", Template("SELECT n FROM v WHERE s = $1", (_OPEN,), ("it's; = 5",))),
        ("SELECT '= 5' WHERE k >= 1 and k<9", Template("SELECT '= 5' WHERE k >= $1 and k<$2", (_INT4, _INT4), (1, 9))),
        ("TABLE v WHERE k BETWEEN 1 AND 9 LIMIT 3",
         Template("TABLE v WHERE k BETWEEN $1 AND $2 LIMIT 3", (_INT4, _INT4), (1, 9))),
        ('SELECT "= 5" FROM v WHERE k = 5', Template('SELECT "= 5" FROM v WHERE k = $1', (_INT4,), (5,))),
        ("SELECT n FROM v WHERE k IN (5)", Template("SELECT n FROM v WHERE k = ANY ($1)", (1007,), ((5,),))),
        ("SELECT n FROM v WHERE k in(5, -6,3000000000) AND s='d'",
         Template("SELECT n FROM v WHERE k = ANY ($1) AND s=$2", (1016, _OPEN), ((5, -6, 3_000_000_000), "d"))),
        ("SELECT n FROM v WHERE s IN ('a', 'b,''c', ') = 5')",
         Template("SELECT n FROM v WHERE s = ANY ($1)", (_OPEN,), (("a", "b,'c", ") = 5"),))),
        ("SELECT n FROM v WHERE k IN (5, 'a')", None),
        ("SELECT n FROM v WHERE k IN (5, 5.5)", None),
        ("SELECT n FROM v WHERE k IN (5, 9999999999999999999)", None),
        ("SELECT n FROM v WHERE s IN ('a' 'b')", None),
        ("SELECT n FROM v WHERE k = 5.5", None),
        ("SELECT n FROM v WHERE k = 5e3", None),
        ("SELECT n FROM v WHERE k = 9999999999999999999", None),
        ("SELECT n FROM v WHERE k = $1 AND n = 5", None),
        ("SELECT n FROM v WHERE k = 5 -- = 6", None),
        ("SELECT n FROM v /* = 6 */ WHERE k = 5", None),
        ("SELECT n FROM v WHERE s = E'a\\'b' AND k = 5", None),
        ("SELECT n FROM v WHERE d = date '2020-01-01'", None),
        ("SELECT n FROM v LIMIT 5", None),
        (f"SELECT n FROM v WHERE k = 5{' ' * limits.TEMPLATE_CHARACTERS_MAX}", None),
    ],
)  # fmt: skip
def test_constants_after_comparisons_become_parameters(text: str, expected: Template | None) -> None:
    assert template_of(text) == expected


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("templates"))
    columns = (
        Column("site", "BIGINT"), Column("url", "VARCHAR"), Column("visits", "INTEGER"), Column("mean", "DOUBLE"),
        Column("day", "DATE"),
    )  # fmt: skip
    world.writer.execute(
        f"CREATE OR REPLACE VIEW _views.\"{VISITS_ID}\" AS SELECT i // 5 AS site, 'u' || i % 5 AS url, "
        "(i % 7)::INTEGER AS visits, i / 4.0::DOUBLE AS mean, DATE '2024-01-01' + (i % 50)::INTEGER AS day "
        "FROM range(500) r(i)"
    )
    current = world.catalog.current
    visits = replace(current.relations_by_id[VISITS_ID], columns=columns, key_columns=("site", "url"))
    world.catalog.change(relations=(visits, *(each for each in current.relations if each.id != VISITS_ID)))
    yield world
    world.close()


def _first_time(world: World, text: str) -> list[tuple[Any, ...]]:
    """The oracle: the text planned for itself."""
    return rows_of(world.snapshot.run(world.plan(text), ()))


_WHERE = (
    "site = {i} AND url = '{s}'", "url = '{s}' AND (site = {i})", "site >= {i} AND site < {j}", "{i} <= site",
    "site BETWEEN {i} AND {j} AND visits <> {k}", "site = {i} AND mean > {k}", "site > {i} AND day > '2024-02-0{d}'",
    "site = '{i}'", "site = {i} AND NOT visits = {k}", "site = {i} OR site = {j}", "site = {i} + {k}",
    "site = {i} AND visits = {big}", "site <= {i} AND url IN ('{s}', 'u1')", "site = {i}::bigint",
    "site IN ({i}, {j}, {k}, {i}) AND url = '{s}'", "url IN ('u2', '{s}') AND site IN ({i},{j})",
    "site IN ({i}, {big})", "site IN ({i})", "site IN ('{i}', '{j}')", "site NOT IN ({i}, {j}) AND site < 4",
    "site IN ({i}) AND mean IN ({j}, {k})",
    "day IN ('2024-02-0{d}', '2024-01-03') AND site = {i}", "site IN ({i}, {j}) = (visits IN ({k}))",
)  # fmt: skip
_ITEMS = ("*", "visits", "site + 1 AS x, url", "visits = 3 AS three, 'u1' AS u", "mean, day")


def test_random_texts_mean_what_they_mean_by_themselves(keyed: World) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    shared = 0
    for number in range(2 * len(_WHERE)):
        condition = _WHERE[number % len(_WHERE)]
        form = f"SELECT {chance.choice(_ITEMS)} FROM visits WHERE {condition} ORDER BY site, url LIMIT 7"
        for _ in range(3):
            i = chance.randrange(-2, 110)
            text = form.format(
                i=i, j=i + chance.randrange(4), k=chance.randrange(7), s=chance.choice(["u1", "u4", "it''s", ""]),
                d=chance.randrange(1, 10), big=chance.choice([3, 2**31, 2**40]),
            )  # fmt: skip
            known = keyed.service.known(text, SCOPE)
            if known is None:
                keyed.service.plan(PlanRequest(parse_pull(text), SCOPE, text=text))
                continue
            shared += bool(known[1])
            expected = _first_time(keyed, text)
            assert rows_of(keyed.snapshot.run(*known)) == expected, text
            written = keyed.service.plan(PlanRequest(parse_pull(text), SCOPE, text=text))
            assert not written.parameter_oids
            assert rows_of(keyed.snapshot.run(written, ())) == expected, text
            if written.key_read is not None and keyed.service.finished.knows(written):
                finished = keyed.service.finished.find(written, ())
                assert finished is None or rows_of(finished) == expected, text
    assert shared


@pytest.mark.parametrize(
    ("where", "other"),
    [
        ("site = '3'", "site = '4'"),  # a quoted constant that is no text
        ("day = '2024-01-02' AND site = 1", "day = '2024-01-03' AND site = 1"),
        ("site = 1 OR site = 2", "site = 1 OR site = 3"),
        ("site = 1 AND visits = 1 + 1", "site = 1 AND visits = 1 + 2"),
        ("site = 1 AND url = current_setting('mv.x', true)", "site = 2 AND url = current_setting('mv.x', true)"),
        ("visits = 1", "visits = 2"),  # no look-up: its plan may depend on the value
    ],
)  # fmt: skip
def test_what_depends_on_its_values_is_planned_for_itself(keyed: World, where: str, other: str) -> None:
    text = f"SELECT url FROM visits WHERE {where}"
    keyed.service.plan(PlanRequest(parse_pull(text), SCOPE, text=text))
    assert keyed.service.known(text.replace(where, other), SCOPE) is None


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("site IN (1)", "site IN (7, -1, 3, 7)"),
        ("url IN ('u1', 'u2')", "url in('it''s',  'u3')"),
        ("site IN (1) AND url IN ('u1')", "site IN (2, 3) AND url IN ('u1', 'u4')"),
        ("site IN (3000000000, 1)", "site IN (2, 4000000000, 3)"),
    ],
)
def test_lists_of_any_length_share_a_plan(keyed: World, first: str, later: str) -> None:
    text = "SELECT site, url, visits FROM visits WHERE {} ORDER BY site, url"
    keyed.service.plan(PlanRequest(parse_pull(text.format(first)), SCOPE, text=text.format(first)))
    known = keyed.service.known(text.format(later).replace(" in(", " IN ("), SCOPE)
    assert known is not None
    assert known[1]
    assert rows_of(keyed.snapshot.run(*known)) == _first_time(keyed, text.format(later))


def test_a_number_of_another_width_has_a_template_of_its_own(keyed: World) -> None:
    text = "SELECT visits FROM visits WHERE site = {}"
    keyed.service.plan(PlanRequest(parse_pull(text.format(1)), SCOPE, text=text.format(1)))
    assert keyed.service.known(text.format(2), SCOPE) is not None
    assert keyed.service.known(text.format(2**40), SCOPE) is None


def test_another_catalog_scope_or_column_type_has_another_plan(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        text = "SELECT visits FROM visits WHERE url = '{}'"
        world.service.plan(PlanRequest(parse_pull(text.format("./home")), SCOPE, text=text.format("./home")))
        known = world.service.known(text.format("./a"), SCOPE)
        assert known is not None
        assert rows_of(world.snapshot.run(*known)) == [(1,)]
        assert world.service.known(text.format("./a"), replace(SCOPE, search_path=("Odd",))) is None
        assert world.service.known(text.format("./a"), replace(SCOPE, role="bob")) is None
        world.catalog.change()
        assert world.service.known(text.format("./a"), SCOPE) is None
    finally:
        world.close()


def test_a_client_without_parameters_is_answered_from_one_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with PullServer(tmp_path) as server, server.connect() as client:
        cursor = psycopg.ClientCursor(client)
        planned: list[str] = []
        ordinary = server.world.service._plan

        def counted(select: Any, *rest: Any) -> Any:
            planned.append(select.sql())
            return ordinary(select, *rest)

        monkeypatch.setattr(server.world.service, "_plan", counted)
        expected = {"./home": 3, "./a": 1, "./none": None, "it's": None}
        for url, visits in (*expected.items(), *expected.items()):
            row = cursor.execute("SELECT visits FROM visits WHERE url = %s", (url,)).fetchone()
            assert (row[0] if row else None) == visits
        assert len(planned) == 2  # the first text and the template of all
        with pytest.raises(psycopg.errors.UndefinedColumn):
            cursor.execute("SELECT visits FROM visits WHERE uri = %s", ("./home",))
        client.execute("BEGIN")
        with pytest.raises(psycopg.errors.UndefinedTable):
            client.execute("SELECT 1 FROM nothing")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            cursor.execute("SELECT visits FROM visits WHERE url = %s", ("./home",))


def test_a_driver_that_prepares_texts_has_them_planned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As psycopg does with each text that it sends for the fifth time."""
    with PullServer(tmp_path) as server, server.connect() as client:
        planned: list[str] = []
        ordinary = server.world.service._plan

        def counted(select: Any, *rest: Any) -> Any:
            planned.append(select.sql())
            return ordinary(select, *rest)

        monkeypatch.setattr(server.world.service, "_plan", counted)
        texts = (
            ("SELECT visits FROM visits WHERE url = '{}'", {"./home": [(3,)], "./a": [(1,)], "it''s": []}),
            ("SELECT visits FROM visits WHERE url IN ('{}', 'it''''s')", {"./home": [(3,)], "./a": [(1,)], "": []}),
        )
        for form, expected in texts:
            for url, rows in expected.items():
                for _ in range(8):
                    assert client.execute(form.format(url).encode()).fetchall() == rows
        assert len(planned) == 2 * len(texts)  # the first text and the template of all
