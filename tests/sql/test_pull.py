"""Pull queries: the tree regenerates, keeps source properties, and folds names."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from mvserver.sql import parse_one
from mvserver.sql.dialect import MvDialect, parse_pull, position_of
from mvserver.sql.statements.base import Properties
from mvserver.sql.statements.queries import Pull
from mvserver.sql.statements.settings import Show

REGENERATED = [
    ("select A, count(*) n from T where x = 'it''s' group by 1 order by 2 desc limit 10",
     "SELECT a, COUNT(*) AS n FROM t WHERE x = 'it''s' GROUP BY 1 ORDER BY 2 DESC LIMIT 10"),
    ("SELECT \"A\".\"B\" FROM \"A\"", 'SELECT "A"."B" FROM "A"'),
    ("SELECT ’x’, 'y'\n'z', E'a\\tb', $$q$$", "SELECT 'x', 'yz', 'a\tb', 'q'"),
    ("SELECT $1::int + $2", "SELECT CAST($1 AS INT) + $2"),
    ("SELECT a[1], e[1:2] FROM t", "SELECT a[1], e[1:2] FROM t"),
    ("SELECT a !~ 'b', a !~* 'c', a ~~ 'd' FROM t", "SELECT NOT a ~ 'b', NOT a ~* 'c', a LIKE 'd' FROM t"),
    ("SELECT a OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default FROM t",
     "SELECT a OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default FROM t"),
    ("SELECT type, name, state, data, view, format, index, describe FROM t",
     "SELECT type, name, state, data, view, format, index, describe FROM t"),
    ("SELECT 1 AS select", 'SELECT 1 AS "select"'),
    ("VALUES (1, 'a'), (2, 'b') ORDER BY 1", "VALUES (1, 'a'), (2, 'b') ORDER BY 1"),
    ("TABLE v", "SELECT * FROM v"),
    ("SELECT * FROM x AS a (b, c), LATERAL (SELECT a.b) d", "SELECT * FROM x AS a(b, c), LATERAL (SELECT a.b) AS d"),
    ("WITH a AS (SELECT 1 x) SELECT * FROM a UNION ALL (SELECT 2) ORDER BY 1",
     "WITH a AS (SELECT 1 AS x) SELECT * FROM a UNION ALL (SELECT 2) ORDER BY 1"),
    ("SELECT sum(a) FILTER (WHERE b) OVER (PARTITION BY c ORDER BY d) FROM t",
     "SELECT SUM(a) FILTER(WHERE b) OVER (PARTITION BY c ORDER BY d) FROM t"),
    ("SELECT a FROM t WHERE (a, b) IN ((1, 2), (3, 4)) AND c NOT IN (SELECT 1)",
     "SELECT a FROM t WHERE (a, b) IN ((1, 2), (3, 4)) AND NOT c IN (SELECT 1)"),
    ("SELECT extract(year FROM d), d AT TIME ZONE 'UTC', d > now() - INTERVAL '5 minutes' FROM t",
     "SELECT EXTRACT(YEAR FROM d), d AT TIME ZONE 'UTC', d > CURRENT_TIMESTAMP - INTERVAL '5 MINUTES' FROM t"),
    ("SELECT x << 1 >> 2, X'1F', B'10' FROM t", "SELECT x << 1 >> 2, x'1F', b'10' FROM t"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), REGENERATED, ids=[text[:40] for text, _ in REGENERATED])
def test_regenerates(text: str, expected: str) -> None:
    assert parse_pull(text).sql(dialect=MvDialect) == expected
    assert parse_pull(expected).sql(dialect=MvDialect) == expected


def test_source_properties_tell_a_push_query() -> None:
    text = "SELECT a FROM db.s.clicks AS c WITH ('starting.position' = 'earliest') WHERE a > 1 QUERY WITH ('x' = 1)"
    tree = parse_pull(text)
    assert dict(tree.args["from_"].this.meta["properties"]) == {"starting.position": "earliest"}
    assert dict(tree.meta["query_properties"]) == {"x": 1}
    assert tree.sql(dialect=MvDialect) == "SELECT a FROM db.s.clicks AS c WHERE a > 1"
    tree = parse_pull("SELECT a FROM clicks WITH ('x' = ’y’) c JOIN u WITH ('z' = 1) ON c.a = u.a")
    assert dict(tree.args["from_"].this.meta["properties"]) == {"x": "y"}
    assert tree.args["from_"].this.alias == "c"
    assert dict(tree.args["joins"][0].this.meta["properties"]) == {"z": 1}
    assert "properties" not in parse_pull("SELECT a FROM clicks").args["from_"].this.meta
    assert parse_pull("SELECT query FROM pg_stat_activity").meta.get("query_properties", Properties()) == Properties()


def test_names_have_positions() -> None:
    text = "LIST STORES; SELECT abc FROM views WHERE xyz = 1"
    from mvserver.sql import parse

    pull = parse(text)[1]
    assert isinstance(pull, Pull)
    assert position_of(pull.select.expressions[0]) == text.index("abc") + 1
    assert position_of(pull.select.args["from_"].this) == text.index("views") + 1


CLIENTS = [
    # psql's \d
    "SELECT n.nspname as \"Schema\", c.relname as \"Name\", CASE c.relkind WHEN 'r' THEN 'table' "
    "WHEN 'v' THEN 'view' END"
    ' as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner" FROM pg_catalog.pg_class c LEFT JOIN'
    " pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r','p','') AND n.nspname !~ '^pg_toast'"
    " AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2;",
    "SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid ="
    " c.relnamespace WHERE c.relname OPERATOR(pg_catalog.~) '^(v)$' COLLATE pg_catalog.default AND"
    " pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3;",
    "SELECT CASE WHEN c.reloftype = 0 THEN '' ELSE c.reloftype::pg_catalog.regtype::pg_catalog.text END FROM"
    " pg_catalog.pg_class c WHERE c.oid = '16384';",
    "SELECT d.datname, pg_catalog.array_to_string(d.datacl, E'\\n') AS \"Access\" FROM pg_catalog.pg_database d"
    " ORDER BY 1;",
    # drivers
    "SELECT t.oid, typarray FROM pg_type t JOIN pg_namespace ns ON typnamespace = ns.oid WHERE typname = $1",
    "SELECT NULL AS TABLE_CAT, (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ FROM pg_catalog.pg_index i"
    " WHERE true AND i.indisprimary ORDER BY key_seq",
    "select string_agg(word, ',') from pg_catalog.pg_get_keywords() where word <> ALL ('{a,abs}'::text[])",
    "select pg_catalog.version()",
    "show standard_conforming_strings",
    "select current_schema()",
]


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("SELECT * FROM TUMBLE(s, SIZE 1 MINUTE)", "a window (TUMBLE)", 15),
        ("SELECT * FROM a JOIN session (b, GAP 5 SECONDS) x ON true", "a window (SESSION)", 22),
        ("SELECT 1 FROM a JOIN b WITHIN 5 MINUTES ON a.x = b.x", "JOIN ... WITHIN", 24),
        ("SELECT 1 FROM a JOIN b AS p WITHIN INTERVAL '5' MINUTE ON a.x = p.x", "JOIN ... WITHIN", 29),
        ("SELECT k, count(*) FROM a GROUP BY k EMIT FINAL", "EMIT FINAL", 38),
        ("SELECT k FROM a EMIT CHANGES", "EMIT CHANGES", 17),
        ("SELECT 1 FROM a JOIN b WITH ('timestamp' = 'at') p WITHIN 5 MINUTES ON a.x = p.x", "JOIN ... WITHIN", 52),
    ],
)
def test_what_continuous_queries_alone_have(text: str, message: str, position: int) -> None:
    """Such a text is a push query's; whoever wants a pull query has the error."""
    statement = parse_one(text)
    assert isinstance(statement, Pull)
    assert (statement.text, statement.has_parameters) == (text, False)
    for error in (statement.continuous, refused(text)):
        assert error is not None
        assert (error.sqlstate, error.message) == ("0A000", f"{message} is supported in a continuous query only")
        assert (error.position, error.hint) == (position, "Create a materialized view of it, and read that.")


def refused(text: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        parse_pull(text)
    return caught.value


@pytest.mark.parametrize(
    "text", ["SELECT 1 FROM tumble", "SELECT 1 FROM a within", "SELECT 1 FROM a hop, b AS within WHERE 5 = 5"]
)
def test_their_words_are_names_elsewhere(text: str) -> None:
    assert isinstance(parse_one(text), Pull)


@pytest.mark.parametrize("text", CLIENTS, ids=[text[:30] for text in CLIENTS])
def test_texts_that_clients_send(text: str) -> None:
    statement = parse_one(text)
    if isinstance(statement, Pull):
        regenerated = statement.select.sql(dialect=MvDialect)
        assert parse_pull(regenerated).sql(dialect=MvDialect) == regenerated
    else:
        assert statement == Show("standard_conforming_strings", text=text)
