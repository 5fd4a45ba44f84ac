"""How often DuckDB binds a query while it is planned: once, and again where a pass has changed it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from mvserver.dialect import binding, pull_query, typed_passes
from mvserver.serving.plan import binder
from tests.serving.world import World, key_visits

_INT4, _TEXT, _OID = 23, 25, 26
_OF_THE_QUERY = frozenset(module.__file__ for module in (binder, binding, pull_query, typed_passes))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("bindings"))
    key_visits(made)
    yield made
    made.close()


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of bindings of the whole query; those that ask for the types of a part are not among them."""
    texts: list[str] = []
    ordinary = binding.bind

    def watched(cursor: Any, sql: str) -> binding.Bound:
        if sys._getframe(1).f_code.co_filename in _OF_THE_QUERY:
            texts.append(sql)
        return ordinary(cursor, sql)

    monkeypatch.setattr(binding, "bind", watched)
    return texts


@pytest.mark.parametrize(
    ("text", "oids", "times"),
    [
        ("SELECT 1 AS x", (), 1),
        ("SELECT url FROM visits ORDER BY url", (), 1),
        ("SELECT $1::int + 1 AS x", (), 1),
        ("SELECT relname, relkind::text FROM pg_catalog.pg_class WHERE oid = $1", (_OID,), 1),
        ("SELECT 'a' UNION SELECT url FROM visits", (), 1),
        # the second is that of the look-up at the state's tables
        ("SELECT visits FROM visits WHERE site = 1 AND url = 'a'", (), 2),
        ("SELECT visits FROM visits WHERE site = $1 AND url = $2", (), 2),
        ("SELECT visits FROM visits WHERE site = $1 AND url = $2", (_INT4, _TEXT), 2),
        ("SELECT visits FROM visits WHERE site > 3", (), 2),
        # a pass has changed it
        ("SELECT $1 AS x", (), 2),
        ("SELECT site, sum(visits) FROM visits GROUP BY site", (), 2),
        ("SELECT sum(visits) * 1.0 / count(*) FROM visits", (), 2),
        ("SELECT avg(visits * 1.0 / 3) FROM visits", (), 2),
        ("SELECT seen::date - seen::date, mean::text FROM visits", (), 2),
        ("SELECT sum(visits) * 1.0 / count(*), max(mean)::text FROM visits UNION SELECT 1.0, 'x'", (), 2),
        # and another asks for the types of its parameters in between
        ("SELECT sum(visits) * 1.0 / count(*), max(mean)::text FROM visits WHERE visits = $1", (_INT4,), 3),
        ("SELECT sum(visits) / $1, max(mean)::text FROM visits UNION SELECT 1.0, 'x'", (_INT4,), 3),
    ],
)
def test_bindings_of_one_query(world: World, bound: list[str], text: str, oids: tuple[int, ...], times: int) -> None:
    world.plan(text, oids)
    assert len(bound) == times, bound
