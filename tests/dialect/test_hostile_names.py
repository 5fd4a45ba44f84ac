"""A name may be any text when it is quoted. Wherever a user writes one, it stays a name in what DuckDB is given."""

from __future__ import annotations

import duckdb
import pytest
from sqlglot.dialects import DuckDB

from mvserver.dialect import binding
from mvserver.errors import SqlError
from tests.serving.world import World

_NAMES = (
    "a||(select max(url)from views._state.visits)||lower",
    "lower(url) from views._state.visits --",
    "a from x;delete from views._state.visits;select lower",
    "x' || (select max(url) from views._state.visits) || 'y",
    'x" || (select max(url) from views._state.visits) || "y',
    "x) , (select max(url) from views._state.visits",
    "x /* _state",
    "$$ _state",
    "x\n_state.visits",
    "{_state}",
)
_PLACES = (
    "SELECT {}('Q') FROM (SELECT 'x' AS \"_undefined_a\") t",
    'WITH x AS (SELECT 1 AS "_undefined_a") SELECT {}(\'' + "x" * 17_000 + "') FROM x",
    "SELECT pg_catalog.{}('Q')",
    "SELECT {}.lower('Q')",
    "SELECT * FROM {}('Q')",
    "SELECT * FROM {}('Q') AS f(a)",
    "SELECT * FROM public.visits, LATERAL {}(url) AS l",
    "SELECT count(*) FILTER (WHERE {}(1)) FROM public.visits",
    "SELECT {}(visits) OVER () FROM public.visits",
    "SELECT sum(visits) OVER {} FROM public.visits",
    "SELECT sum(visits) OVER {} FROM public.visits WINDOW {} AS (ORDER BY url)",
    "SELECT 1 AS {}",
    "SELECT {}",
    "SELECT t.{} FROM public.visits t",
    "SELECT {}.url FROM public.visits t",
    "SELECT {}.* FROM public.visits {}",
    "SELECT {}.url FROM public.visits AS {}",
    "SELECT * FROM public.visits AS t({}, b, c, d)",
    "SELECT * FROM {}",
    "SELECT * FROM {}.visits",
    "SELECT * FROM v.{}",
    "WITH {} AS (SELECT 1 AS n) SELECT n FROM {}",
    "WITH w({}) AS (SELECT 1 AS n) SELECT {} FROM w",
    "SELECT * FROM public.visits JOIN public.visits AS u USING ({})",
    "SELECT 'a' COLLATE {}",
    "SELECT 'a'::{}",
    "SELECT 'a'::{}[]",
    "SELECT CAST('a' AS {})",
    "SELECT CAST('a' AS pg_catalog.{})",
    "SELECT {} 'a'",
    "SELECT now() AT TIME ZONE {}",
    "SELECT extract({} FROM now())",
    "SELECT 1 OPERATOR(pg_catalog.{}) 2",
    "SELECT (SELECT t FROM public.visits t LIMIT 1).{}",
    "SELECT {} FROM public.visits GROUP BY {}",
    "SELECT url FROM public.visits ORDER BY {}",
    "SELECT url FROM public.visits FOR UPDATE OF {}",
    "SELECT * FROM public.visits TABLESAMPLE {} (10)",
    "SELECT * FROM (VALUES (1)) AS {}({})",
    "SELECT make_interval({} => 1)",
    "SELECT array[1] AS {}, {}[1] FROM (SELECT array[7] AS {}) t",
)

_REFUSALS = ("42883", "42P01", "42703", "42704", "42601", "0A000", "42804", "3F000", "42P20", "42809", "22023", "2202H")


def _answer(world: World, text: str) -> object:
    """The rows, or the SQLSTATE of the refusal."""
    try:
        return world.rows(text)
    except SqlError as error:
        return error.sqlstate


@pytest.mark.parametrize("place", _PLACES, ids=lambda place: place[:60])
def test_a_name_stays_a_name(world: World, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    bind = binding.bind

    def bound(cursor: duckdb.DuckDBPyConnection, sql: str) -> binding.Bound:
        texts.append(sql)
        return bind(cursor, sql)

    monkeypatch.setattr(binding, "bind", bound)
    for name in _NAMES:
        quoted = '"' + name.replace('"', '""') + '"'
        answer = _answer(world, place.replace("{}", quoted))
        assert answer in _REFUSALS if isinstance(answer, str) else True, (name, answer)
        assert "visits" in place or "home" not in str(answer), (name, answer)
    assert not [text for text in texts if "max" in {token.text.lower() for token in DuckDB.Tokenizer().tokenize(text)}]
    assert world.writer.execute("SELECT count(*) FROM _state.visits").fetchone() == (3,)
